"""Recovers large bodies at a start: those of messages in the journal, and in pages."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from artemis_py.message import Account, LargeBody
from artemis_py.paged_messages import Page, PagedBody
from artemis_py.record_log import RecordLog
from artemis_py.storage.bodies import LargeStore
from artemis_py.storage.disk.disk import Disk
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.names import page_name
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.journal.index import Index
from artemis_py.storage.pages import PageIndex, whole_records

# ---- bodies ----------------------------------------------------------------------------------------------------------
#
# Recovers large bodies at a start: which files living messages need, which are incomplete, which can be removed. A
# message with an incomplete body cannot be delivered. It is reported and settled on all of its queues, and the rest
# of its body is kept under another name. A crash never damages a synced body file.


def take_over(
    index: Index,
    log: RecordLog,
    large: LargeStore,
    *,
    keep_unused: bool = False,
    given_up: Collection[str] = (),
) -> list[str]:
    """Match the store with the living messages; pages already hold theirs (``page_bodies``). Returns a line for each
    message given up, and for each unused body put aside instead of removed: with ``keep_unused``, or if an earlier
    start had ``given_up`` a file of that name. Raises DiskError.
    """
    broken: list[tuple[Kept, LargeBody, str]] = []
    for message_id, segment in index.home.items():
        kept = segment.live[message_id]
        body = kept.message.body
        if isinstance(body, LargeBody):
            fault = large.fault_of(body)
            if fault is None:
                large.adopt(body)
            else:
                broken.append((kept, body, fault))
    report = []
    for kept, body, fault in broken:
        message = kept.message
        report.append(
            f"the body of message {message.id} to {message.head.address} (file {body.number:016x}) {fault}: the "
            "message is DAMAGED and was removed from its queues"
        )
        for queue_id in list(kept.queue_ids):
            log.settled(queue_id, [message], "damaged")
        large.give_up(body.number)
    return report + large.remove_unused(keep=keep_unused, given_up=given_up)


# ---- page bodies -----------------------------------------------------------------------------------------------------
#
# Large bodies of messages in pages: at a start, a page holds the files that its messages need.


def hold_bodies(disk: Disk, pages: PageIndex, log: RecordLog, large: LargeStore) -> list[str]:
    """Read the pages with large bodies, and hold the bodies that a queue still needs. A message with an incomplete body
    is settled on its queues; returns a line for each. Raises DiskError, also if an existing page cannot be read: its
    bodies must not count as unneeded.
    """
    report: list[str] = []
    names = set(disk.names())
    for page in pages.pages():
        if page.has_large and page_name(page.stream, page.number) in names:
            for place, kept in large_messages(disk, page):
                queue_ids = [number for number in kept.queue_ids if pages.needs(number, page, place)]
                if queue_ids:
                    report += _hold(page, place, kept, queue_ids, log, large)
    return report


def large_messages(disk: Disk, page: Page) -> list[tuple[int, Kept]]:
    """Persistent messages of a page with a large body, by place. A damaged page is marked but not reported; its readers
    do that. Messages after the damage are included.
    """
    data = disk.read(page_name(page.stream, page.number), 0, page.kept_bytes)
    if len(data) < page.kept_bytes:
        page.damaged = True
    found: list[tuple[int, Kept]] = []
    for record in whole_records(page, data, 0, _note_damage):
        if record.type_code == records.PAGED:
            with suppress(CodecError):
                kept = codec.decode_paged(record.payload)[1]
                if kept.flags & records.FLAG_LARGE and not kept.flags & records.FLAG_TRANSIENT:
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
    message = codec.as_paged(kept, 0, Account(), page, place)
    for queue_id in queue_ids:
        log.page_settled(queue_id, [message], "damaged")
    large.give_up(body.number)
    whose = f"the body of message {message.id} to {message.head.address} (file {body.number:016x})"
    return [f"{whose} {fault}: the message is DAMAGED and was removed from its queues"]
