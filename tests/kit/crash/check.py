"""What must hold: of a running broker beside its own records, and of what recovery gives back after a crash."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress

from artemis_py.core.broker import Broker
from artemis_py.core.queue.queue import Queue
from artemis_py.message import LargeBody
from artemis_py.paged_messages import PagedMessage
from artemis_py.storage.disk.disk import Disk, DiskError
from artemis_py.storage.format.names import read_name
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.format.segment_index import INDEX_SUFFIX, decode_index, index_of
from artemis_py.storage.recovery.accept_journal import Recovered
from tests.kit.crash.incarnation import Incarnation
from tests.kit.crash.paging import paged_items
from tests.kit.crash.projection import Identity, Projection, difference, projection_of
from tests.kit.crash.traffic import STANDARD, TYPED, Fact


class Broken(AssertionError):
    """Something that must hold does not."""


def records_match(life: Incarnation) -> None:
    """What the broker wrote down adds up to what it holds. Call it between turns."""
    projection = life.projection()
    for queue in life.broker.queues.values():
        if queue.durable and not queue.temporary:
            _queue_matches(queue, projection)
    named = {fields["name"] for fields in projection.queues.values()}
    held = {queue.name for queue in life.broker.queues.values() if queue.durable and not queue.temporary}
    if named != held:
        raise Broken(f"queues written down and queues there are differ: {sorted(named ^ held)}")


def _queue_matches(queue: Queue, projection: Projection) -> None:
    items = projection.items(queue.id)
    if len(items) != queue.contents.counters.durable_count:
        raise Broken(
            f"{queue.name} holds {queue.contents.counters.durable_count} persistent messages; "
            f"written down: {len(items)}"
        )
    waiting = [item for item in items if not item.due_ms]
    late = {item.identity[0] for item in items if item.due_ms}
    late |= {  # one from a page goes to the head when it is due, and after a restart is due at its place in the page
        entry.message.id
        for entry in queue.contents.order
        if entry.sequence < 0 and isinstance(entry.message, PagedMessage)
    }
    live = [
        one.id
        for one in (entry.message for entry in queue.contents.order)
        if one.head.persistent and one.id not in late
    ]
    if queue.name not in STANDARD:
        waiting.sort(key=lambda item: -item.identity[4])
    ready = set(live)
    written = [item.identity[0] for item in waiting if item.identity[0] in ready]
    if queue.name in TYPED or queue.view is not None:  # their order is none that records show
        live, written = sorted(live), sorted(written)
    if live != written:
        raise Broken(f"{queue.name} will offer {live}; written down in this order: {written}")


def rings_fit(broker: Broker) -> None:
    """A start trims each ring, because what consumers held comes back beside what took its room. The last message of a
    depth stays, however large it is.
    """
    for queue in broker.queues.values():
        ready_count = queue.contents.order.count
        if queue.flow.excess(ready_count, arriving=True) > 0 and queue.flow.is_beyond:
            raise Broken(f"{queue.name} is a ring and has {ready_count} ready messages after a start")


def files_match(life: Incarnation) -> None:
    """There is a file for each large body that lives, and no other. Call it when the disk rests and nobody is there."""
    index = life.journal.index
    bodies = [segment.live[message_id].message.body for message_id, segment in index.home.items()]
    living = {body.number for body in bodies if isinstance(body, LargeBody)}
    for stream in life.broker.streams.by_number.values():
        living |= {held.body.number for page in stream.pages for held in page.large.values()}
    found = {body.number for body in map(read_name, life.disk.names()) if body is not None}
    living |= {body.number for body in map(read_name, life.disk.names()) if body is not None and not body.durable}
    if living != found:
        raise Broken(f"files without a body: {sorted(found - living)}; bodies without a file: {sorted(living - found)}")


def indexes_match(disk: Disk) -> None:
    """An index file that is whole says what is in its segment, whatever a crash did."""
    names = set(disk.names())
    for name in names:
        log_name = name.removesuffix(INDEX_SUFFIX) + ".log"
        if not name.endswith(INDEX_SUFFIX) or log_name not in names:
            continue
        with suppress(CodecError):
            found, wanted = decode_index(disk.read(name)), index_of(disk.read(log_name)).fields()
            if found != wanted:
                raise Broken(f"{name} says {found}, its segment says {wanted}")


def promises_hold(projection: Projection, promised: list[Fact]) -> None:
    """Everything that was told to clients is in the durable state."""
    history = projection.history
    there = {fields["name"] for fields in projection.queues.values()}
    durable: dict[str, Collection[object]] = {
        "body": history.bodies,
        "message": history.message_ids,
        "settled": history.settled,
        "queue": there | history.queues_deleted,
        "no queue": history.queues_deleted,
        "seen": history.seen,
    }
    for kind, value in promised:
        if kind == "done before":
            queue_id, message_id = value
            early = [item.identity[0] for item in projection.items(queue_id) if item.identity[0] < message_id]
            if early:
                raise Broken(f"a client got barrier {message_id} of queue {queue_id}, and {early} are still there")
        elif value not in durable[kind]:
            raise Broken(f"a client was told of {kind} {str(value)[:60]!r}, and it is not durable")


def nothing_half_done(projection: Projection, broker: Broker) -> None:
    """No crash may separate a dead or expired message from its copy, nor a duplicate id from its message."""
    history = projection.history
    for (queue_id, message_id), why in history.lost_of.items():
        fields = projection.queues.get(queue_id)
        queue = None if fields is None else broker.queues.get(fields["name"])
        if queue is None:
            continue
        settings = queue.address.settings
        target = settings.expiry_address if why == "expired" else settings.dead_letter_address
        if target and target != queue.address.name and str(message_id) not in history.copied_ids:
            raise Broken(f"message {message_id} was {why} on {queue.name}, and its copy for {target} is lost")
    for identity in history.moved:
        if history.published.get(identity[3], 0) <= identity[0] and not _goes_where_nothing_lasts(identity, broker):
            raise Broken(f"message {identity[0]} was moved, and its copy is lost")
    orphaned = history.duplicate_ids - history.duplicate_ids_published
    if orphaned:
        raise Broken(f"duplicate ids are remembered without their messages: {sorted(orphaned)}")


def _goes_where_nothing_lasts(identity: Identity, broker: Broker) -> bool:
    """May a dead letter have gone back to a queue that no restart keeps, or into a page?"""
    origin = re.search(rb"^_AMQ_ORIG_QUEUE:(.*)$", identity[2], re.MULTILINE)
    queue = None if origin is None else broker.queues.get(origin[1].decode())
    pages = any(address.is_paging or address.stream is not None for address in broker.addresses.values())
    return pages or (origin is not None and (queue is None or not queue.durable))


def survivors_match(life: Incarnation, recovered: Recovered, duplicate_ids_kept: int) -> Projection:
    """The state that recovery found is that after some operation between the last durable one and the last. Returns
    it.
    """
    recovered_state = recovered.index.recovered_state()
    try:
        paged = [paged_items(stream, life.disk) for stream in recovered_state.streams]
        found = projection_of(recovered_state, duplicate_ids_kept, life.disk, recovered.index.cursors, paged).view()
    except DiskError as error:
        raise Broken(f"a message lives whose body is gone: {error}") from error
    projection = life.projection(life.journal.durable_lsn)
    at_least = projection.restarted().view()
    rest = [operation for lsn, operation in life.records.operations if lsn > life.journal.durable_lsn]
    matching = 0 if projection.view() == found else None
    for number, operation in enumerate(rest, 1):
        projection.apply(operation)
        if projection.view() == found:
            matching = number
    if matching is None:
        raise Broken(
            f"recovery found no state between the durable one and the last written ({len(rest)} operations later).\n"
            f"beside the durable one:\n{difference(at_least, found)}\n"
            f"beside the last:\n{difference(projection.view(), found)}"
        )
    matches = life.projection(life.journal.durable_lsn)
    for operation in rest[:matching]:
        matches.apply(operation)
    return matches
