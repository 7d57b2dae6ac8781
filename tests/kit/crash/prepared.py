"""A journal with known records, written without a broker, for tests that then damage it."""

from __future__ import annotations

import random
from itertools import count

from artemis_py.message import Account, Head, LargeBody, Message, encode_headers
from artemis_py.storage.format.names import segment_name, segment_number
from artemis_py.storage.format.records import BATCH, FILE_HEADER_BYTES, Record, decode_record
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.recovery.accept_journal import Recovered
from tests.kit.committer import SteppedCommitter
from tests.kit.crash.opening import SimStore
from tests.kit.disk import SimDisk

SETTINGS = JournalSettings(file_bytes=65536, compact_files_min=0)
QUEUE_ID = 1
QUEUE = {
    "id": QUEUE_ID, "name": "q", "address": "q", "routing_type": "ANYCAST", "filter": None, "auto_created": False,
    "paused": False, "ring_size": None,
}  # fmt: skip


def message(number: int, body: bytes | LargeBody | None = None, address: str = "q") -> Message:
    """A persistent message with that id."""
    head = Head(encode_headers([("destination", address), ("number", str(number))]), address, persistent=True)
    return Message(head, b"body %d" % number if body is None else body, number, 1000 + number, 0, Account(), 0)


def open_journal(disk: SimDisk, settings: JournalSettings | None = None) -> tuple[Journal, SteppedCommitter, Recovered]:
    """Open what is on the disk as a broker does, for tests that want the journal alone."""
    store = SimStore(disk, settings or SETTINGS)
    return store.files.journal, store.committer, store.recovered


def begin(
    settings: JournalSettings | None = None, disk: SimDisk | None = None, *, seed: int = 1
) -> tuple[SimDisk, Journal, SteppedCommitter]:
    """A new journal with one queue, whose record waits for the first batch."""
    disk = disk or SimDisk(random.Random(seed))
    journal, committer, _ = open_journal(disk, settings)
    journal.records.queue_changed(dict(QUEUE))
    return disk, journal, committer


def commit(journal: Journal, committer: SteppedCommitter) -> None:
    """Make durable what was gathered."""
    while journal.has_pending:
        journal.poll()
        journal.seal()
        committer.stop()
    journal.poll()


def publish(journal: Journal, committer: SteppedCommitter, *messages: Message) -> int:
    """Messages to the queue, in a batch of their own; returns the last lsn."""
    lsns = [journal.records.published(one, [QUEUE_ID], 0) for one in messages]
    commit(journal, committer)
    return lsns[-1]


def prepare(*batches: int, file_bytes: int = 65536) -> SimDisk:
    """A disk with one queue and messages 1, 2, 3...: as many in each batch as told."""
    disk, journal, committer = begin(JournalSettings(file_bytes=file_bytes, compact_files_min=0))
    numbers = count(1)
    for messages in batches:
        publish(journal, committer, *(message(next(numbers)) for _ in range(messages)))
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


def record_of(disk: SimDisk, number: int) -> Record:
    """That of a message in the first file."""
    return next(one for one in records(disk, segment_name(1)) if b"number:%d\n" % number in one.payload + b"\n")


def last_segment(disk: SimDisk) -> str:
    """The name of the newest journal file."""
    return [name for name in disk.names() if segment_number(name) is not None][-1]


def batch_starts(disk: SimDisk, name: str) -> list[int]:
    """Where each batch of a file begins."""
    return [record.offset for record in records(disk, name) if record.type_code == BATCH]


def overwrite(disk: SimDisk, name: str, offset: int, data: bytes) -> None:
    """Change a file behind the broker's back."""
    disk.write(name, offset, data)
    disk.sync(name)


def flip(disk: SimDisk, name: str, offset: int, bits: int = 0xFF) -> None:
    """Change one byte."""
    overwrite(disk, name, offset, bytes([disk.read(name)[offset] ^ bits]))
