"""The rules about one file: leftovers, docstrings, paths of somebody's machine."""

from __future__ import annotations

import ast
import re

FUNCTION_LINES_MAX = 80

LEFTOVER = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
MACHINE_PATH = re.compile(r"(?<![\w./-])(?:/(?:root|home|Users|work)/[\w.-]+|[A-Z]:\\Users\\)")


def long_functions(name: str, source: str) -> list[str]:
    """Functions and methods longer than FUNCTION_LINES_MAX, from ``def`` to the last line."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                found.append(f"{name}:{node.lineno}: {node.name} has {lines} lines, the limit is {FUNCTION_LINES_MAX}")
    return found


def missing_docstrings(name: str, source: str) -> list[str]:
    """Public classes and functions at module level, and the module itself, without a docstring."""
    tree = ast.parse(source)
    found = [f"{name}:1: the module has no docstring"] if tree.body and ast.get_docstring(tree) is None else []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if ast.get_docstring(node) is None:
            found.append(f"{name}:{node.lineno}: {node.name} has no docstring")
    return found


def leftovers(name: str, text: str) -> list[str]:
    """Marks of unfinished work."""
    return [
        f"{name}:{number}: {match[0]}"
        for number, line in enumerate(text.splitlines(), 1)
        if (match := LEFTOVER.search(line))
    ]


def machine_paths(name: str, text: str) -> list[str]:
    """Absolute paths that exist on one machine only."""
    return [
        f"{name}:{number}: {match[0]}"
        for number, line in enumerate(text.splitlines(), 1)
        if (match := MACHINE_PATH.search(line))
    ]


def lax_numbers(name: str, text: str) -> list[str]:
    """Numbers from outside that ``int`` or ``float`` read, which take ``1_0`` and digits of other scripts: in a ``try``
    that expects them to fail, and as the type of an argument of a command. ``units.py`` reads them strictly.
    """
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Try) and any(
            handler.type is not None and "ValueError" in ast.unparse(handler.type) for handler in node.handlers
        ):
            calls = [call for part in node.body for call in ast.walk(part) if isinstance(call, ast.Call)]
            found += [
                f"{name}:{call.lineno}: {ast.unparse(call)}"
                for call in calls
                if isinstance(call.func, ast.Name) and call.func.id in ("int", "float")
            ]
        elif isinstance(node, ast.keyword) and node.arg == "type" and ast.unparse(node.value) in ("int", "float"):
            found.append(f"{name}:{node.value.lineno}: type={ast.unparse(node.value)}")
    return found
