"""Every byte of every kind of file beside the journal's segments changed, and every file removed: a start loses at most
what the file was for, and tells it by name.

Segments are in tests/sim/test_every_byte.py, what stands in pages in tests/model/test_page_damage.py, what stands in
bodies in test_large.py, the log's id in tests/unit/test_log_view.py.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from artemis_py.storage.format.log_events import Published
from artemis_py.storage.format.names import page_numbers, read_name
from artemis_py.storage.format.reader import events_of
from artemis_py.storage.format.scan import Damage, log_file
from artemis_py.storage.recovery.accept_journal import LossError
from tests.kit.crash.damaged import published_by
from tests.kit.crash.prepared import overwrite, records
from tests.kit.disk import SimDisk
from tests.kit.files import flip
from tests.kit.process import LONG
from tests.unit.storage.test_room_to_the_end import Life, Start, threads

__all__ = ["threads"]
pytestmark = pytest.mark.interpreted
MASKS = (0x01, 0x10, 0x80, 0xFF)


@pytest.fixture
def made(tmp_path: Path, threads: None) -> Path:
    """The files of a store with some of everything."""
    life = Life(tmp_path / "made")
    assert life.failure is None
    life.store._opened.close()
    return tmp_path / "made"


def _started(made: Path, change: Callable[[Path], object]) -> Start:
    """On a copy of the files, changed in some way."""
    root = made.with_name("changed")
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(made, root)
    change(root)
    return Start(root, retains=True)


def _files(made: Path) -> list[Path]:
    return sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())


def _is_segment(path: Path) -> bool:
    return log_file(path) is not None and path.parts[0] == "journal"


def test_some_of_everything_is_there(made: Path) -> None:
    names = {path.name for path in _files(made)}
    assert {"log-id", "journal-extent-1", "journal-extent-2", "journal-bindings.copy", "reserve.room"} <= names
    assert any(_is_segment(path) for path in _files(made))
    kept = [path.name for path in _files(made) if path.parts[0] == "kept"]
    assert [name for name in kept if name.endswith(".log")]
    assert [name for name in kept if name.endswith(".index")]
    assert [name for name in kept if name.endswith(".body")]
    assert [name for name in names if page_numbers(name) is not None]
    assert [name for name in names if name.startswith("spare-")]


def test_each_file_that_is_removed_costs_what_it_was_for(made: Path) -> None:
    whole = _started(made, lambda root: None)
    assert whole.damaged_places == 0
    for path in _files(made):
        if _is_segment(path):
            with pytest.raises(LossError, match="missing"):
                _started(made, lambda root, path=path: (root / path).unlink())  # type: ignore[misc]
            continue
        start = _started(made, lambda root, path=path: (root / path).unlink())  # type: ignore[misc]
        lost = whole.messages - start.messages
        if path.parts[0] == "large" and read_name(path.name) is not None:
            assert len(lost) <= 1, path
            assert not lost or path.stem in start.report, path
        else:
            assert not lost, path
        assert start.pages == whole.pages, path
        assert start.reserve_bytes == start.wanted_bytes


@pytest.mark.parametrize("stride", [193, pytest.param(1, marks=LONG, id="every one")])
def test_a_byte_that_is_wrong_costs_no_message_at_a_start(made: Path, rng: random.Random, stride: int) -> None:
    whole = _started(made, lambda root: None)
    count, first = 0, rng.randrange(stride)
    for path in _files(made):
        if _is_segment(path) or path.name == "reserve.room":
            continue
        for offset in range(first, (made / path).stat().st_size, stride):
            mask = MASKS[offset % len(MASKS)]
            start = _started(made, lambda root, path=path, at=(offset, mask): flip(root / path, *at))  # type: ignore[misc]
            where = f"{path} at byte {offset}, bits {mask:#x}: {start.report}"
            assert start.messages == whole.messages, where
            assert start.pages == whole.pages, where
            assert start.reserve_bytes == start.wanted_bytes, where
            count += 1
    assert count > 20


def test_a_reserve_with_something_in_it_is_a_reserve(made: Path) -> None:
    start = _started(made, lambda root: flip(root / "journal" / "reserve.room", 0, 1))
    assert start.reserve_bytes == start.wanted_bytes


def test_every_byte_of_a_retained_segment(made: Path) -> None:
    """Readers lose what the record told that it is in, and are told where."""
    looked_at = 0
    for path in (made / "kept").glob("*.log"):
        data = path.read_bytes()
        disk = SimDisk(random.Random(1))
        disk.create(path.name, len(data))
        overwrite(disk, path.name, 0, data)
        wanted = _published(path.name, data, [])
        for record in records(disk, path.name):
            may_lose = {message_id for _, message_id in published_by(record)}
            for offset in range(record.offset, record.end):
                damaged = bytearray(data)
                damaged[offset] ^= MASKS[offset % len(MASKS)]
                damages: list[Damage] = []
                found = _published(path.name, bytes(damaged), damages)
                assert wanted - found <= may_lose, f"{path.name} at byte {offset}"
                assert found <= wanted
                assert [damage.offset for damage in damages] == [record.offset], f"{path.name} at byte {offset}"
                looked_at += 1
    assert looked_at > 1000


def _published(name: str, data: bytes, damages: list[Damage]) -> set[int]:
    events = events_of(name, data, damages, is_last=False)
    return {event.kept.message.id for event in events if isinstance(event, Published)}
