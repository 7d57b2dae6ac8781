"""One pair of files, two brokers: users that either one's commands wrote log in at both."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.client import is_greeted
from tests.kit.ports import free_port
from tests.kit.process import eventually, started
from tests.oracle.artemis_broker import run_command
from tests.oracle.brokers import listening

ADMIN = "made by Artemis"
LOGINS = (
    ("admin", ADMIN, True), ("admin", "else", False),
    ("ann", "hashed: 100,000 times", True), ("ann", "hashed", False),
    ("my user", "plain # = :text\\", True), ("my user", "plain", False),
    ("zoë 日本", "pässwörd €", True), ("zoë 日本", "pässwörd", False),
    ("theirs", "theirs too", True), ("theirs", "x", False),
    ("changed", "after", True), ("changed", "before", False),
    ("gone", "x", False),
)  # fmt: skip

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def our_user(folder: Path, *arguments: str, password: str = "") -> str:
    """One of our commands on the files of an instance."""
    given = ["--password-file", "-"] if password else []
    command = [sys.executable, "-m", "artemis_py", "user", *arguments, "--config", str(folder), *given]
    done = subprocess.run(command, input=f"{password}\n", capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def agree(port: int) -> None:
    """Each login has the expected answer, soon: Artemis reads a file again a second after it changed. Nothing is
    escaped in CONNECT.
    """
    for user, password, expected in LOGINS:
        login = {"login": user, "passcode": password}
        eventually(f"{login}", lambda: is_greeted(port, **login), lambda seen: seen is expected)  # noqa: B023


def test_both_accept_the_users_of_each_other(home: Path, tmp_path: Path) -> None:
    """In an instance that Artemis' own `create` made, with one acceptor for STOMP and Artemis' commands."""
    os.chmod(tmp_path, 0o755)
    folder, port, program = tmp_path / "instance", free_port(), str(home / "bin" / "artemis")
    admin = ["--user", "admin", "--password", ADMIN]
    options = ["--role", "amq", "--require-login", "--silent", "--no-autotune", "--no-web"]
    run_command(program, "create", str(folder), *admin, *options)
    url, file = f"tcp://127.0.0.1:{port}", folder / "etc" / "broker.xml"
    acceptors = f'<acceptors><acceptor name="stomp">{url}?protocols=CORE,STOMP</acceptor></acceptors>'
    quick = "<security-invalidation-interval>0</security-invalidation-interval>"
    file.write_text(re.sub(r"<acceptors>.*</acceptors>", acceptors + quick, file.read_text(), flags=re.DOTALL))
    with listening([str(folder / "bin" / "artemis"), "run"], [port], folder / "artemis.log"):
        names = ["--user-command-user", "theirs", "--user-command-password", "theirs too"]
        program = str(folder / "bin" / "artemis")  # it asks the one that runs
        run_command(program, "user", "add", *names, "--role", "amq", *admin, "--url", url)
        our_user(folder, "add", "ann", "--role", "amq", password="hashed: 100,000 times")
        our_user(folder, "add", "my user", "--role", "amq,more", "--plaintext", password="plain # = :text\\")
        our_user(folder, "add", "zoë 日本", "--role", "amq", password="pässwörd €")
        for user in ("changed", "gone"):
            our_user(folder, "add", user, "--role", "amq", password="before")
        our_user(folder, "reset", "changed", password="after")
        our_user(folder, "rm", "gone")
        agree(port)
    listed = our_user(folder, "list")
    assert re.search(r"^theirs +amq +hash, 1,024 iterations$", listed, re.MULTILINE)
    assert re.search(r"^my user +amq, more +plain text$", listed, re.MULTILINE)
    with started(folder, log=folder / "ours.log") as broker:
        agree(port)
        assert broker.stop() == 0
