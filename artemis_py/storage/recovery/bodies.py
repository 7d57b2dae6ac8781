"""Recovers large bodies at a start: which files living messages need, which are incomplete, which can be removed.

A message with an incomplete body cannot be delivered. It is reported and settled on all of its queues, and the rest of
its body is kept under another name. A crash never damages a synced body file.
"""

from __future__ import annotations

from collections.abc import Collection

from artemis_py.message import LargeBody
from artemis_py.records import RecordLog
from artemis_py.storage.bodies.store import LargeStore
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.journal.index import Index


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
