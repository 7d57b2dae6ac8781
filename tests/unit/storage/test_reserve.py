"""A reserve that is none: it cannot be made, or it is a file with holes."""

from __future__ import annotations

import os
from pathlib import Path

from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.declarations import RetentionConfig
from artemis_py.server.server import open_store
from artemis_py.storage.disk.space import RESERVE_NAME, SpaceReserve

RETAINED = "artemis-journal-000000000001-20260131T235959.999Z.log"


def test_no_history_goes_for_a_reserve_that_cannot_be_made(tmp_path: Path) -> None:
    """There was room enough; all of the retained log went all the same, and senders were held back for ever."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / RETAINED).write_bytes(bytes(4096))
    (tmp_path / "journal" / RESERVE_NAME).mkdir(parents=True)
    store = open_store(
        BrokerConfig(
            journal_directory=str(tmp_path / "journal"),
            paging_directory=str(tmp_path / "paging"),
            large_messages_directory=str(tmp_path / "large"),
            journal_file_size=4096,
            journal_retention=RetentionConfig(directory=str(kept), period_ms=None, storage_limit=None, cursor_ttl_s=60),
        ),
        lambda: None,
    )
    try:
        assert [line for line in store.report if RESERVE_NAME in line and "nothing is kept in reserve" in line]
        assert not any(room.is_short for room in store.reserves)
        store.make_room()
    finally:
        store.close()
    assert (kept / RETAINED).exists()


def test_a_reserve_with_holes_is_filled(tmp_path: Path) -> None:
    """Tools that copy files leave out what is not written: the copy is as long, and holds nothing."""
    path = tmp_path / RESERVE_NAME
    wanted = SpaceReserve(tmp_path, lambda: None, 1 << 20).wanted_bytes
    path.unlink()
    with path.open("wb") as stream:
        stream.truncate(wanted)
    room = SpaceReserve(tmp_path, lambda: None, 1 << 20)
    assert room.reserve_bytes == wanted
    assert os.stat(path).st_blocks * 512 >= wanted
    assert not room.is_short


def test_what_a_removed_file_frees_is_reserved_at_once(tmp_path: Path) -> None:
    """Whoever fills the disk took it otherwise, and the next acknowledgement found neither room nor history."""
    room = SpaceReserve(tmp_path, lambda: None, 1 << 20)
    room.sources.append(lambda: True)
    (tmp_path / RESERVE_NAME).unlink()  # what is lost with the file is the room that others had taken
    assert room.free_room(4096)
    assert room.reserve_bytes == room.wanted_bytes
    assert not room.is_short
