"""Large bodies of messages that only the log still has, wherever their files are."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from artemis_py.message import LargeBody
from artemis_py.storage.disk.disk import DiskError, NoSpaceError
from artemis_py.storage.retention import retention
from tests.kit.bodies import Bodies
from tests.kit.keeping import Keeping

DATA = bytes(range(256)) * 40
HALF = len(DATA) // 2
"""Bodies are read in two pieces, as they are sent to clients."""


class RetainedBody(Bodies):
    """A store whose bodies are retained, and one body that no queue needs after ``let_go``."""

    def __init__(self, folder: Path) -> None:
        self.kept = Keeping(folder)
        super().__init__(self.kept.body_disk, retire=self.kept.bodies.retire, retired=self.kept.bodies)
        self._body: LargeBody | None = self.bring(DATA)
        self.logged = LargeBody(self._body.number, len(DATA), None, self._body.checksum)
        """As a record names it."""
        self.turn(1, 1)

    def let_go(self) -> None:
        """The last queue is done with the message."""
        self._body = None
        self.turn(1, 1)

    def held(self) -> LargeBody:
        """The body, for a reader of the log."""
        found = self.store.lookup.held(self.logged)
        assert found is not None
        return found


def test_a_body_in_use_and_one_that_is_retained(tmp_path: Path) -> None:
    kept = RetainedBody(tmp_path)
    assert kept.read(kept.held(), HALF)[0] == DATA
    kept.let_go()
    assert not list((tmp_path / "large").glob("*.body"))
    assert kept.read(kept.held(), HALF)[0] == DATA


def test_a_body_that_moves_while_it_is_read(tmp_path: Path) -> None:
    kept = RetainedBody(tmp_path)
    body = kept.held()
    kept.let_go()
    assert kept.read(body, HALF)[0] == DATA


def test_a_body_can_be_read_at_any_moment_of_its_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when its file has its new name, and nobody knows that yet."""
    kept = RetainedBody(tmp_path)
    move = retention.move
    read: list[bytes] = []

    def watched(source: Path, target: Path) -> None:
        read.append(kept.read(kept.held(), HALF)[0])
        move(source, target)
        read.append(kept.read(kept.held(), HALF)[0])

    monkeypatch.setattr(retention, "move", watched)
    kept.let_go()
    assert read == [DATA, DATA]


def test_a_body_that_finds_no_room_among_the_retained_ones_is_still_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = RetainedBody(tmp_path)
    monkeypatch.setattr(kept.store, "_retire", Mock(side_effect=NoSpaceError("it finds no room")))
    kept.let_go()
    assert kept.read(kept.held(), HALF)[0] == DATA


def test_a_body_that_is_held_is_not_purged(tmp_path: Path) -> None:
    """Only from a full disk."""
    kept = RetainedBody(tmp_path)
    kept.let_go()
    body: LargeBody | None = kept.held()
    assert body is not None
    kept.kept.bodies.purge_before(kept.kept.now_ms + 1000)
    assert kept.read(body, HALF)[0] == DATA
    body = None
    kept.kept.bodies.purge_before(kept.kept.now_ms + 1000)
    assert kept.store.lookup.held(kept.logged) is None


def test_a_body_that_a_full_disk_has_removed_fails_with_its_name(tmp_path: Path) -> None:
    kept = RetainedBody(tmp_path)
    kept.let_go()
    body = kept.held()
    assert kept.kept.bodies.give_up_oldest() is not None
    with pytest.raises(DiskError, match=f"the body {body.number:016x} was removed from the retained log"):
        kept.kept.bodies.read(body.number, 0, 10)
