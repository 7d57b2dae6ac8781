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
from tests.kit.crash.projection import Identity, Item, identity

PageKey = tuple[int, int]


class WitnessedPages(PageFiles):
    """Page files that remember what was put into each page, for the journal's witness to write down."""

    def __init__(self, *told: Any) -> None:
        super().__init__(*told)
        self.fresh: dict[PageKey, list[tuple[Identity, list[int], int]]] = {}
        self.ids: dict[PageKey, list[int]] = {}
        self._encoded: tuple[Message, list[int], int] | None = None

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


def paged_items(kept: KeptStream, disk: Disk) -> dict[int, list[Item]]:
    """What is left in the pages of one address, by queue number, read from the files by the format's own rules."""
    found: dict[int, list[Item]] = {}
    for page in kept.pages:
        data = disk.read(page_name(page.stream, page.number))[: page.size_bytes]
        offset = records.FILE_HEADER_BYTES
        while (record := records.decode_record(data, offset)) is not None:
            offset = record.end
            one = codec.decode_paged(record.payload)[1] if record.type_code == records.PAGED else None
            if one is None or one.flags & records.FLAG_TRANSIENT:
                continue
            for queue_id in one.queue_ids:
                settled = kept.settled.get((queue_id, page.number))
                if queue_id in page.durable and (settled is None or record.lsn not in settled.places):
                    attempts, due_ms = kept.attempts.get((queue_id, record.lsn), (0, one.detail(queue_id).due_ms))
                    found.setdefault(queue_id, []).append(Item(identity(one.message, disk), attempts, due_ms))
    return found
