"""What must be equal after every step, and what must always hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.queue import Queue
from tests.model.plans import ADDRESS, DEAD, EXPIRED
from tests.model.queue_model import QueueModel
from tests.model.reader_model import Item
from tests.model.rules_model import expires_ms

if TYPE_CHECKING:
    from tests.model.side_by_side import Pair, SideBySide


def compare(world: SideBySide) -> None:
    """Raise AssertionError at the first difference between broker and model."""
    for pair in world.pairs:
        _compare_contents(pair)
        _compare_counts(pair.queue, pair.model)
        _compare_sizes(pair.queue, pair.model)
        _compare_limits(pair.queue, pair.model)
    for seat in world.seats:
        held = [item.letter.id for item in seat.reader.held + seat.reader.out]
        assert list(seat.consumer.held) == held, "a consumer holds something else"
        assert [entry.message.id for entry in seat.consumer.outbox] == seat.reader.unsent, "another outbox"
        handed = [letter.id for letter in seat.reader.handed]
        assert [entry.message.id for entry in seat.consumer.handed] == handed, "something else was handed over"
        assert seat.consumer.firsts == seat.reader.firsts, "other messages brought a group"
    _compare_account(world)
    _compare_log(world)
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


def _compare_contents(pair: Pair) -> None:
    queue, model = pair.queue, pair.model
    standing = list(queue.contents.order)
    waiting = [entry for entry in behind_on(queue) if not queue.contents.is_aside(entry)]
    if queue.contents.pending is not None:
        assert queue.contents.pending.count == len(waiting), "messages that are not active"
        standing = sorted(standing + waiting, key=lambda entry: entry.sequence)
    ready = [(entry.message.id, entry.attempts, entry.redelivered) for entry in standing]
    assert ready == [_state(item) for item in model.ready()], f"{queue.name} has other contents or another order"
    scheduled = {(entry.message.id, entry.attempts, entry.redelivered) for entry in queue.contents.scheduled.values()}
    assert scheduled == {_state(item) for _, _, item in model.scheduled}, f"{queue.name} has other scheduled messages"
    held_back = {item.letter.id for item in model.held_back()}
    assert queue.contents.held_back == held_back, f"{queue.name} holds back other messages"
    holders = [item.letter.id for item in model.held_items() + model.picked_items()]
    places = holders + [item[0] for item in ready] + [item[0] for item in scheduled]
    assert len(places) == len(set(places)), f"a message stands in {queue.name} at two places"
    if queue.contents.last_values is not None:
        away = {item.letter.id for item in model.held_items() + model.picked_items() if item.outdated}
        assert queue.contents.last_values._outdated == away, "other messages must not come back"
        keys = {letter.key for letter in model.letters()}
        assert keys >= set(queue.contents.last_values._newest), "a value is remembered that is gone"


def _compare_counts(queue: Queue, model: QueueModel) -> None:
    counts, counters = model.counts, queue.contents.counters
    assert counters.added == counts.added, "messages added"
    assert counters.acknowledged == counts.acknowledged, "messages acknowledged"
    assert counters.killed == counts.killed, "messages killed"
    assert counters.expired == counts.expired, "messages expired"
    assert counters.replaced == counts.replaced, "messages replaced"
    ready, held, scheduled = len(model.items), len(model.held_items()), len(model.scheduled)
    assert queue.message_count == ready + held + scheduled, "message count"
    assert len(queue.contents.scheduled) == scheduled, "scheduled count"
    assert queue.contents.delivering_count == held + len(model.read_items()), "delivering count"
    assert queue.consumer_count == len(model.readers), "consumer count"
    gone = counters.acknowledged + counters.killed + counters.expired + counters.replaced
    here = queue.message_count + len(model.picked_items())
    assert counters.added == gone + here, "what came is not what went and what is there"


def _compare_sizes(queue: Queue, model: QueueModel) -> None:
    held = [item.letter for item in model.held_items()]
    scheduled = [item.letter for _, _, item in model.scheduled]
    every = model.letters()
    counters = queue.contents.counters
    expected = {
        "size_bytes": sum(letter.size_bytes for letter in every),
        "durable_count": sum(letter.persistent for letter in every),
        "durable_size_bytes": sum(letter.size_bytes for letter in every if letter.persistent),
        "held_count": len(held),
        "held_size_bytes": sum(letter.size_bytes for letter in held),
        "held_durable_count": sum(letter.persistent for letter in held),
        "held_durable_size_bytes": sum(letter.size_bytes for letter in held if letter.persistent),
        "scheduled_size_bytes": sum(letter.size_bytes for letter in scheduled),
        "scheduled_durable_count": sum(letter.persistent for letter in scheduled),
        "scheduled_durable_size_bytes": sum(letter.size_bytes for letter in scheduled if letter.persistent),
    }
    found = {name: getattr(counters, name) for name in expected}
    assert found == expected, f"sizes of {queue.name}"


def _compare_limits(queue: Queue, model: QueueModel) -> None:
    assert queue.flow.stopped == model.senders_wait, "senders wait, or not"
    if queue.flow.overflow.depth is not None:
        assert queue.contents.size_bytes == sum(item.letter.size_bytes for item in model.standing()), (
            "bytes of the depth"
        )
    if queue.contents.ages is not None:
        oldest_ms = min((letter.arrived_ms for letter in model.letters()), default=None)
        assert queue.contents.ages.oldest_ms() == oldest_ms, "age of the oldest"


def _compare_account(world: SideBySide) -> None:
    letters = world.letters().values()
    account = world.broker.addresses[ADDRESS].account
    assert account.message_count == len(letters), "messages that the address answers for"
    assert account.size_bytes == sum(letter.memory_bytes for letter in letters), "bytes that the address answers for"


def _compare_log(world: SideBySide) -> None:
    """What a recovery would find is what the durable queues have of persistent messages."""
    expected = {
        (letter.id, pair.queue.id)
        for pair in world.pairs
        if pair.queue.durable
        for letter in pair.model.letters()
        if letter.persistent
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
        properties = entry.message.head.properties
        assert properties["_AMQ_ORIG_ADDRESS"] == ADDRESS
        assert entry.message.expires_ms == 0, "a copy keeps the expiry"
        assert not entry.redelivered, "a copy is not redelivered"
        copies.append((int(properties["_AMQ_ORIG_MESSAGE_ID"]), properties["_AMQ_ORIG_QUEUE"]))
    assert sorted(copies) == sorted(sources), f"copies on {name}"
    assert world.broker.addresses[name].account.message_count == len(copies), f"account of {name}"
