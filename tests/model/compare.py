"""What must be equal after every step, and what must always hold."""

from __future__ import annotations

from sys import maxsize
from typing import TYPE_CHECKING

from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.queue import Queue
from tests.model.plans import ADDRESS, DEAD, EXPIRED
from tests.model.queue_model import Counts
from tests.model.reader_model import Letter

if TYPE_CHECKING:
    from tests.model.side_by_side import Queued, SideBySide


def compare(world: SideBySide) -> None:
    """Raise AssertionError at the first difference between broker and model. It comes after every step: what several
    comparisons look at is gathered once.
    """
    copies = {name: list(world.broker.queues[name].contents.order) for name in (DEAD, EXPIRED)}
    durable = {
        (entry.message.id, world.broker.queues[name].id)
        for name, entries in copies.items()
        for entry in entries
        if entry.message.head.persistent
    }
    memory_bytes: dict[int, int] = {}
    for pair in world.pairs:
        letters = _compare_queue(pair)
        for letter in letters:
            memory_bytes[letter.id] = letter.memory_bytes
            if letter.persistent and pair.queue.durable:
                durable.add((letter.id, pair.queue.id))
    account = world.broker.addresses[ADDRESS].account
    assert account.message_count == len(memory_bytes), "messages that the address answers for"
    assert account.size_bytes == sum(memory_bytes.values()), "bytes that the address answers for"
    assert world.log.live == durable, "what a recovery would find is not what the durable queues have"
    _compare_times(world)
    if world.forwarded == len(world.dead) + len(world.expired):
        _compare_copies(world, DEAD, copies[DEAD], world.dead)
        _compare_copies(world, EXPIRED, copies[EXPIRED], world.expired)


def behind_on(queue: Queue) -> list[Entry]:
    """What is not active, in order."""
    pending, found = queue.contents.pending, []
    entry = None if pending is None else pending.first()
    while pending is not None and entry is not None:
        found.append(entry)
        entry = pending.next_from(entry.sequence + 1)
    return found


def _compare_queue(pair: Queued) -> list[Letter]:
    """Compare what stands on one queue, and what it counts; returns the letters that are there."""
    queue, model = pair.queue, pair.model
    held, picked, scheduled = model.held_items(), model.picked_items(), model.aside()
    letters = [item.letter for item in (*model.items, *held, *scheduled, *picked)]
    contents = queue.contents
    standing = list(contents.order)
    if contents.pending is not None:
        waiting = [entry for entry in behind_on(queue) if not contents.is_aside(entry)]
        assert contents.pending.count == len(waiting), "messages that are not active"
        standing = sorted(standing + waiting, key=lambda entry: entry.sequence)
    ready = [(entry.message.id, entry.attempts, entry.redelivered) for entry in standing]
    expected = [(item.letter.id, item.attempts, item.redelivered) for item in model.ready()]
    assert ready == expected, f"{queue.name} has other contents or another order"
    aside = {(entry.message.id, entry.attempts, entry.redelivered) for entry in contents.scheduled.values()}
    expected_aside = {(item.letter.id, item.attempts, item.redelivered) for item in scheduled}
    assert aside == expected_aside, f"{queue.name} has other scheduled messages"
    held_back = {item.letter.id for item in scheduled if item.is_held_back}
    assert contents.held_back == held_back, f"{queue.name} holds back other messages"
    places = {letter.id for letter in letters}
    assert len(places) == len(letters), f"a message stands in {queue.name} at two places"
    if contents.last_values is not None:
        outdated = {item.letter.id for item in held + picked if item.outdated}
        assert contents.last_values._outdated == outdated, "other messages must not come back"
        keys = {letter.key for letter in letters}
        assert keys >= contents.last_values._newest.keys(), "a value is remembered that is gone"
    counters = contents.counters
    found = Counts(counters.added, counters.acknowledged, counters.killed, counters.expired, counters.replaced)
    assert found == model.counts, f"{queue.name}: other messages came or went"
    assert queue.message_count == len(letters) - len(picked), "message count"
    assert queue.flow.stopped == model.senders_wait, "senders wait, or not"
    if queue.flow.overflow.depth is not None:
        depth_bytes = sum(item.letter.size_bytes for item in model.standing())
        assert contents.size_bytes == depth_bytes, "bytes of the depth"
    if contents.ages is not None:
        oldest_ms = min((letter.arrived_ms for letter in letters), default=None)
        assert contents.ages.oldest_ms() == oldest_ms, "age of the oldest"
    compare_sizes(queue, letters, [item.letter for item in held], [item.letter for item in scheduled])
    return letters


def _sizes(letters: list[Letter]) -> tuple[int, int, int, int]:
    """How many, their bytes, how many are durable, and the bytes of these."""
    if not letters:
        return 0, 0, 0, 0
    durable = [letter.size_bytes for letter in letters if letter.persistent]
    return len(letters), sum(letter.size_bytes for letter in letters), len(durable), sum(durable)


def compare_sizes(queue: Queue, letters: list[Letter], held: list[Letter], scheduled: list[Letter]) -> None:
    """Does the queue count so much in all, with consumers and their transactions, and aside?"""
    found = queue.contents.counters
    gone = found.acknowledged + found.killed + found.expired + found.replaced
    counts = (
        (found.added - gone, found.size_bytes, found.durable_count, found.durable_size_bytes),
        (found.held_count, found.held_size_bytes, found.held_durable_count, found.held_durable_size_bytes),
        (
            len(queue.contents.scheduled), found.scheduled_size_bytes,
            found.scheduled_durable_count, found.scheduled_durable_size_bytes,
        ),
    )  # fmt: skip
    expected = _sizes(letters), _sizes(held), _sizes(scheduled)
    assert counts == expected, f"sizes of {queue.name}: of what came and is not gone, held, scheduled"


def _compare_times(world: SideBySide) -> None:
    """The broker must wake up in time for what is due first."""
    due = [due_ms for pair in world.pairs for due_ms, _, _ in pair.model.scheduled]
    due += [pair.model.opens_at_ms for pair in world.pairs if pair.model.opens_at_ms is not None]
    due += [
        lease[0]
        for seat in world.seats
        if seat.reader.leases
        for item in seat.reader.sent
        if (lease := seat.reader.leases.get(item.letter.id))
    ]
    bounded = [pair.model for pair in world.pairs if pair.model.plan.bounds_time]
    waiting = [(model, item) for model in bounded for item in model.items + model.held_back()]
    due += [over_ms for model, item in waiting if (over_ms := model.expires_ms(item.letter)) < maxsize]
    next_due_ms = world.broker.next_due_ms()
    if due:
        assert next_due_ms is not None, "no timer although something falls due"
        assert next_due_ms <= min(due), "the timer is too late"


def _compare_copies(world: SideBySide, name: str, entries: list[Entry], sources: list[tuple[int, str]]) -> None:
    copies: list[tuple[int, str]] = []
    for entry in entries:
        copy = entry.message
        assert copy.expires_ms == 0, "a copy keeps the expiry"
        assert not entry.redelivered, "a copy is not redelivered"
        if copy.id not in world.sources:  # a head never changes: it is parsed once
            properties = copy.head.properties
            assert properties["_AMQ_ORIG_ADDRESS"] == ADDRESS
            world.sources[copy.id] = int(properties["_AMQ_ORIG_MESSAGE_ID"]), properties["_AMQ_ORIG_QUEUE"]
        copies.append(world.sources[copy.id])
    assert sorted(copies) == sorted(sources), f"copies on {name}"
    assert world.broker.addresses[name].account.message_count == len(copies), f"account of {name}"
