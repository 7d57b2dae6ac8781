"""A journal with known records, written without a broker, for tests that then damage it."""

from __future__ import annotations

import random
from dataclasses import dataclass

from artemis_py.message import Account, Head, Message, encode_headers
from artemis_py.storage.format.names import segment_number
from artemis_py.storage.format.records import BATCH, FILE_HEADER_BYTES, Record, decode_record
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.open import Disks, OpenStore, StoreSettings, Workers, open_files
from artemis_py.storage.recovery.accept_journal import Recovered, examine_or_refuse
from tests.kit.committer import SteppedCommitter
from tests.kit.disk import SimDisk

QUEUE_ID = 1
QUEUE = {
    "id": QUEUE_ID, "name": "q", "address": "q", "routing_type": "ANYCAST", "filter": None, "auto_created": False,
    "paused": False, "ring_size": None,
}  # fmt: skip


def message(number: int, body: bytes | None = None) -> Message:
    """A persistent message with that id."""
    head = Head(encode_headers([("destination", "q"), ("number", str(number))]), "q", persistent=True)
    return Message(head, b"body %d" % number if body is None else body, number, 1000 + number, 0, Account(), 0)


@dataclass(frozen=True, slots=True)
class OpenedDisk:
    """The files of a broker on one disk. ``committer`` writes the journal, ``worker`` does everything else."""

    files: OpenStore
    committer: SteppedCommitter
    worker: SteppedCommitter
    recovered: Recovered


def open_disk(disk: SimDisk, settings: JournalSettings | None = None) -> OpenedDisk:
    """Open what is on the disk as a broker does."""
    recovered = examine_or_refuse(disk)
    committer, worker = SteppedCommitter(lambda: None), SteppedCommitter(lambda: None)
    files = open_files(
        recovered,
        Disks(journal=disk, pages=disk, bodies=disk),
        Workers(committer=committer, page_reader=worker, body_writer=worker, body_reader=worker),
        StoreSettings(journal=settings or JournalSettings(file_bytes=65536, compact_files_min=0)),
        say=lambda line: None,
    )
    return OpenedDisk(files, committer, worker, recovered)


def open_journal(disk: SimDisk, settings: JournalSettings | None = None) -> tuple[Journal, SteppedCommitter, Recovered]:
    """The same, for tests that want the journal alone."""
    opened = open_disk(disk, settings)
    return opened.files.journal, opened.committer, opened.recovered


def commit(journal: Journal, committer: SteppedCommitter) -> None:
    """Make durable what was gathered."""
    while journal.has_pending:
        journal.poll()
        journal.seal()
        committer.stop()
    journal.poll()


def prepare(*batches: int, file_bytes: int = 65536) -> SimDisk:
    """A disk with one queue and messages 1, 2, 3...: as many in each batch as told."""
    disk = SimDisk(random.Random(1))
    journal, committer, _ = open_journal(disk, JournalSettings(file_bytes=file_bytes, compact_files_min=0))
    journal.records.queue_changed(dict(QUEUE))
    number = 0
    for count in batches:
        for _ in range(count):
            number += 1
            journal.records.published(message(number), [QUEUE_ID], 0)
        commit(journal, committer)
    return disk


def kept_ids(recovered: Recovered) -> list[int]:
    """The messages on the queue, in order."""
    survivors = recovered.index.recovered_state().messages.get(QUEUE_ID, [])
    return [survivor.message.id for survivor in survivors]


def records(disk: SimDisk, name: str) -> list[Record]:
    """The records of an undamaged file."""
    data = disk.read(name)
    found = []
    offset = FILE_HEADER_BYTES
    while (record := decode_record(data, offset)) is not None:
        found.append(record)
        offset = record.end
    return found


def last_segment(disk: SimDisk) -> str:
    """The name of the newest journal file."""
    return [name for name in disk.names() if segment_number(name) is not None][-1]


def batch_starts(disk: SimDisk, name: str) -> list[int]:
    """Where each batch begins."""
    return [record.offset for record in records(disk, name) if record.type_code == BATCH]


def overwrite(disk: SimDisk, name: str, offset: int, data: bytes) -> None:
    """Change a file behind the broker's back."""
    disk.write(name, offset, data)
    disk.sync(name)


def flip(disk: SimDisk, name: str, offset: int, bits: int = 0xFF) -> None:
    """Change one byte."""
    overwrite(disk, name, offset, bytes([disk.read(name)[offset] ^ bits]))


def cut(disk: SimDisk, name: str, size: int) -> None:
    """Make a file end after ``size`` bytes."""
    file = disk.files[name]
    del file.data[size:]
    file.sync()
