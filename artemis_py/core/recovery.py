"""Puts back at a start what survived: messages, pages, and the ids that were seen."""

from __future__ import annotations

from collections.abc import Iterable

from artemis_py.config.changes import expired_because, replaced_because
from artemis_py.config.tables.declarations import NOWHERE
from artemis_py.core.addresses.routing_table import Bindings
from artemis_py.core.destinations.registry import Registry
from artemis_py.core.order.entry import Entry
from artemis_py.core.pages.page_stream import Streams
from artemis_py.core.publish.duplicates import NO_ADDRESS, Commits, Duplicates
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import Problem
from artemis_py.record_log import KeptStream, RecoveredState, Survivor
from artemis_py.terminal_output import many


def restore_ids(recovered: RecoveredState, bindings: Bindings, duplicates: Duplicates, commits: Commits) -> None:
    """Remember the duplicate ids that addresses have seen, and the ids of transactions."""
    for name, seen in recovered.duplicate_ids.items():
        if name == NO_ADDRESS:
            commits.take_back(seen)
        address = bindings.addresses.get(name)
        if address is not None:
            duplicates.remember(address, seen)


def restore_messages(recovered: RecoveredState, bindings: Bindings, now_ms: int) -> list[Problem]:
    """Put messages back on their queues. Returns what there is to say of messages whose queue is not there (one of the
    same name took its place, in an earlier version).
    """
    told: list[Problem] = []
    for queue_id, survivors in recovered.messages.items():
        queue = bindings.by_id.get(queue_id)
        if queue is None:
            what = f"{many(len(survivors), 'message')} in the journal, on no queue: this one is not there any more"
            told.append(Problem("warning", "", 0, f"queue number {queue_id}: {what}"))
            continue
        entries = [(_entry_of(one, queue, bindings), one.due_ms) for one in survivors]
        queue.arrivals.take_back(entries, now_ms)
    return told


def what_goes(queues: Iterable[Queue], now_ms: int) -> list[Problem]:
    """Of queues that have their messages and pages again: those that had no room for all, or for which some are too
    old.
    """
    told: list[Problem] = []
    for queue in queues:
        contents = queue.contents
        reasons: list[str] = []
        replaced, count = contents.counters.replaced, contents.message_count
        if replaced:
            reasons.append(replaced_because(queue.own, replaced, count + replaced))
        lifetime = contents.expiry.lifetime
        if count and lifetime is not None and lifetime.gives_expiry:
            expired = contents.expiry.count_outlived(now_ms)
            if expired or contents.paged.count:
                reasons.append(expired_because(queue.own, expired, contents.paged.count, count))
        place = queue.origin or NOWHERE
        told += [Problem("warning", place.file, place.line, f"queue {queue.name}: {why}") for why in reasons]
    return told


def _entry_of(survivor: Survivor, queue: Queue, bindings: Bindings) -> Entry:
    message = survivor.message
    if not message.refs:
        message.account = bindings.source_of(message, queue.reference).account
        message.account.charge(1, message.memory_bytes)
    entry = Entry(message)
    entry.attempts = entry.returned = survivor.attempts
    return entry


def restore_streams(kept: Iterable[KeptStream], number_max: int, registry: Registry, streams: Streams) -> None:
    """Give addresses their pages back, when all queues have what they had in memory. New streams get numbers above
    ``number_max``.
    """
    bindings = registry.bindings
    for one in sorted(kept, key=lambda stream: stream.number):
        address = bindings.addresses.get(one.address) or registry.create_address(one.address, auto_created=True)
        page_bytes = address.settings.page_size_bytes
        stream = address.stream = streams.open(address.name, address.account, page_bytes, one.number)
        for share in stream.restore(one, bindings.by_id):
            bindings.by_id[share.queue_id].pages.restore(stream, share)
    streams.number_max = max(streams.number_max, number_max)
