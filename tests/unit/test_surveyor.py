"""The thread that surveys segments goes on, whatever stands in one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from artemis_py.message import SENT, UNKNOWN, Account, Head, Message, encode_headers
from artemis_py.server.journal_store import Surveyor
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.crash.prepared import QUEUE, QUEUE_ID, commit, open_journal
from tests.kit.disk import SimDisk
from tests.kit.process import eventually


@pytest.mark.parametrize("provenance", [UNKNOWN, SENT])
@pytest.mark.parametrize("original", ["9" * 5000, "0" * 5000 + "7", "9" * 20, "", "x", "7"])
def test_a_client_may_write_anything_into_the_header_of_a_copy(tmp_path: Path, original: str, provenance: int) -> None:
    """A number of five thousand digits ended the thread: no segment was surveyed any more. Only of an older log what a
    client wrote may be the broker's.
    """
    found: dict[int, dict[str, Any]] = {}

    def find(number: int) -> Path:
        path = tmp_path / segment_name(number)
        if number == 2:
            raise RuntimeError("what nobody expects")
        disk = SimDisk(random.Random(1))
        journal, committer, _ = open_journal(disk, JournalSettings(file_bytes=65536, compact_files_min=0))
        journal.records.queue_changed(dict(QUEUE))
        head = Head(
            encode_headers([("destination", "q"), ("_AMQ_ORIG_MESSAGE_ID", (original if number == 1 else "7"))]),
            "q",
            persistent=True,
        )
        head.provenance = provenance
        journal.records.published(Message(head, b"x", 1, 1000, 0, Account(), 0), [QUEUE_ID], 0)
        commit(journal, committer)
        path.write_bytes(disk.read(segment_name(1)))
        return path

    surveyor = Surveyor(find, lambda number, fields, _: found.update({number: fields}))
    try:
        for number in (1, 2, 3):
            surveyor.add(number)
        eventually("the last segment is surveyed", lambda: 3 in found, bool)
    finally:
        surveyor.stop()
    is_told = provenance == UNKNOWN and original.endswith("7")
    assert found[1]["ids"] == ([[1, 1], [7, 7]] if is_told else [[1, 1]])
    assert found[1]["copies"] == (provenance == UNKNOWN)
    assert sorted(found) == [1, 3]
