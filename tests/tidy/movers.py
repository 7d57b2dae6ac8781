"""The rule about a queue's counters: its contents alone move them."""

from __future__ import annotations

import ast

MOVERS = frozenset({"queue/messages.py"})
"""In ``core/``: the only file that changes a counter, or what is watched for expiry."""
KEEPERS = frozenset({"queue/messages.py", "memory.py"})
"""The only files that change how many need a message."""
_WATCH_VERBS = frozenset({"add", "pop", "forget"})


def moved_counters(file: str, source: str) -> list[str]:
    """Places where a file of ``core/`` that is no mover changes a counter, a watch or ``Message.refs``. ``file`` is its
    path below ``core/``.
    """
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, verb = _last(node.func.value), node.func.attr
            if file not in MOVERS and (owner == "counters" or (owner == "expiry" and verb in _WATCH_VERBS)):
                found.append(f"{file}:{node.lineno}: {owner}.{verb}(…)")
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Attribute):
                owner = _last(target.value)
                if (file not in MOVERS and owner == "counters") or (file not in KEEPERS and target.attr == "refs"):
                    found.append(f"{file}:{target.lineno}: {owner}.{target.attr} changes")
    return found


def _last(node: ast.expr) -> str:
    """The last word of a dotted name, without a leading underscore."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.removeprefix("_")
