"""An instance that a real Artemis has made, with users that it has added: both brokers let the same people in.

They run in the same folder, one after the other, and neither harms the files of the other.
"""

from __future__ import annotations

import hashlib
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.kit.client import Closed, StompSocket
from tests.kit.ports import free_port
from tests.oracle.artemis_broker import run_command
from tests.oracle.brokers import listening

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(300)]

LOCK = "data/journal/server.lock"
ADMIN = ("admin", "admin pass:word")
ADDED = (
    ("hashed", "pässwörd", "amq", False),
    ("plain", "se=cret", "amq", True),
    ("guest only", "idle", "guests", False),
)
LOGINS: tuple[tuple[str | None, str | None], ...] = (
    ADMIN,
    ("admin", "wrong"),
    ("admin", ""),
    ("admin", None),
    ("Admin", ADMIN[1]),
    *((user, password) for user, password, _, _ in ADDED),
    *((user, password.upper()) for user, password, _, _ in ADDED),
    ("nobody", "x"),
    ("", ""),
    (None, None),
    (None, "x"),
)


@pytest.fixture(params=["--require-login", "--allow-anonymous"])
def instance(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> tuple[Path, int]:
    """A new instance, and the port on which it speaks STOMP among others."""
    folder, port = tmp_path / "instance", free_port()
    run_command(
        str(home / "bin" / "artemis"), "create", "--silent", "--user", ADMIN[0], "--password", ADMIN[1], request.param,
        "--default-port", str(port), "--no-autotune", "--no-amqp-acceptor", "--no-hornetq-acceptor",
        "--no-mqtt-acceptor", "--no-stomp-acceptor", "--no-web", "--nio", str(folder),
    )  # fmt: skip
    return folder, port


def test_the_same_people_get_in(instance: tuple[Path, int]) -> None:
    folder, port = instance
    with listening([str(folder / "bin" / "artemis"), "run"], [port], folder / "artemis.log"):
        for user, password, role, is_plain in ADDED:
            run_command(
                str(folder / "bin" / "artemis"), "user", "add", "--silent", "--user", ADMIN[0], "--password", ADMIN[1],
                "--url", f"tcp://127.0.0.1:{port}", "--user-command-user", user, "--user-command-password", password,
                "--role", role, *(["--plaintext"] if is_plain else []),
            )  # fmt: skip
        wanted = [_login(port, *each) for each in LOGINS]
    assert any(each.startswith("CONNECTED") for each in wanted)
    before = _files(folder)
    lock = (folder / LOCK).read_bytes()
    with listening([sys.executable, "-m", "artemis_py", "run", str(folder)], [port], folder / "ours.log"):
        assert [_login(port, *each) for each in LOGINS] == wanted
    after = _files(folder)
    assert {name: after[name] for name in before} == before
    assert (folder / LOCK).read_bytes().startswith(lock), "its lock says more now, and nothing else"
    with listening([str(folder / "bin" / "artemis"), "run"], [port], folder / "again.log"):
        assert [_login(port, *each) for each in LOGINS] == wanted


def _login(port: int, user: str | None, password: str | None) -> str:
    """What the broker answers to these credentials, and whether they may then send."""
    given = {"login": user, "passcode": password}
    headers = {"accept-version": "1.2", "host": "h", **{name: text for name, text in given.items() if text is not None}}
    with StompSocket(port) as client, suppress(Closed):
        client.send("CONNECT", headers)
        answer = client.answer()
        if answer.command != "CONNECTED":
            return f"{answer.command} {answer.headers.get('message')}"
        answer = client.request("SEND", {"destination": "orders", "destination-type": "ANYCAST"}, b"1")
        return f"CONNECTED {answer.command}"  # the text names objects of Java
    return "closed"


def _files(folder: Path) -> dict[str, str]:
    """What every file in the folders of settings and data contains, but for the lock."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for part in ("etc", "data")
        for path in sorted((folder / part).rglob("*"))
        if path.is_file() and str(path.relative_to(folder)) != LOCK
    }
