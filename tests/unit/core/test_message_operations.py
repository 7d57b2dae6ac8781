"""What operators do with messages: exactly with those that were chosen, wherever they are, in slices."""

from __future__ import annotations

import random
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.operations.messages import Change
from artemis_py.core.operations.scan import MessageFilter
from artemis_py.errors import BrokerError, NotFoundError
from artemis_py.selector import compile_selector
from tests.kit.core import consumer_on, head_of, send
from tests.kit.paged_bench import PagedBench

EU = "region = 'eu'"
EU_ONLY = MessageFilter(compile_selector(EU))
US_ONLY = MessageFilter(compile_selector("region = 'us'"))


def fill(bench: PagedBench, count: int, region: str = "eu") -> None:
    for _ in range(count):
        send(bench.broker, "q", head=head_of("q", persistent=True, region=region), now_ms=bench.now_ms)


def contents(bench: PagedBench, name: str) -> list[tuple[str | None, dict[str, str]]]:
    """Region and headers of what can be taken from a queue now, in order."""
    queue = bench.broker.queues[name]
    taken: list[tuple[str | None, dict[str, str]]] = []
    consumer = consumer_on(bench.broker, queue)
    for _ in range(1000):
        bench.settle()
        if not consumer.held:
            break
        for number in list(consumer.held):
            entry = consumer.let_go(number)
            properties = entry.message.head.properties
            taken.append((properties.get("region"), properties))
            queue.acknowledge(consumer, [entry])
        queue.wake(consumer)
    bench.broker.detach(queue, consumer, failed=False, now_ms=bench.now_ms)
    return taken


def regions(bench: PagedBench, name: str) -> list[str | None]:
    return [region for region, _ in contents(bench, name)]


def counts(bench: PagedBench, name: str) -> tuple[int, int]:
    queue = bench.broker.queues[name]
    return queue.message_count, queue.unheld_count


# ---- moves -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("messages_max", [-1, 2, 20])
@pytest.mark.parametrize("units", [10_000, 60, 1])
def test_what_matches_is_moved_and_the_rest_stays(messages_max: int, units: int) -> None:
    """In order, from memory and from pages, in whole turns and in tiny ones."""
    bench = PagedBench(messages_max, units=units)
    for number in range(30):
        fill(bench, 1, "eu" if number % 3 else "us")
    bench.settle()
    change = bench.finish(bench.broker.message_operations.move(bench.queue, EU_ONLY, "other"))
    assert (change.done_count, change.kept, change.held_count) == (20, {}, 0)
    assert (counts(bench, "q"), counts(bench, "other")) == ((10, 10), (20, 20))
    bench.units = 10_000
    assert regions(bench, "q") == ["us"] * 10
    assert regions(bench, "other") == ["eu"] * 20


def test_a_moved_message_says_where_it_comes_from() -> None:
    bench = PagedBench()
    send(bench.broker, "q", head=head_of("q", persistent=True, colour="red"), now_ms=bench.now_ms - 5)
    bench.finish(bench.broker.message_operations.move(bench.queue, MessageFilter(), "other"))
    (entry,) = bench.broker.queues["other"].contents.order
    assert (entry.message.timestamp_ms, entry.message.head.address) == (bench.now_ms - 5, "other")
    assert entry.message.head.properties == {
        "destination": "other", "_AMQ_ORIG_ADDRESS": "q", "_AMQ_ORIG_MESSAGE_ID": "1", "_AMQ_ORIG_QUEUE": "q",
        "colour": "red",
    }  # fmt: skip


def test_a_scheduled_message_stays_scheduled() -> None:
    bench = PagedBench()
    send(bench.broker, "q", due_ms=bench.now_ms + 500)
    bench.finish(bench.broker.message_operations.move(bench.queue, MessageFilter(), "other"))
    other = bench.broker.queues["other"].contents
    assert [other.scheduled_dates.of(number) for number in other.scheduled] == [bench.now_ms + 500]
    bench.now_ms += 500
    bench.settle()
    assert other.order.count == 1
    assert len(other.scheduled_dates) == 0


def test_what_a_consumer_has_is_named_and_left_alone() -> None:
    bench = PagedBench()
    fill(bench, 4)
    consumer = consumer_on(bench.broker, bench.queue, window_bytes=1)
    bench.settle()
    change = bench.finish(bench.broker.message_operations.move(bench.queue, EU_ONLY, "other"))
    assert (change.done_count, change.held_count, change.held_ids) == (3, 1, [1])
    assert list(consumer.held) == [1]


def test_what_comes_later_is_not_moved() -> None:
    bench = PagedBench(-1, units=1)
    fill(bench, 10)
    change = bench.broker.message_operations.move(bench.queue, MessageFilter(), "other")
    bench.turn()
    fill(bench, 5, "late")
    bench.finish(change)
    assert change.done_count == 10
    bench.units = 10_000
    assert regions(bench, "q") == ["late"] * 5


def test_consumers_are_served_meanwhile_and_nothing_is_lost_or_doubled(rng: random.Random) -> None:
    """Each message is on one of the queues, or was delivered: exactly one of these."""
    for _ in range(20):
        bench = PagedBench(rng.choice((-1, 3)), units=rng.choice((5, 50, 500)))
        fill(bench, 40)
        bench.settle()
        change = bench.broker.message_operations.move(bench.queue, MessageFilter(), "other")
        consumers: list[Consumer] = []
        delivered = 0
        while not change.is_over:
            bench.broker.message_operations.nudge(change)
            if rng.random() < 0.1:
                consumers.append(consumer_on(bench.broker, bench.queue, window_bytes=200))
            if consumers and rng.random() < 0.3:
                consumer = rng.choice(consumers)
                for number in list(consumer.held)[:1]:
                    bench.queue.acknowledge(consumer, [consumer.let_go(number)])
                    delivered += 1
                bench.queue.wake(consumer)
            if consumers and rng.random() < 0.1:
                consumer = consumers.pop()
                bench.broker.detach(bench.queue, consumer, failed=False, now_ms=bench.now_ms)
            if rng.random() < 0.5:
                bench.work_disk()
            bench.turn()
        for consumer in consumers:
            bench.broker.detach(bench.queue, consumer, failed=False, now_ms=bench.now_ms)
        bench.units = 10_000
        bench.settle()
        assert counts(bench, "other")[0] == change.done_count
        assert counts(bench, "q")[0] + change.done_count + delivered == 40


@pytest.mark.parametrize("policy", ["DROP", "FAIL", "BLOCK"])
def test_a_full_target_stops_a_move(policy: str) -> None:
    """Nothing is lost: what finds no room stays where it is."""
    bench = PagedBench(-1, other={"address_full_policy": policy, "max_size_messages": 3})
    fill(bench, 5)
    change = bench.finish(bench.broker.message_operations.move(bench.queue, MessageFilter(), "other"))
    assert (change.done_count, change.stopped_because) == (
        3,
        f"address other is full (max-messages); its policy is {policy}",
    )
    assert (counts(bench, "q"), counts(bench, "other")) == ((2, 2), (3, 3))


@pytest.mark.parametrize(
    ("policy", "count", "said"),
    [
        ("REJECT", 2, "so a message of {} bytes does not fit; retry when consumers have taken some"),
        ("PRODUCER_FLOW_CONTROL", 3, "and takes more when it is down to 1 message"),
    ],
)
@pytest.mark.parametrize("target", ["other", "other::other"])
def test_a_full_queue_stops_a_move_and_says_why(policy: str, count: int, said: str, target: str) -> None:
    limit = {"default_max_depth_messages": 2, "default_flow_resume_percent": 50.0}
    bench = PagedBench(-1, other={"default_overflow_policy": policy, **limit})
    fill(bench, 5)
    change = bench.finish(bench.broker.message_operations.move(bench.queue, MessageFilter(), target))
    assert change.done_count == count
    size_bytes = bench.broker.queues["other"].contents.size_bytes
    has = f"it has {count} messages of {size_bytes} bytes together, {said.format(size_bytes // count)}"
    assert change.stopped_because == f"Queue other is full (limit 2 messages): {has}"


def test_a_move_to_an_address_asks_its_filters() -> None:
    bench = PagedBench()
    fill(bench, 2)
    fill(bench, 1, "us")
    bench.broker.queues["other"].selector = compile_selector(EU)
    change = bench.finish(bench.broker.message_operations.move(bench.queue, MessageFilter(), "other"))
    assert change.done_count == 3, "a queue gets what an operator moves to it, whatever its filter says"


def test_where_messages_cannot_go() -> None:
    bench = PagedBench()
    message_operations = bench.broker.message_operations
    with pytest.raises(NotFoundError, match="there is no queue or address 'nowhere'"):
        message_operations.move(bench.queue, MessageFilter(), "nowhere")
    with pytest.raises(BrokerError, match="q is the queue itself"):
        message_operations.move(bench.queue, MessageFilter(), "q")
    bench.broker.queues["other"].enabled = False
    with pytest.raises(BrokerError, match="queue other is disabled"):
        message_operations.copy(bench.queue, MessageFilter(), "other::other")
    with pytest.raises(BrokerError, match="queue other has no dead-letter-address"):
        message_operations.send_to_dead_letters(bench.broker.queues["other"], MessageFilter())
    with pytest.raises(BrokerError, match="priority must be 0 to 9, not 10"):
        message_operations.prioritize(bench.queue, MessageFilter(), 10)
    assert not bench.broker.agenda


@pytest.mark.interpreted
def test_a_target_that_breaks_off_gets_nothing_and_the_message_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = PagedBench(-1)
    fill(bench, 3)
    monkeypatch.setattr(
        type(bench.broker.message_operations._targets.find("other")), "put", Mock(side_effect=RuntimeError("broken"))
    )
    change = bench.finish(bench.broker.message_operations.move(bench.queue, MessageFilter(), "other"))
    assert (change.done_count, change.stopped_because) == (0, "a step of it failed; see the log of the broker")
    monkeypatch.undo()
    assert regions(bench, "q") == ["eu"] * 3


# ---- targets that keep less than they get ----------------------------------------------------------


@pytest.mark.parametrize("messages_max", [-1, 2])
@pytest.mark.parametrize("verb", ["move", "copy", "dead", "retry"])
@pytest.mark.parametrize(("ring_size", "count", "gone"), [(2, 5, 3), (1, 4, 3), (4, 4, 0)])
def test_what_a_ring_gives_up_is_counted(verb: str, messages_max: int, ring_size: int, count: int, gone: int) -> None:
    """What is there, and what the change says to be gone, are all that was chosen."""
    bench = PagedBench(messages_max)
    message_operations, queues = bench.broker.message_operations, bench.broker.queues
    target = {"dead": "graves", "retry": "q"}.get(verb, "other")
    source = queues["graves"] if verb == "retry" else bench.queue
    if verb == "retry":
        die(bench, count)
    else:
        fill(bench, count)
    bench.broker.queue_operations.set_ring_size(target, ring_size)
    begin: dict[str, Callable[[], Change]] = {
        "move": lambda: message_operations.move(source, MessageFilter(), "other"),
        "copy": lambda: message_operations.copy(source, MessageFilter(), "other::other"),
        "dead": lambda: message_operations.send_to_dead_letters(source, MessageFilter()),
        "retry": lambda: message_operations.retry(source, MessageFilter()),
    }
    change = bench.finish(begin[verb]())
    if target == "q" and messages_max > 0:  # what is in pages has no part in the ring yet
        gone = count - counts(bench, target)[0]
    keeps = "1 message" if ring_size == 1 else f"{ring_size} messages"
    assert (change.done_count, change.kept) == (count, {})
    assert change.replaced == ({f"gone from queue {target}, which keeps {keeps} (ring-size)": gone} if gone else {})
    assert counts(bench, target)[0] == count - gone
    assert source.message_count == (count if verb == "copy" else 0)


def test_older_messages_of_a_ring_count_too() -> None:
    bench = PagedBench(-1)
    bench.broker.queue_operations.set_ring_size("other", 2)
    send(bench.broker, "other", 2)
    fill(bench, 1)
    change = bench.finish(bench.broker.message_operations.move(bench.queue, MessageFilter(), "other"))
    assert list(change.replaced.values()) == [1]


def test_newer_values_are_told() -> None:
    bench = PagedBench(-1, queue={"last_value_key": "region", "last_value": True})
    for _ in range(3):
        send(bench.broker, "other", head=head_of("other", persistent=True, region="eu"))
    change = bench.finish(bench.broker.message_operations.move(bench.broker.queues["other"], MessageFilter(), "q"))
    assert change.replaced == {"gone from queue q, where newer ones have the same last-value-key": 2}


@pytest.mark.parametrize("verb", ["move", "copy"])
def test_what_becomes_transient_is_told(verb: str) -> None:
    """Only of what would have survived a restart where it was."""
    bench = PagedBench(-1, queue={"durable": False})
    begin = getattr(bench.broker.message_operations, verb)
    other = bench.broker.queues["other"]
    for persistent in (True, True, False):
        send(bench.broker, "other", head=head_of("other", persistent=persistent))
    change = bench.finish(begin(other, MessageFilter(), "q"))
    assert change.transient == {"queue q is not durable: what it has does not survive a restart": 2}
    assert (change.done_count, bench.queue.message_count) == (3, 3)
    back = bench.finish(begin(bench.queue, MessageFilter(), "late"))
    assert back.transient == {}


# ---- other deeds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("messages_max", [-1, 2])
def test_copies_leave_the_originals(messages_max: int) -> None:
    bench = PagedBench(messages_max)
    fill(bench, 6)
    bench.settle()
    assert bench.finish(bench.broker.message_operations.copy(bench.queue, MessageFilter(), "other")).done_count == 6
    assert (regions(bench, "q"), regions(bench, "other")) == (["eu"] * 6, ["eu"] * 6)


@pytest.mark.parametrize("messages_max", [-1, 2])
def test_removed_messages_are_gone(messages_max: int) -> None:
    bench = PagedBench(messages_max)
    fill(bench, 6)
    fill(bench, 2, "us")
    send(bench.broker, "q", head=head_of("q", region="eu"), due_ms=bench.now_ms + 1000)
    bench.settle()
    assert bench.finish(bench.broker.message_operations.remove(bench.queue, EU_ONLY)).done_count == 7
    assert (regions(bench, "q"), counts(bench, "graves"), bench.queue.contents.counters.killed) == (
        ["us"] * 2,
        (0, 0),
        7,
    )


def test_expired_messages_say_that_they_were_forced() -> None:
    bench = PagedBench(2)
    fill(bench, 5)
    bench.settle()
    assert bench.finish(bench.broker.message_operations.expire(bench.queue, MessageFilter())).done_count == 5
    assert [properties["reason"] for _, properties in contents(bench, "late")] == ["forced_expire"] * 5
    assert bench.queue.contents.counters.expired == 5


@pytest.mark.parametrize("messages_max", [-1, 2])
def test_a_priority_decides_the_order(messages_max: int) -> None:
    bench = PagedBench(messages_max)
    fill(bench, 3)
    fill(bench, 1, "us")
    bench.settle()
    change = bench.finish(bench.broker.message_operations.prioritize(bench.queue, US_ONLY, 9))
    assert change.done_count == 1
    bench.settle()
    found = contents(bench, "q")
    assert [properties.get("priority") for _, properties in found if properties.get("region") == "us"] == ["9"]
    if messages_max < 0:
        assert [region for region, _ in found] == ["us", "eu", "eu", "eu"]
    again = bench.broker.message_operations.prioritize(bench.queue, MessageFilter(ids=[5]), 4)
    assert bench.finish(again).done_count == 0


def test_one_message_by_its_number() -> None:
    bench = PagedBench(3)
    fill(bench, 10)
    bench.settle()
    for number in (9, 1):
        assert (
            bench.finish(bench.broker.message_operations.remove(bench.queue, MessageFilter(ids=[number]))).done_count
            == 1
        )
        assert (
            bench.finish(bench.broker.message_operations.remove(bench.queue, MessageFilter(ids=[number]))).done_count
            == 0
        )
    assert bench.queue.message_count == 8


# ---- dead letters ----------------------------------------------------------------------------------


def die(bench: PagedBench, count: int) -> None:
    """Messages of q that fail twice are on graves."""
    fill(bench, count)
    for _ in range(2):
        consumer = consumer_on(bench.broker, bench.queue)
        bench.settle()
        bench.broker.detach(bench.queue, consumer, failed=True, now_ms=bench.now_ms)
        bench.settle()
    assert counts(bench, "graves") == (count, count)


@pytest.mark.parametrize("messages_max", [-1, 2])
def test_dead_letters_go_back_to_their_queue(messages_max: int) -> None:
    """They keep what says who they are, and tell how often they went back."""
    bench = PagedBench(messages_max)
    graves = bench.broker.queues["graves"]
    die(bench, 4)
    assert (
        bench.finish(
            bench.broker.message_operations.retry(graves, MessageFilter(origin="q", cause="max_cancels"))
        ).done_count
        == 0
    )
    assert (
        bench.finish(bench.broker.message_operations.retry(graves, MessageFilter(origin="elsewhere"))).done_count == 0
    )
    assert (
        bench.finish(
            bench.broker.message_operations.retry(graves, MessageFilter(origin="q", cause="max_deliveries"))
        ).done_count
        == 4
    )
    bench.settle()
    for _, properties in contents(bench, "q"):
        assert {name: properties[name] for name in ("destination", "_ART_RETRIED", "_AMQ_ORIG_QUEUE", "region")} == {
            "destination": "q", "_ART_RETRIED": "1", "_AMQ_ORIG_QUEUE": "q", "region": "eu",
        }  # fmt: skip


def test_a_dead_letter_may_be_moved_before_it_goes_back() -> None:
    bench = PagedBench(-1)
    die(bench, 2)
    message_operations, queues = bench.broker.message_operations, bench.broker.queues
    bench.finish(message_operations.move(queues["graves"], MessageFilter(), "late"))
    assert bench.finish(message_operations.retry(queues["late"], MessageFilter())).done_count == 2
    assert counts(bench, "q") == (2, 2)


def test_what_came_from_nowhere_stays() -> None:
    bench = PagedBench(-1)
    send(bench.broker, "graves", 2)
    change = bench.finish(bench.broker.message_operations.retry(bench.broker.queues["graves"], MessageFilter()))
    assert (change.done_count, change.kept) == (0, {"does not say where it comes from": 2})


def test_an_allowance_is_kept() -> None:
    bench = PagedBench(-1)
    die(bench, 6)
    change = bench.broker.message_operations.retry(bench.broker.queues["graves"], MessageFilter(), allowance=2)
    for done_count, allowance in ((2, 0), (2, 3), (5, 3)):
        bench.broker.message_operations.nudge(change)
        bench.settle()
        assert (change.done_count, change.done, change.is_over) == (done_count, True, False)
        change.allowance = allowance
    bench.broker.message_operations.nudge(change)
    bench.settle()
    assert (change.done_count, change.is_over) == (6, True)


def test_a_broker_that_stops_waits_for_no_change() -> None:
    bench = PagedBench(2)
    fill(bench, 30)
    bench.settle()
    change = bench.broker.message_operations.move(bench.queue, MessageFilter(), "other")
    bench.turn()
    bench.broker.finish(bench.now_ms)
    assert (change.is_over, change.stopped_because) == (True, "the broker stopped")


def test_scheduled_messages_are_delivered_in_the_order_of_their_time() -> None:
    bench = PagedBench(-1)
    for delay_ms in (3000, 1000, 2000):
        send(bench.broker, "q", head=head_of("q", region=str(delay_ms)), due_ms=bench.now_ms + delay_ms)
    gone = 99
    assert (
        bench.broker.message_operations.deliver(bench.queue, [*bench.queue.contents.scheduled, gone], bench.now_ms) == 3
    )
    bench.settle()
    assert regions(bench, "q") == ["1000", "2000", "3000"]


# ---- what it costs ---------------------------------------------------------------------------------


def test_a_slice_is_short_however_much_there_is() -> None:
    """In each turn a change gets on, and does no more than its share."""
    bench = PagedBench(-1)
    send(bench.broker, "q", 20_000, head=head_of("q", persistent=True))
    change = bench.broker.message_operations.move(bench.queue, MessageFilter(), "other")
    most, before, turns = 0, 0, 0
    while not change.is_over:
        bench.turn()
        turns += 1
        most, before = max(most, change.done_count - before), change.done_count
    assert (change.done_count, most < 100, turns > 200) == (20_000, True, True)


def test_looking_costs_what_was_looked_at() -> None:
    bench = PagedBench(-1)
    send(bench.broker, "q", 5_000)
    change = Change(
        bench.queue,
        MessageFilter(compile_selector("region = 'none'")),
        bench.broker.message_operations.remove(bench.queue, MessageFilter(ids=[])).operation,
    )
    budget = Budget()
    while not change.is_over:
        budget.refill(500)
        change.work(budget, bench.now_ms)
        assert budget.left > -20
    assert change.done_count == 0
