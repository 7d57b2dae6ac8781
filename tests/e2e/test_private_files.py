"""The broker's files hold every message: they are for its own user, whatever the umask."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.e2e.test_untrusted_text import CORE, logged
from tests.kit.client import connected
from tests.kit.process import running

pytestmark = pytest.mark.e2e


def used(folder: Path, data: Path) -> str:
    """Has a broker make a file of each kind below ``data``; returns what it said."""
    text = logged(folder=data, core=f"{CORE}<journal-file-size>64K</journal-file-size>")
    before = os.umask(0)
    try:
        with running(text, folder) as broker:
            with connected(broker.port) as client:
                for number in range(40):
                    body = b"x" * (200_000 if number == 20 else 8_000)
                    client.ask("SEND", {"destination": "/queue/q", "persistent": "true", "number": number}, body)
                client.subscribe("/queue/q", ack="client-individual")
                for _ in range(40):
                    client.acknowledge(client.message())
                for _ in range(20):
                    client.ask("SEND", {"destination": "/queue/q", "persistent": "true"}, b"y" * 8_000)
            kept = data / "kept"
            broker.eventually("retained files", lambda: len(list(kept.rglob("*.*"))), lambda count: count >= 4)
            said = broker.said
    finally:
        os.umask(before)
    return said


def test_files_and_directories_are_private(tmp_path: Path) -> None:
    data = tmp_path / "made" / "data"
    said = used(tmp_path, data)
    made = tmp_path / "made"
    found = {str(path.relative_to(made)): stat.S_IMODE(path.stat().st_mode) for path in made.rglob("*")}
    names = " ".join(found)
    for part in ("log-id", "server.lock", ".log", ".page", "kept", "paging", "large", "journal"):
        assert part in names, f"nothing of {part} was made: {names}"
    wrong = {name: oct(mode) for name, mode in found.items() if mode & 0o077}
    assert not wrong
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o700
    assert "other users" not in said


def test_directories_that_are_there_stay_as_they_are_and_are_told_of(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name, mode in (("journal", 0o775), ("paging", 0o755), ("kept", 0o777)):
        (data / name).mkdir(parents=True)
        (data / name).chmod(mode)
    said = used(tmp_path, data)
    assert f"{data / 'journal'} has mode 0775: other users" in said
    assert f"{data / 'kept'} has mode 0777: other users" in said
    assert f"{data / 'paging'} has mode" not in said
    assert stat.S_IMODE((data / "journal").stat().st_mode) == 0o775
