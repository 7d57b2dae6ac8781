"""Large bodies of messages that only the log still has, wherever their files are."""

from __future__ import annotations

import weakref
from pathlib import Path
from unittest.mock import Mock

import pytest

from artemis_py.message import LargeBody
from artemis_py.storage.bodies import LargeStore
from artemis_py.storage.disk.disk import DiskError, FileDisk, NoSpaceError
from artemis_py.storage.retention import retention
from artemis_py.storage.retention.retention import RetainedBodies
from tests.kit.committer import SteppedCommitter

DATA = bytes(range(256)) * 40


class RetainedBody:
    """A store whose bodies are retained, and one body that no queue needs after ``let_go``."""

    def __init__(self, folder: Path) -> None:
        disk = FileDisk(folder / "large")
        weakref.finalize(self, disk.close)
        self.now_ms = 1_000_000
        self.former = RetainedBodies(disk, folder / "large", folder / "large", folder / "kept", lambda: self.now_ms)
        committers = SteppedCommitter(at_once=True), SteppedCommitter(at_once=True)
        self.store = LargeStore(disk, *committers, retire=self.former.retire, retired=self.former)
        upload = self.store.begin(durable=True)
        upload.append(DATA)
        upload.end()
        self._body: LargeBody | None = upload.body
        self.logged = LargeBody(upload.body.number, len(DATA), None, upload.body.checksum)
        """As a record names it."""
        self.store.seal(1, 1)
        self.store.poll()

    def let_go(self) -> None:
        """The last queue is done with the message."""
        self._body = None
        self.store.seal(1, 1)
        self.store.poll()

    def read(self, body: LargeBody) -> bytes:
        """All of a body, in two pieces, as it is sent to clients."""
        half = len(DATA) // 2
        found = b""
        for begin, end in ((0, half), (half, len(DATA))):
            self.store.read(body, begin, end - begin, self)
            (piece,) = self.store.take_fetched()
            assert piece.failure is None, piece.failure
            found += piece.data or b""
        return found

    def held(self) -> LargeBody:
        """The body, for a reader of the log."""
        found = self.store.lookup.held(self.logged)
        assert found is not None
        return found


def test_a_body_in_use_and_one_that_is_retained(tmp_path: Path) -> None:
    kept = RetainedBody(tmp_path)
    assert kept.read(kept.held()) == DATA
    kept.let_go()
    assert not list((tmp_path / "large").glob("*.body"))
    assert kept.read(kept.held()) == DATA


def test_a_body_that_moves_while_it_is_read(tmp_path: Path) -> None:
    kept = RetainedBody(tmp_path)
    body = kept.held()
    kept.let_go()
    assert kept.read(body) == DATA


def test_a_body_can_be_read_at_any_moment_of_its_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when its file has its new name, and nobody knows that yet."""
    kept = RetainedBody(tmp_path)
    move = retention.move
    read: list[bytes] = []

    def watched(source: Path, target: Path) -> None:
        read.append(kept.read(kept.held()))
        move(source, target)
        read.append(kept.read(kept.held()))

    monkeypatch.setattr(retention, "move", watched)
    kept.let_go()
    assert read == [DATA, DATA]


def test_a_body_that_finds_no_room_among_the_retained_ones_is_still_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = RetainedBody(tmp_path)
    monkeypatch.setattr(kept.store, "_retire", Mock(side_effect=NoSpaceError("it finds no room")))
    kept.let_go()
    assert kept.read(kept.held()) == DATA


def test_a_body_that_is_held_is_not_purged(tmp_path: Path) -> None:
    """Only from a full disk."""
    kept = RetainedBody(tmp_path)
    kept.let_go()
    body: LargeBody | None = kept.held()
    assert body is not None
    kept.former.purge_before(kept.now_ms + 1000)
    assert kept.read(body) == DATA
    body = None
    kept.former.purge_before(kept.now_ms + 1000)
    assert kept.store.lookup.held(kept.logged) is None


def test_a_body_that_a_full_disk_has_removed_fails_with_its_name(tmp_path: Path) -> None:
    kept = RetainedBody(tmp_path)
    kept.let_go()
    body = kept.held()
    assert kept.former.give_up_oldest() is not None
    with pytest.raises(DiskError, match=f"the body {body.number:016x} was removed from the retained log"):
        kept.former.read(body.number, 0, 10)
