"""What must be equal after every step, and what must always hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.queue import Queue
from tests.model.items_model import Counts
from tests.model.plans import ADDRESS, DEAD, EXPIRED
from tests.model.reader_model import Item, Letter
from tests.model.rules_model import expires_ms

if TYPE_CHECKING:
    from tests.model.side_by_side import Queued, SideBySide


class _Stands:
    """What the model says stands on a queue: gathered once for each comparison, which comes after every step."""

    __slots__ = ("held", "letters", "model", "picked", "queue", "scheduled")

    def __init__(self, pair: Queued) -> None:
        self.queue = pair.queue
        model = self.model = pair.model
        self.held = model.held_items()
        self.picked = model.picked_items()
        self.scheduled = [item for _, _, item in model.scheduled]
        self.letters = [item.letter for item in (*model.items, *self.held, *self.scheduled, *self.picked)]


def compare(world: SideBySide) -> None:
    """Raise AssertionError at the first difference between broker and model."""
    stands = [_Stands(pair) for pair in world.pairs]
    for one in stands:
        _compare_contents(one)
        _compare_counts(one)
        scheduled = [item.letter for item in one.scheduled]
        compare_sizes(one.queue, one.letters, [item.letter for item in one.held], scheduled)
    memory_bytes = {letter.id: letter.memory_bytes for one in stands for letter in one.letters}
    account = world.broker.addresses[ADDRESS].account
    assert account.message_count == len(memory_bytes), "messages that the address answers for"
    assert account.size_bytes == sum(memory_bytes.values()), "bytes that the address answers for"
    _compare_log(world, stands)
    _compare_times(world)
    if world.forwarded == len(world.dead) + len(world.expired):
        _compare_copies(world, DEAD, world.dead)
        _compare_copies(world, EXPIRED, world.expired)


def _state(item: Item) -> tuple[int, int, bool]:
    return item.letter.id, item.attempts, item.redelivered


def behind_on(queue: Queue) -> list[Entry]:
    """What is not active, in order."""
    pending, found = queue.contents.pending, []
    entry = None if pending is None else pending.first()
    while pending is not None and entry is not None:
        found.append(entry)
        entry = pending.next_from(entry.sequence + 1)
    return found


def active_ids(queue: Queue) -> set[int]:
    """The ids of all messages that are active and ready, or would be ready if it were time."""
    inactive = {entry.message.id for entry in behind_on(queue)}
    held_back = {message_id for message_id in queue.contents.held_back if message_id not in inactive}
    return {entry.message.id for entry in queue.contents.order} | held_back


def _compare_contents(stands: _Stands) -> None:
    queue, model = stands.queue, stands.model
    contents = queue.contents
    standing = list(contents.order)
    if contents.pending is not None:
        waiting = [entry for entry in behind_on(queue) if not contents.is_aside(entry)]
        assert contents.pending.count == len(waiting), "messages that are not active"
        standing = sorted(standing + waiting, key=lambda entry: entry.sequence)
    ready = [(entry.message.id, entry.attempts, entry.redelivered) for entry in standing]
    assert ready == [_state(item) for item in model.ready()], f"{queue.name} has other contents or another order"
    scheduled = {(entry.message.id, entry.attempts, entry.redelivered) for entry in contents.scheduled.values()}
    assert scheduled == {_state(item) for item in stands.scheduled}, f"{queue.name} has other scheduled messages"
    held_back = {item.letter.id for item in stands.scheduled if item.is_held_back}
    assert contents.held_back == held_back, f"{queue.name} holds back other messages"
    places = [item.letter.id for item in (*stands.held, *stands.picked)]
    places += [item[0] for item in ready] + [item[0] for item in scheduled]
    assert len(places) == len(set(places)), f"a message stands in {queue.name} at two places"
    if contents.last_values is not None:
        away = {item.letter.id for item in (*stands.held, *stands.picked) if item.outdated}
        assert contents.last_values._outdated == away, "other messages must not come back"
        keys = {letter.key for letter in stands.letters}
        assert keys >= contents.last_values._newest.keys(), "a value is remembered that is gone"


def _compare_counts(stands: _Stands) -> None:
    queue, model = stands.queue, stands.model
    counters = queue.contents.counters
    found = Counts(counters.added, counters.acknowledged, counters.killed, counters.expired, counters.replaced)
    assert found == model.counts, f"{queue.name}: other messages came or went"
    assert queue.message_count == len(model.items) + len(stands.held) + len(stands.scheduled), "message count"
    assert queue.flow.stopped == model.senders_wait, "senders wait, or not"
    if queue.flow.overflow.depth is not None:
        depth_bytes = sum(item.letter.size_bytes for item in model.standing())
        assert queue.contents.size_bytes == depth_bytes, "bytes of the depth"
    if queue.contents.ages is not None:
        oldest_ms = min((letter.arrived_ms for letter in stands.letters), default=None)
        assert queue.contents.ages.oldest_ms() == oldest_ms, "age of the oldest"


def _sizes(letters: list[Letter]) -> tuple[int, int, int, int]:
    """How many, their bytes, how many are durable, and the bytes of these."""
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


def _compare_log(world: SideBySide, stands: list[_Stands]) -> None:
    """What a recovery would find is what the durable queues have of persistent messages."""
    expected = {
        (letter.id, one.queue.id) for one in stands if one.queue.durable for letter in one.letters if letter.persistent
    }
    for name in (DEAD, EXPIRED):
        queue = world.broker.queues[name]
        expected |= {(entry.message.id, queue.id) for entry in queue.contents.order if entry.message.head.persistent}
    assert world.log.live == expected, "the log does not know what the queues know"


def _compare_times(world: SideBySide) -> None:
    """The broker must wake up in time for what is due first."""
    due = [due_ms for pair in world.pairs for due_ms, _, _ in pair.model.scheduled]
    due += [pair.model.opens_at_ms for pair in world.pairs if pair.model.opens_at_ms is not None]
    due += [
        lease[0]
        for seat in world.seats
        for item in seat.reader.sent
        if (lease := seat.reader.leases.get(item.letter.id))
    ]
    bounded = [pair.model for pair in world.pairs if pair.model.plan.bounds_time]
    waiting = [(model, item) for model in bounded for item in model.items + model.held_back()]
    due += [over_ms for model, item in waiting if (over_ms := expires_ms(model.plan, item.letter))]
    next_due_ms = world.broker.next_due_ms()
    if due:
        assert next_due_ms is not None, "no timer although something falls due"
        assert next_due_ms <= min(due), "the timer is too late"


def _compare_copies(world: SideBySide, name: str, sources: list[tuple[int, str]]) -> None:
    queue = world.broker.queues[name]
    copies: list[tuple[int, str]] = []
    for entry in queue.contents.order:
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
