"""One module writes to standard output and standard error, so that nothing a client chose gets there as it is. It
writes each line in one call, which ``print`` does not: lines of several threads would be torn.
"""

from __future__ import annotations

import ast

from tests.tidy.sources import PACKAGE, ROOT, python_files


def prints(source: str) -> list[int]:
    """The lines of a source that call ``print``."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]


def test_prints_are_found() -> None:
    assert prints("def f():\n    print('a')\n    say('b')\n") == [2]


def test_lines_leave_through_one_module() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}: use artemis_py.terminal_output.say or warn"
        for path in python_files(PACKAGE)
        for line in prints(path.read_text("utf-8"))
    }
    assert not found, sorted(found)
