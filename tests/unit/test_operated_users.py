"""The users of a running broker: files that have not changed are not read again."""

from __future__ import annotations

import os
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from artemis_py.config.reader import load
from artemis_py.errors import BrokerError, NotFoundError
from artemis_py.server.management import OperatedUsers
from tests.kit.documents import broker_xml

THREADS = ThreadPoolExecutor(1)
LOOP: Any = SimpleNamespace(run_in_executor=lambda _, work: THREADS.submit(work))
"""The loop, as far as it is used: who asks for a result waits for it."""


def done(steps: Generator[Any, None, Any]) -> Any:
    """What a work returns whose waits are over."""
    try:
        while True:
            next(steps)
    except StopIteration as ended:
        return ended.value


class World:
    """A configuration with users, and the operations on them."""

    def __init__(self, folder: Path, core: str = "") -> None:
        self.users, self.roles = folder / "artemis-users.properties", folder / "artemis-roles.properties"
        file = broker_xml(folder, core)
        self.users.write_text("ann = a\n")
        self.roles.write_text("amq = ann\n")
        self.config = load(file, environ={})
        self.operated = OperatedUsers(LOOP, lambda: self.config, None)
        for path in (file, self.users, self.roles):
            os.utime(path, (1_000_000, 1_000_000))


def test_files_are_read_again_when_they_have_changed(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = done(world.operated.known())
    assert done(world.operated.known()) is first
    world.users.write_text("ann = a\nbob = b\n")
    os.utime(world.users, (1_000_001, 1_000_001))
    assert [one.name for one in done(world.operated.known())] == ["ann", "bob"]
    world.roles.write_text("amq = ann,bob\n")
    again = done(world.operated.known())
    assert [one.roles for one in again] == [("amq",), ("amq",)]
    assert done(world.operated.known()) is not again, "it changed a moment ago, and may change again with the same date"
    assert [world.operated.is_changeable(one) for one in again] == [True, True]


def test_what_cannot_be_changed(tmp_path: Path) -> None:
    world = World(tmp_path)
    with pytest.raises(NotFoundError, match="has no user bob"):
        done(world.operated.remove("bob"))
    with pytest.raises(BrokerError, match="already has a user ann"):
        done(world.operated.add("ann", "x", (), is_plain=True))
    with pytest.raises(BrokerError, match="a comma separates names"):
        done(world.operated.add("bob", "x", ("a,b",), is_plain=True))
    assert world.users.read_text() == "ann = a\n"
    (tmp_path / "jwt").mkdir()
    (tmp_path / "jwt" / "key").write_text("k" * 64)
    tokens = '<authentication><authenticator name="jwt"><option name="x" value="y"/></authenticator></authentication>'
    other = World(tmp_path / "jwt")
    other.users.unlink()
    other.roles.unlink()
    broker_xml(tmp_path / "jwt", tokens)
    other.config = load(tmp_path / "jwt" / "broker.xml", environ={})
    assert done(other.operated.known()) == []
    with pytest.raises(BrokerError, match="this broker has no users file: its users come from elsewhere"):
        done(other.operated.add("bob", "x", (), is_plain=True))
