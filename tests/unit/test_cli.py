"""The dispatcher: which command runs, what a wrong one is told, and which exit code comes back."""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock

import pytest

from artemis_py.cli import main as cli
from artemis_py.cli.options import Parser
from artemis_py.errors import ArtemisError, BrokerError, ConfigError, Problem
from artemis_py.log_codes import MEANINGS
from artemis_py.version import IS_COMPILED, VERSION
from tests.kit.commands import parsers_of


def install_command(monkeypatch: pytest.MonkeyPatch, outcome: int | BaseException) -> None:
    """Puts a command ``probe`` into the table that returns or raises ``outcome``."""
    module = ModuleType("probe_command")
    add_arguments, run = lambda parser: parser.add_argument("--depth"), Mock(side_effect=[outcome])
    vars(module).update(HELP="probes", add_arguments=add_arguments, run=run)
    monkeypatch.setitem(sys.modules, "probe_command", module)
    monkeypatch.setitem(cli.COMMANDS, "probe", ("probe_command", "probes"))


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_table_repeats_the_help_of_each_command(name: str) -> None:
    assert cli.COMMANDS[name][1] == cli.command_of(name).HELP


WITHOUT_JSON = {
    *("run", "ha hold"),  # until a signal
    *("init", "context add", "context use", "context remove", "user add", "user rm", "user reset"),  # the exit code
    *("journal verify", "journal repair"),  # the exit code, too
    *("mask", "completion"),  # print what programs read
}


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_with_an_answer_prints_json(name: str) -> None:
    parsers = parsers_of(name)
    for words, parser in parsers.items():
        if not any(other.startswith(f"{words} ") for other in parsers):
            assert ("--json" in parser.format_help()) == (words not in WITHOUT_JSON), words


def test_options_may_stand_before_a_word_that_may_be_left_out() -> None:
    """Python's argparse refuses ``send orders --count 5 hello`` if nobody asks it not to."""
    parser = argparse.ArgumentParser()
    cli.command_of("send").add_arguments(parser)
    for words in (
        ["orders", "--count", "5", "hello"],
        ["--count", "5", "orders", "hello"],
        ["orders", "hello", "--count", "5"],
    ):
        parsed = cli._parsed(parser, words)
        assert (parsed.address, parsed.body, parsed.count) == ("orders", "hello", 5)
    assert cli._parsed(parser, ["orders", "--", "--count"]).body == "--count"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"artemis-py {VERSION} ({'compiled' if IS_COMPILED else 'interpreted'})\n"


@pytest.mark.parametrize("arguments", [["help"], ["--help"], ["-h"]])
def test_help_names_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out
    assert all(f"  {name} " in printed for name in cli.COMMANDS)


@pytest.mark.parametrize("words", [["schedule"], ["schedule", "ls"], ["queue"], ["queue", "create"]])
def test_help_has_no_marks_of_pages(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([*words, "--help"])
    assert "`" not in capsys.readouterr().out


def test_no_command_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: artemis-py" in captured.err


def test_help_of_one_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    install_command(monkeypatch, 0)
    with pytest.raises(SystemExit) as exit_info:
        cli.main(["help", "probe"])
    assert exit_info.value.code == 0
    assert "usage: artemis-py probe [-h] [--depth DEPTH]" in capsys.readouterr().out


@pytest.mark.parametrize(("typed", "meant"), [("rnu", "run"), ("chek", "check"), ("explian", "explain")])
def test_an_unknown_command_is_told_the_nearest(typed: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([typed]) == 2
    assert capsys.readouterr().err == f"artemis-py: unknown command {typed!r}; did you mean {meant!r}?\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["queue", "shw", "orders"], "artemis-py queue: unknown word 'shw'; did you mean 'show'?"),
        (["context", "zzzz"], "artemis-py context: unknown word 'zzzz'; the words are ls, show, use, add, remove"),
        (["send"], "artemis-py send: the following arguments are required: ADDRESS"),
        (
            ["send", "q", "--url", "http://h"],
            (
                "artemis-py send: unrecognized arguments: --url http://h; this command talks STOMP, so name that "
                "acceptor: --stomp stomp://host:port"
            ),
        ),
        (
            ["queue", "ls", "--stomp=h"],
            (
                "artemis-py queue: unrecognized arguments: --stomp=h; this command talks HTTP, so name that "
                "acceptor: --url http://host:port"
            ),
        ),
        (
            ["send", "q", "--hedaer=a=b"],
            "artemis-py send: unrecognized arguments: --hedaer=a=b; did you mean --header?",
        ),
        (["queue", "ls", "--feilds=a"], "artemis-py queue: unrecognized arguments: --feilds=a; did you mean --fields?"),
        (["queue"], "artemis-py queue: the following arguments are required: COMMAND"),
        (
            ["spans", "--url", "http://h", "--from", "1000000d"],
            "artemis-py spans: argument --from: '1000000d' is not in the years 1 to 9999 (UTC)",
        ),
        (["check", "--url=h"], "artemis-py check: unrecognized arguments: --url=h"),
        (["browse", "q", "\x1b[31m"], "artemis-py browse: unrecognized arguments: \\x1b[31m"),
    ],
)
def test_wrong_arguments_are_told_in_two_lines(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    assert end.value.code == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.splitlines()) == (
        "",
        [said, f"{said.partition(':')[0]} --help shows the arguments"],
    )


def test_list_is_ls_where_there_is_no_other_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert cli.main(["context", "list"]) == 0
    assert cli.main(["pages", "ls", str(tmp_path)]) == 0
    for word in ("list", "ls"):
        parser = Parser()
        cli.command_of("user").add_arguments(parser)
        assert parser.parse_args([word]).command == word


def test_an_unknown_command_near_to_nothing_is_told_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["zzzzzzzz"]) == 2
    assert "the commands are run, check" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("outcome", "code", "text"),
    [
        (0, 0, ""),
        (3, 3, ""),
        (
            ConfigError([Problem("error", "b.xml", 4, "no"), Problem("error", "c.xml", 7, "never")]),
            2,
            "b.xml:4: no\nc.xml:7: never\n",
        ),
        (ArtemisError("port 61613 is in use"), 1, "artemis-py: port 61613 is in use\n"),
        (BrokerError("full"), 1, "artemis-py: full\n"),
        (KeyboardInterrupt(), 130, "artemis-py: interrupted\n"),
    ],
)
def test_exit_codes(
    outcome: int | BaseException,
    code: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install_command(monkeypatch, outcome)
    assert cli.main(["probe"]) == code
    assert capsys.readouterr().err == text


def test_a_reader_that_goes_away_sees_no_traceback() -> None:
    program = "import sys; from artemis_py.cli.main import main; sys.stdin.read(); sys.exit(main(['help']))"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()  # before the command writes: it waits for the end of its input
    process.stdin.close()
    process.stdin = process.stdout = None
    _out, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert errors == b""


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "artemis_py", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"artemis-py {VERSION} ({'compiled' if IS_COMPILED else 'interpreted'})\n"


def test_a_command_collects_garbage_again_after_its_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    install_command(monkeypatch, 0)
    gc.disable()
    try:
        cli.run_command("probe", [])
        assert gc.isenabled()
    finally:
        gc.enable()


def test_only_the_module_of_the_command_is_imported() -> None:
    program = "import sys; from artemis_py.cli.main import main; main(['--version']); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "artemis_py.cli.main" in loaded
    assert not loaded & {"artemis_py.cli.run", "asyncio", "lxml", "xmlschema", "prometheus_client", "difflib"}


@pytest.mark.parametrize(
    "module", ["artemis_py.cli.main", "artemis_py.cli.run", "artemis_py.server.lifecycle", "lxml.etree"]
)
def test_an_interrupt_while_it_starts_is_one_line(module: str, tmp_path: Path) -> None:
    program = f"""
import os, signal, sys
class Interrupts:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts)
sys.argv = ["artemis-py", "run", {str(tmp_path / "none.xml")!r}]
from artemis_py.__main__ import main
sys.exit(main())
"""
    (tmp_path / "none.xml").write_text("<configuration xmlns='urn:activemq'/>", "utf-8")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (130, "artemis-py: interrupted\n")


def test_every_code_of_the_log_is_in_its_document() -> None:
    text = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text("utf-8")
    for code, meaning in MEANINGS.items():
        assert f"| `{code}` | {meaning} |" in text
