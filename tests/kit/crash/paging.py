"""Pages beside the journal's witness: what was put into them is written down, and read back after a crash."""

from __future__ import annotations

from typing import Any

from artemis_py.message import Message
from artemis_py.paged_messages import Page
from artemis_py.record_log import KeptStream
from artemis_py.storage.disk.disk import Disk
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.names import page_name
from artemis_py.storage.pages import PageFiles
from tests.kit.crash.projection import Identity, identity

PageKey = tuple[int, int]


class WitnessedPages(PageFiles):
    """Page files that remember what was put into each page, for the journal's witness to write down."""

    fresh: dict[PageKey, list[tuple[Identity, list[int], int]]]
    ids: dict[PageKey, list[int]]
    _encoded: tuple[Message, list[int], int] | None

    def watch(self) -> None:
        """Begin to remember."""
        self.fresh = {}
        self.ids = {}
        self._encoded = None

    def encode(self, message: Message, place: int, queue_ids: list[int], due_ms: int) -> bytes:
        self._encoded = message, list(queue_ids), due_ms
        return super().encode(message, place, queue_ids, due_ms)

    def append(self, page: Page, record: bytes, *, durable: bool) -> None:
        super().append(page, record, durable=durable)
        assert self._encoded is not None
        message, queue_ids, due_ms = self._encoded
        self._encoded = None  # or the file of its body would be held
        if message.head.persistent:
            self.fresh.setdefault((page.stream, page.number), []).append(
                (identity(message, self._disk), queue_ids, due_ms)
            )
            self.ids.setdefault((page.stream, page.number), []).append(message.id)


def paged_items(kept: KeptStream, disk: Disk) -> dict[int, list[tuple[Identity, int, int]]]:
    """What is left in the pages of one address, by queue number: (message, attempts, due time), read from the files by
    the format's own rules.
    """
    found: dict[int, list[tuple[Identity, int, int]]] = {}
    for page in kept.pages:
        data = disk.read(page_name(page.stream, page.number))[: page.size_bytes]
        offset = records.FILE_HEADER_BYTES
        while (record := records.decode_record(data, offset)) is not None:
            offset = record.end
            if record.type_code == records.PAGED:
                _add_item(found, kept, page, record.lsn, codec.decode_paged(record.payload)[1], disk)
    return found


def _add_item(
    found: dict[int, list[Any]], kept: KeptStream, page: Page, place: int, one: codec.Kept, disk: Disk
) -> None:
    if one.flags & records.FLAG_TRANSIENT:
        return
    for queue_id in one.queue_ids:
        settled = kept.settled.get((queue_id, page.number))
        if queue_id not in page.durable or (settled is not None and place in settled.places):
            continue
        attempts, due_ms = kept.attempts.get((queue_id, place), (0, one.detail(queue_id).due_ms))
        found.setdefault(queue_id, []).append((identity(one.message, disk), attempts, due_ms))
