"""A small journal with everything in it, damaged in every way, and a ledger of what every record was for."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from artemis_py.storage.format.codec import decode_message
from artemis_py.storage.format.names import segment_number
from artemis_py.storage.format.records import GROUP, MESSAGE, Record, inner_records
from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.recovery.accept_journal import Recovered, recover
from tests.kit.crash.prepared import QUEUE, commit, message, open_journal, records
from tests.kit.disk import File, SimDisk

FILE_BYTES = 700
QUEUES = {1: "orders", 2: "invoices", 3: "empty"}


@dataclass
class Made:
    """The files of a journal after an orderly stop, and what they mean."""

    files: dict[str, bytes] = field(default_factory=dict)
    alive: set[tuple[int, int]] = field(default_factory=set)
    """Queue and message."""
    settled: set[tuple[int, int]] = field(default_factory=set)

    def disk(self) -> SimDisk:
        """A disk with these files."""
        disk = SimDisk(random.Random(1))
        disk.files = {name: File(bytearray(data), bytearray(data)) for name, data in self.files.items()}
        return disk

    @property
    def segments(self) -> list[str]:
        """The journal's files, in order."""
        return [name for name in sorted(self.files) if segment_number(name) is not None]

    def record_at(self, name: str, offset: int) -> Record | None:
        """The record that a byte belongs to; None in a header and behind the last record."""
        found = [record for record in records(self.disk(), name) if record.offset <= offset < record.end]
        return found[0] if found else None


def published_by(record: Record) -> set[tuple[int, int]]:
    """Queue and message of everything that a record publishes."""
    if record.type_code == GROUP:
        return {one for inner in inner_records(record.payload) for one in published_by(inner)}
    if record.type_code != MESSAGE:
        return set()
    kept = decode_message(record.payload)
    return {(queue_id, kept.message.id) for queue_id in kept.queue_ids}


def make(file_bytes: int = FILE_BYTES) -> Made:
    """Messages on two queues, acknowledgements, failed deliveries, transactions, duplicate ids, a cursor, bindings that
    were written again when the first file went, and a queue on which nothing stands.
    """
    made = Made()
    disk = SimDisk(random.Random(1))
    settings = JournalSettings(file_bytes=file_bytes, compact_files_min=0, files_min=0)
    journal, committer, _ = open_journal(disk, settings)
    for queue_id, name in QUEUES.items():
        journal.records.address_changed({"name": name, "routing_types": ["ANYCAST"], "auto_created": False})
        journal.records.queue_changed({**QUEUE, "id": queue_id, "name": name, "address": name})
    commit(journal, committer)
    while journal.segments[0].number == 1:
        journal.records.cursor_changed({"name": "reader", "lsn": 1, "owner": "", "ttl_s": 60, "moved_ms": 1})
        commit(journal, committer)
    for number in range(1, 13):
        queue_ids = [1, 2] if number % 4 == 0 else [number % 2 + 1]
        one = message(number)
        if number % 5 == 0:
            journal.records.begin_group(transactional=True)
        journal.records.published(one, list(queue_ids), 0)
        made.alive |= {(queue_id, number) for queue_id in queue_ids}
        if number % 5 == 0:
            journal.records.duplicate_id("orders", f"id {number}")
            journal.records.published(message(number + 100), [1], 0)
            made.alive.add((1, number + 100))
            journal.records.end_group()
        if number % 3 == 0:
            commit(journal, committer)
            journal.records.settled(queue_ids[0], [one], "acked")
            made.alive.remove((queue_ids[0], number))
            made.settled.add((queue_ids[0], number))
        if number % 4 == 1:
            journal.records.attempted(queue_ids[0], one, 2, 0)
        if number % 2:
            commit(journal, committer)
    commit(journal, committer)
    journal.finish()
    committer.stop()
    made.files = {name: bytes(disk.read(name)) for name in disk.names()}
    return made


def found_in(recovered: Recovered) -> set[tuple[int, int]]:
    """Queue and message of everything that lives."""
    index = recovered.index
    return {
        (queue_id, message_id)
        for message_id, segment in index.home.items()
        for queue_id in segment.live[message_id].queue_ids
    }


def judge(made: Made, disk: SimDisk, may_lose: set[tuple[int, int]], what: str) -> Recovered:
    """Start on a damaged disk: nothing but ``may_lose`` is gone, that is told, and no queue is unknown."""
    recovered = recover(disk)
    found = found_in(recovered)
    lost = made.alive - found
    assert lost <= may_lose, f"{what}: {lost - may_lose} are lost, too"
    assert found - made.alive <= made.settled, f"{what}: messages from nowhere"
    assert {number: one["name"] for number, one in recovered.index.queues.items()} == QUEUES, what
    assert set(recovered.index.addresses) == set(QUEUES.values()), what
    damages = [damage for damage in recovered.damages if not damage.torn]
    told = sum(damage.lost for damage in damages)
    assert len({number for _, number in lost}) <= told, f"{what}: {lost} are lost, told: {damages}"
    if found - made.alive:
        assert damages, f"{what}: {found - made.alive} come again, and nothing is told"
    journal, committer, _ = open_journal(disk, JournalSettings(file_bytes=FILE_BYTES, compact_files_min=0, files_min=0))
    journal.finish()  # a broker makes its copy of bindings anew, and writes nothing else
    committer.stop()
    again = recover(disk)
    assert found_in(again) == found, f"{what}: the next start finds something else"
    return recovered
