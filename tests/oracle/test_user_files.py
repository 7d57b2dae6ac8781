"""One pair of files, two brokers: users that either one's commands wrote log in at both."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.client import StompSocket
from tests.kit.process import BrokerProcess, eventually
from tests.oracle.artemis_broker import START_S, artemis_home
from tests.oracle.brokers import free_ports, running

COMMAND = (sys.executable, "-m", "artemis_py")
ADMIN = "made by Artemis"

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


class Instance:
    """An instance that Artemis' own `create` made, with one acceptor for STOMP and Artemis' commands."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder / "instance"
        self.ports = free_ports(("stomp",))
        create = [str(home / "bin" / "artemis"), "create", str(self.folder), "--user", "admin", "--password", ADMIN]
        options = ["--role", "amq", "--require-login", "--silent", "--no-autotune", "--no-web"]
        subprocess.run([*create, *options], stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=True)
        uri = f"tcp://127.0.0.1:{self.ports['stomp']}?protocols=CORE,STOMP"
        acceptors = f'<acceptors><acceptor name="stomp">{uri}</acceptor></acceptors>'
        quick = "<security-invalidation-interval>0</security-invalidation-interval>"
        file = self.folder / "etc" / "broker.xml"
        text = re.sub(r"<acceptors>.*</acceptors>", acceptors + quick, file.read_text(), flags=re.DOTALL)
        file.write_text(text)

    @contextmanager
    def ours(self) -> Iterator[None]:
        """Our broker runs on it."""
        broker = BrokerProcess(["run", str(self.folder)], self.folder / "ours.log")
        try:
            broker.await_ready()
            yield
            assert broker.stop() == 0
        finally:
            broker.kill()

    def our_user(self, *arguments: str, password: str = "") -> str:
        """One of our commands on its files."""
        given = ["--password-file", "-"] if password else []
        command = [*COMMAND, "user", *arguments, "--config", str(self.folder), *given]
        done = subprocess.run(command, input=f"{password}\n", capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def their_user(self, *arguments: str) -> None:
        """One of Artemis' commands, which asks the running Artemis."""
        url = f"tcp://127.0.0.1:{self.ports['stomp']}"
        command = [str(self.folder / "bin" / "artemis"), "user", *arguments, "--user", "admin", "--password", ADMIN]
        subprocess.run([*command, "--url", url], stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=True)

    def lets_in(self, user: str, password: str) -> bool:
        """Does the broker that runs accept this login?"""
        client = StompSocket(self.ports["stomp"])
        try:
            headers = {"accept-version": "1.2", "host": "localhost", "login": user, "passcode": password}
            client.send("CONNECT", headers)  # in which nothing is escaped
            return client.receive().command == "CONNECTED"
        finally:
            client.close()

    def agree(self, logins: Sequence[tuple[str, str, bool]]) -> None:
        """Each login has the expected answer, soon: Artemis reads a file again a second after it changed."""
        for user, password, expected in logins:
            eventually(f"{user} with {password}", lambda: self.lets_in(user, password), lambda seen: seen is expected)  # noqa: B023


@pytest.fixture
def instance(tmp_path: Path) -> Instance:
    home = artemis_home()
    if home is None:
        pytest.skip("no Artemis: neither ARTEMIS_HOME nor apache-artemis-* in a folder of .cache, or no Java")
    os.chmod(tmp_path, 0o755)
    return Instance(tmp_path, home)


def test_both_accept_the_users_of_each_other(instance: Instance) -> None:
    logins = [
        ("admin", ADMIN, True), ("admin", "else", False),
        ("ann", "hashed: 100,000 times", True), ("ann", "hashed", False),
        ("my user", "plain # = :text\\", True), ("my user", "plain", False),
        ("zoë 日本", "pässwörd €", True), ("zoë 日本", "pässwörd", False),
        ("theirs", "theirs too", True), ("theirs", "x", False),
        ("changed", "after", True), ("changed", "before", False),
        ("gone", "x", False),
    ]  # fmt: skip
    command = [str(instance.folder / "bin" / "artemis"), "run"]
    with running(command, instance.ports["stomp"], START_S, instance.folder / "artemis.log"):
        names = ["--user-command-user", "theirs", "--user-command-password", "theirs too"]
        instance.their_user("add", *names, "--role", "amq")
        instance.our_user("add", "ann", "--role", "amq", password="hashed: 100,000 times")
        instance.our_user("add", "my user", "--role", "amq,more", "--plaintext", password="plain # = :text\\")
        instance.our_user("add", "zoë 日本", "--role", "amq", password="pässwörd €")
        for user in ("changed", "gone"):
            instance.our_user("add", user, "--role", "amq", password="before")
        instance.our_user("reset", "changed", password="after")
        instance.our_user("rm", "gone")
        instance.agree(logins)
    listed = instance.our_user("list")
    assert re.search(r"^theirs +amq +hash, 1,024 iterations$", listed, re.MULTILINE)
    assert re.search(r"^my user +amq, more +plain text$", listed, re.MULTILINE)
    with instance.ours():
        instance.agree(logins)
