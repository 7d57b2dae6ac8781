"""Completion, in the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from tests.e2e.commands.user import User
from tests.e2e.terminal import Terminal
from tests.kit.process import WAIT_S

pytestmark = pytest.mark.e2e


def with_program(user: User) -> dict[str, str]:
    """An environment in which artemis-py is a program."""
    folder = user.folder / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / "artemis-py"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m artemis_py "$@"\n')
    program.chmod(0o755)
    return {**user.environment, "PATH": f"{folder}:{os.environ['PATH']}"}


def completed(user: User, shell: str, script: str) -> list[str]:
    """What a script of a shell prints."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run(
        [program, "-c", script], capture_output=True, text=True, timeout=WAIT_S, env=with_program(user), check=False,
        cwd=user.folder,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.splitlines()


def in_bash(user: User, line: str) -> list[str]:
    """The words that bash would offer behind a line."""
    script = f"""
        source <(artemis-py completion bash)
        COMP_LINE={line!r} COMP_POINT={len(line)}
        _python_argcomplete artemis-py
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return [word.removesuffix(" ") for word in completed(user, "bash", script) if word]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("artemis-py que", ["queue"]),
        ("artemis-py queue p", ["pause", "purge", "priority"]),
        ("artemis-py queue purge ord", ["orders"]),
        ("artemis-py queue purge --yes od", ["odd\\ /\\ name"]),
        ("artemis-py send jo", ["jobs"]),
        ("artemis-py receive orders --ack ", ["printed", "received", "none"]),
        ("artemis-py receive orders --ack=p", ["printed"]),
        ("artemis-py queue ls --sort messageC", ["messageCount"]),
        ("artemis-py queue ls --fields name,messageC", ["name,messageCount"]),
        ("artemis-py queue ls --sor", ["--sort"]),
        ("artemis-py completion ", ["bash", "zsh", "fish"]),
        ("artemis-py nonsense ", []),
        ("artemis-py connection close ", []),
        ("artemis-py queue purge orders ", []),
    ],
)
def test_words_in_bash(user: User, line: str, words: list[str]) -> None:
    assert in_bash(user, line) == words


def test_files_and_contexts_in_bash(user: User) -> None:
    (user.folder / "one file.xml").touch()
    assert in_bash(user, "artemis-py check one") == ["one\\ file.xml"]
    user.printed("context", "add", "prod", "--url", "http://h:1")
    assert in_bash(user, "artemis-py queue ls --context p") == ["prod"]
    assert in_bash(user, "artemis-py context use ") == ["prod"]


def test_a_broker_that_is_not_there_costs_no_time(user: User) -> None:
    """A port that takes connections and says nothing."""
    import socket
    import time

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        begun_s = time.monotonic()
        assert told(user, "fish", f"artemis-py queue purge --url {url} o") == []
        assert time.monotonic() - begun_s < WAIT_S, "a broker that says nothing is asked no longer"


def test_tab_in_bash(user: User) -> None:
    """As a person does it."""
    program = shutil.which("bash")
    assert program is not None
    environment = {**with_program(user), "PS1": "$ ", "HISTFILE": ""}
    with Terminal([program, "--norc", "--noprofile", "-i"], folder=user.folder, environment=environment) as terminal:
        terminal.await_text("$ ")
        terminal.type("source <(artemis-py completion bash); echo so''urced\n")
        terminal.await_text("sourced\n")
        terminal.printed = b""
        terminal.type("artemis-py queue show ord\t")
        terminal.await_text("artemis-py queue show orders ")
        terminal.type("--js\t")
        terminal.await_text("--json ")
        terminal.type("\n")
        terminal.await_text('"name": "orders"')
        terminal.type("exit\n")
        assert terminal.await_end() == 0


def test_words_in_zsh(user: User) -> None:
    script = """
        autoload -U compinit && compinit -u -d "$PWD/dump"
        _describe() { print -l -- "${completions[@]}"; }
        source <(artemis-py completion zsh)
        BUFFER='artemis-py queue purge or' CURSOR=25 words=(artemis-py queue purge or)
        _python_argcomplete
    """
    assert completed(user, "zsh", script) == ["orders:"]


def test_words_in_fish(user: User) -> None:
    script = "artemis-py completion fish | source; complete -C 'artemis-py queue purge or'"
    assert completed(user, "fish", script) == ["orders"]


def told(user: User, shell: str, line: str) -> list[str]:
    """What the program answers the script of a shell."""
    file = user.folder / "told"
    asked: dict[str, Any] = {
        "_ARGCOMPLETE": "1", "_ARGCOMPLETE_SHELL": shell, "_ARGCOMPLETE_STDOUT_FILENAME": str(file),
        "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
    }  # fmt: skip
    assert user.printed(**asked) == ""
    return file.read_text().split("\v") if file.stat().st_size else []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_a_shell_is_told(user: User, shell: str) -> None:
    """Where the shell itself is not installed."""
    assert [word.split(":")[0] for word in told(user, shell, "artemis-py queue p")] == ["pause", "purge", "priority"]
    script = user.printed("completion", shell)
    assert "_ARGCOMPLETE" in script
    assert "artemis-py" in script


def test_what_words_mean(user: User) -> None:
    assert "priority:" in " ".join(told(user, "zsh", "artemis-py queue p"))
    assert told(user, "zsh", "artemis-py hea") == ["health:ask a running broker whether it takes messages"]
