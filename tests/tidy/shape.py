"""The rules about one file that ruff has not: leftovers, paths of somebody's machine, numbers read strictly."""

from __future__ import annotations

import ast
import re

LEFTOVER = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
"""A mark of unfinished work."""
MACHINE_PATH = re.compile(r"(?<![\w./-])(?:/(?:root|home|Users|work)/[\w.-]+|[A-Z]:\\Users\\)")
"""An absolute path that exists on one machine only."""
POSSESSIVE_GROUP = re.compile(r"(?<![\\(])\)(?:[*+?]|\{[^{}\n]{1,12}\})\+")
"""A group that repeats possessively in a regular expression: before Python 3.11.5 it loses its place (CPython issue
106052). A single character may.
"""


def marks(pattern: re.Pattern[str], name: str, text: str) -> list[str]:
    """Where a text has what the pattern describes."""
    lines = enumerate(text.splitlines(), 1)
    return [f"{name}:{number}: {found[0]}" for number, line in lines for found in pattern.finditer(line)]


def lax_numbers(name: str, text: str) -> list[str]:
    """Numbers from outside that ``int`` or ``float`` read, which take ``1_0`` and digits of other scripts: in a ``try``
    that expects them to fail, and as the type of an argument of a command. ``units.py`` reads them strictly.
    """
    found: list[str] = []
    if "ValueError" not in text and "type" not in text:
        return found
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
