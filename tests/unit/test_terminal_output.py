"""What leaves a program: ``terminal_output.py``."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from artemis_py import terminal_output
from artemis_py.terminal_output import as_called


@pytest.mark.parametrize(
    ("stream", "write", "written"),
    [
        ("stdout", lambda: terminal_output.say("a"), "a\n"),
        ("stdout", lambda: terminal_output.say_at_once("a"), "a\n"),
        ("stdout", lambda: terminal_output.say_made("a\nb"), "a\nb\n"),
        ("stderr", lambda: terminal_output.say_made("a", stream=sys.stderr), "a\n"),
        ("stderr", lambda: terminal_output.warn("a"), "a\n"),
        ("stderr", lambda: terminal_output.warn_made("a"), "a\n"),
        ("stderr", lambda: terminal_output.log("a", "ART-2000", traceback="b\nc"), "ART-2000 a\n\tb\n\tc\n"),
    ],
)
def test_a_line_and_its_end_are_written_in_one_call(
    stream: str, write: Callable[[], None], written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two calls another thread would write its own line, and both were torn."""
    calls = Mock(wraps=io.StringIO())
    monkeypatch.setattr(sys, stream, calls)
    write()
    ((text,),) = [call.args for call in calls.write.call_args_list]
    assert text.endswith(written)


def test_a_process_without_the_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has none where a process was started with closed descriptors."""
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    terminal_output.say("a")
    terminal_output.say_made("a")
    terminal_output.warn("a")
    terminal_output.warn_made("a")


@pytest.mark.parametrize(
    ("called", "on_path", "shown"),
    [
        ("bin/artemis-py", False, "try: {called} user list; artemis-py: no"),
        ("bin/artemis-py", True, "try: artemis-py user list; artemis-py: no"),
        ("another/__main__.py", False, "try: artemis-py user list; artemis-py: no"),
    ],
    ids=["not on the path", "on the path", "as a module"],
)
def test_commands_are_told_as_the_shell_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: str, on_path: bool, shown: str
) -> None:
    program = tmp_path / called
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(program)])
    monkeypatch.setenv("PATH", str(program.parent) if on_path else str(tmp_path))
    assert as_called("try: artemis-py user list; artemis-py: no") == shown.format(called=program)


def test_another_program_of_that_name_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("mine", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "artemis-py").write_text("")
        (tmp_path / folder / "artemis-py").chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(tmp_path / "mine" / "artemis-py")])
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    assert as_called("artemis-py run") == f"{tmp_path}/mine/artemis-py run"
