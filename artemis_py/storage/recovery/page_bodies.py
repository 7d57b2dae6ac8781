"""Large bodies of messages in pages: at a start, a page holds the files that its messages need."""

from __future__ import annotations

from contextlib import suppress

from artemis_py.message import Account, LargeBody
from artemis_py.paged import Page, PagedBody
from artemis_py.records import RecordLog
from artemis_py.storage.bodies.store import LargeStore
from artemis_py.storage.disk.disk import Disk
from artemis_py.storage.format import codec, page_codec
from artemis_py.storage.format.codec import CodecError, Kept
from artemis_py.storage.pages.files import whole_records
from artemis_py.storage.pages.index import PageIndex


def hold_bodies(disk: Disk, pages: PageIndex, log: RecordLog, large: LargeStore) -> list[str]:
    """Read the pages with large bodies, and hold the bodies that a queue still needs. A message with an incomplete body
    is settled on its queues; returns a line for each. Raises DiskError, also if an existing page cannot be read: its
    bodies must not count as unneeded.
    """
    report: list[str] = []
    names = set(disk.names())
    for page in pages.pages():
        if page.has_large and page_codec.page_name(page.stream, page.number) in names:
            for place, kept in large_messages(disk, page):
                queue_ids = [number for number in kept.queue_ids if pages.needs(number, page, place)]
                if queue_ids:
                    report += _hold(page, place, kept, queue_ids, log, large)
    return report


def large_messages(disk: Disk, page: Page) -> list[tuple[int, Kept]]:
    """Persistent messages of a page with a large body, by place. A damaged page is marked but not reported; its readers
    do that. Messages after the damage are included.
    """
    data = disk.read(page_codec.page_name(page.stream, page.number), 0, page.kept_bytes)
    if len(data) < page.kept_bytes:
        page.damaged = True
    found: list[tuple[int, Kept]] = []
    for record, _ in whole_records(page, data, 0, _note_damage):
        if record.type_code == codec.PAGED:
            with suppress(CodecError):
                kept = page_codec.decode_paged(record.payload)[1]
                if kept.flags & codec.FLAG_LARGE and not kept.flags & codec.FLAG_TRANSIENT:
                    found.append((record.lsn, kept))
    return found


def _note_damage(page: Page, _offset: int, _reason: str) -> None:
    page.damaged = True


def _hold(page: Page, place: int, kept: Kept, queue_ids: list[int], log: RecordLog, large: LargeStore) -> list[str]:
    body = kept.message.body
    assert isinstance(body, LargeBody)
    fault = large.fault_of(body)
    if fault is None:
        large.adopt(body)
        page.large[place] = PagedBody(body, queue_ids)
        return []
    message = page_codec.as_paged(kept, 0, Account(), page, place)
    for queue_id in queue_ids:
        log.page_settled(queue_id, [message], "damaged")
    large.give_up(body.number)
    whose = f"the body of message {message.id} to {message.head.address} (file {body.number:016x})"
    return [f"{whose} {fault}: the message is DAMAGED and was removed from its queues"]
