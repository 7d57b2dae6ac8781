"""What operators do with messages: exactly with those that were chosen, wherever they are, in slices."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.operations.choice import Choice
from artemis_py.core.operations.messages import Change
from artemis_py.errors import BrokerError, NotFoundError
from artemis_py.selector import compile_selector
from tests.unit.core.paged_desk import PagedDesk
from tests.unit.core.parts import consumer_on, head_of, held, send

EU = "region = 'eu'"


def chosen(text: str) -> Choice:
    return Choice(compile_selector(text))


def fill(desk: PagedDesk, count: int, region: str = "eu") -> None:
    for _ in range(count):
        send(desk.broker, "q", head=head_of("q", persistent=True, region=region), now_ms=desk.now_ms)


def contents(desk: PagedDesk, name: str) -> list[tuple[str | None, dict[str, str]]]:
    """Region and headers of what can be taken from a queue now, in order."""
    queue = desk.broker.queues[name]
    taken: list[tuple[str | None, dict[str, str]]] = []
    consumer = consumer_on(desk.broker, queue)
    for _ in range(1000):
        desk.settle()
        if not consumer.held:
            break
        for number in held(consumer):
            entry = consumer.let_go(number)
            properties = entry.message.head.properties
            taken.append((properties.get("region"), properties))
            queue.acknowledge(consumer, [entry])
        queue.wake(consumer)
    desk.broker.detach(queue, consumer, failed=False, now_ms=desk.now_ms)
    return taken


def regions(desk: PagedDesk, name: str) -> list[str | None]:
    return [region for region, _ in contents(desk, name)]


def counts(desk: PagedDesk, name: str) -> tuple[int, int]:
    queue = desk.broker.queues[name]
    return queue.message_count, queue.unheld_count


# ---- moves -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("messages_max", [-1, 2, 20])
@pytest.mark.parametrize("units", [10_000, 60, 1])
def test_what_matches_is_moved_and_the_rest_stays(messages_max: int, units: int) -> None:
    """In order, from memory and from pages, in whole turns and in tiny ones."""
    desk = PagedDesk(messages_max, units=units)
    for number in range(30):
        fill(desk, 1, "eu" if number % 3 else "us")
    desk.settle()
    change = desk.finish(desk.broker.handling.move(desk.queue, chosen(EU), "other"))
    assert (change.done_count, change.kept, change.held_count) == (20, {}, 0)
    assert (counts(desk, "q"), counts(desk, "other")) == ((10, 10), (20, 20))
    desk.units = 10_000
    assert regions(desk, "q") == ["us"] * 10
    assert regions(desk, "other") == ["eu"] * 20


def test_a_moved_message_says_where_it_comes_from() -> None:
    desk = PagedDesk()
    send(desk.broker, "q", head=head_of("q", persistent=True, colour="red"), now_ms=desk.now_ms - 5)
    desk.finish(desk.broker.handling.move(desk.queue, Choice(), "other"))
    (entry,) = desk.broker.queues["other"].contents.order
    assert (entry.message.timestamp_ms, entry.message.head.address) == (desk.now_ms - 5, "other")
    assert entry.message.head.properties == {
        "destination": "other", "_AMQ_ORIG_ADDRESS": "q", "_AMQ_ORIG_MESSAGE_ID": "1", "_AMQ_ORIG_QUEUE": "q",
        "colour": "red",
    }  # fmt: skip


def test_a_scheduled_message_stays_scheduled() -> None:
    desk = PagedDesk()
    send(desk.broker, "q", due_ms=desk.now_ms + 500)
    desk.finish(desk.broker.handling.move(desk.queue, Choice(), "other"))
    other = desk.broker.queues["other"].contents
    assert [other.waits_until.of(number) for number in other.scheduled] == [desk.now_ms + 500]
    desk.now_ms += 500
    desk.settle()
    assert other.order.count == 1
    assert len(other.waits_until) == 0


def test_what_a_consumer_has_is_named_and_left_alone() -> None:
    desk = PagedDesk()
    fill(desk, 4)
    consumer = consumer_on(desk.broker, desk.queue, window_bytes=1)
    desk.settle()
    change = desk.finish(desk.broker.handling.move(desk.queue, chosen(EU), "other"))
    assert (change.done_count, change.held_count, change.held_ids) == (3, 1, [1])
    assert held(consumer) == [1]


def test_what_comes_later_is_not_moved() -> None:
    desk = PagedDesk(-1, units=1)
    fill(desk, 10)
    change = desk.broker.handling.move(desk.queue, Choice(), "other")
    desk.turn()
    fill(desk, 5, "late")
    desk.finish(change)
    assert change.done_count == 10
    desk.units = 10_000
    assert regions(desk, "q") == ["late"] * 5


def test_consumers_are_served_meanwhile_and_nothing_is_lost_or_doubled(rng: random.Random) -> None:
    """Each message is on one of the queues, or was delivered: exactly one of these."""
    for _ in range(20):
        desk = PagedDesk(rng.choice((-1, 3)), units=rng.choice((5, 50, 500)))
        fill(desk, 40)
        desk.settle()
        change = desk.broker.handling.move(desk.queue, Choice(), "other")
        consumers: list[Consumer] = []
        delivered = 0
        while not change.is_over:
            desk.broker.handling.nudge(change)
            if rng.random() < 0.1:
                consumers.append(consumer_on(desk.broker, desk.queue, window_bytes=200))
            if consumers and rng.random() < 0.3:
                consumer = rng.choice(consumers)
                for number in held(consumer)[:1]:
                    desk.queue.acknowledge(consumer, [consumer.let_go(number)])
                    delivered += 1
                desk.queue.wake(consumer)
            if consumers and rng.random() < 0.1:
                consumer = consumers.pop()
                desk.broker.detach(desk.queue, consumer, failed=False, now_ms=desk.now_ms)
            if rng.random() < 0.5:
                desk.work_disk()
            desk.turn()
        for consumer in consumers:
            desk.broker.detach(desk.queue, consumer, failed=False, now_ms=desk.now_ms)
        desk.units = 10_000
        desk.settle()
        assert counts(desk, "other")[0] == change.done_count
        assert counts(desk, "q")[0] + change.done_count + delivered == 40


@pytest.mark.parametrize("policy", ["DROP", "FAIL", "BLOCK"])
def test_a_full_target_stops_a_move(policy: str) -> None:
    """Nothing is lost: what finds no room stays where it is."""
    desk = PagedDesk(-1, other={"address_full_policy": policy, "max_size_messages": 3})
    fill(desk, 5)
    change = desk.finish(desk.broker.handling.move(desk.queue, Choice(), "other"))
    assert (change.done_count, change.stopped_because) == (3, f"address other is full ({policy})")
    assert (counts(desk, "q"), counts(desk, "other")) == ((2, 2), (3, 3))


def test_a_move_to_an_address_asks_its_filters() -> None:
    desk = PagedDesk()
    fill(desk, 2)
    fill(desk, 1, "us")
    desk.broker.queues["other"].selector = compile_selector(EU)
    change = desk.finish(desk.broker.handling.move(desk.queue, Choice(), "other"))
    assert change.done_count == 3, "a queue gets what an operator moves to it, whatever its filter says"


def test_where_messages_cannot_go() -> None:
    desk = PagedDesk()
    handling = desk.broker.handling
    with pytest.raises(NotFoundError, match="there is no queue or address 'nowhere'"):
        handling.move(desk.queue, Choice(), "nowhere")
    with pytest.raises(BrokerError, match="q is the queue itself"):
        handling.move(desk.queue, Choice(), "q")
    desk.broker.queues["other"].enabled = False
    with pytest.raises(BrokerError, match="queue other is disabled"):
        handling.copy(desk.queue, Choice(), "other::other")
    with pytest.raises(BrokerError, match="queue other has no dead-letter-address"):
        handling.bury(desk.broker.queues["other"], Choice())
    with pytest.raises(BrokerError, match="a priority is a number from 0 to 9, and not 10"):
        handling.prioritize(desk.queue, Choice(), 10)
    assert not desk.broker.agenda


@pytest.mark.interpreted
def test_a_target_that_breaks_off_gets_nothing_and_the_message_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = PagedDesk(-1)
    fill(desk, 3)

    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(type(desk.broker.handling._targets.find("other")), "put", fail)
    change = desk.finish(desk.broker.handling.move(desk.queue, Choice(), "other"))
    assert (change.done_count, change.stopped_because) == (0, "a step of it failed; see the log of the broker")
    monkeypatch.undo()
    assert regions(desk, "q") == ["eu"] * 3


# ---- targets that keep less than they get ----------------------------------------------------------


@pytest.mark.parametrize("messages_max", [-1, 2])
@pytest.mark.parametrize("verb", ["move", "copy", "bury", "retry"])
@pytest.mark.parametrize(("ring_size", "count", "gone"), [(2, 5, 3), (1, 4, 3), (4, 4, 0)])
def test_what_a_ring_gives_up_is_counted(verb: str, messages_max: int, ring_size: int, count: int, gone: int) -> None:
    """What is there, and what the change says to be gone, are all that was chosen."""
    desk = PagedDesk(messages_max)
    handling, queues = desk.broker.handling, desk.broker.queues
    target = {"bury": "graves", "retry": "q"}.get(verb, "other")
    source = queues["graves"] if verb == "retry" else desk.queue
    if verb == "retry":
        die(desk, count)
    else:
        fill(desk, count)
    desk.broker.operations.set_ring_size(target, ring_size)
    begin: dict[str, Callable[[], Change]] = {
        "move": lambda: handling.move(source, Choice(), "other"),
        "copy": lambda: handling.copy(source, Choice(), "other::other"),
        "bury": lambda: handling.bury(source, Choice()),
        "retry": lambda: handling.retry(source, Choice()),
    }
    change = desk.finish(begin[verb]())
    if target == "q" and messages_max > 0:  # what is in pages has no part in the ring yet
        gone = count - counts(desk, target)[0]
    keeps = "1 message" if ring_size == 1 else f"{ring_size} messages"
    assert (change.done_count, change.kept) == (count, {})
    assert change.replaced == ({f"gone from queue {target}, which keeps {keeps} (ring-size)": gone} if gone else {})
    assert counts(desk, target)[0] == count - gone
    assert source.message_count == (count if verb == "copy" else 0)


def test_older_messages_of_a_ring_count_too() -> None:
    desk = PagedDesk(-1)
    desk.broker.operations.set_ring_size("other", 2)
    send(desk.broker, "other", 2)
    fill(desk, 1)
    change = desk.finish(desk.broker.handling.move(desk.queue, Choice(), "other"))
    assert list(change.replaced.values()) == [1]


def test_newer_values_are_told() -> None:
    desk = PagedDesk(-1, queue={"last_value_key": "region", "last_value": True})
    for _ in range(3):
        send(desk.broker, "other", head=head_of("other", persistent=True, region="eu"))
    change = desk.finish(desk.broker.handling.move(desk.broker.queues["other"], Choice(), "q"))
    assert change.replaced == {"gone from queue q, where newer ones have the same last-value-key": 2}


@pytest.mark.parametrize("verb", ["move", "copy"])
def test_what_becomes_transient_is_told(verb: str) -> None:
    """Only of what would have survived a restart where it was."""
    desk = PagedDesk(-1, queue={"durable": False})
    begin = getattr(desk.broker.handling, verb)
    other = desk.broker.queues["other"]
    for persistent in (True, True, False):
        send(desk.broker, "other", head=head_of("other", persistent=persistent))
    change = desk.finish(begin(other, Choice(), "q"))
    assert change.transient == {"queue q is not durable: what it has does not survive a restart": 2}
    assert (change.done_count, desk.queue.message_count) == (3, 3)
    back = desk.finish(begin(desk.queue, Choice(), "late"))
    assert back.transient == {}


# ---- other deeds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("messages_max", [-1, 2])
def test_copies_leave_the_originals(messages_max: int) -> None:
    desk = PagedDesk(messages_max)
    fill(desk, 6)
    desk.settle()
    assert desk.finish(desk.broker.handling.copy(desk.queue, Choice(), "other")).done_count == 6
    assert (regions(desk, "q"), regions(desk, "other")) == (["eu"] * 6, ["eu"] * 6)


@pytest.mark.parametrize("messages_max", [-1, 2])
def test_removed_messages_are_gone(messages_max: int) -> None:
    desk = PagedDesk(messages_max)
    fill(desk, 6)
    fill(desk, 2, "us")
    send(desk.broker, "q", head=head_of("q", region="eu"), due_ms=desk.now_ms + 1000)
    desk.settle()
    assert desk.finish(desk.broker.handling.remove(desk.queue, chosen(EU))).done_count == 7
    assert (regions(desk, "q"), counts(desk, "graves"), desk.queue.contents.counters.killed) == (["us"] * 2, (0, 0), 7)


def test_expired_messages_say_that_they_were_forced() -> None:
    desk = PagedDesk(2)
    fill(desk, 5)
    desk.settle()
    assert desk.finish(desk.broker.handling.expire(desk.queue, Choice())).done_count == 5
    assert [properties["reason"] for _, properties in contents(desk, "late")] == ["forced_expire"] * 5
    assert desk.queue.contents.counters.expired == 5


@pytest.mark.parametrize("messages_max", [-1, 2])
def test_a_priority_decides_the_order(messages_max: int) -> None:
    desk = PagedDesk(messages_max)
    fill(desk, 3)
    fill(desk, 1, "us")
    desk.settle()
    change = desk.finish(desk.broker.handling.prioritize(desk.queue, chosen("region = 'us'"), 9))
    assert change.done_count == 1
    desk.settle()
    found = contents(desk, "q")
    assert [properties.get("priority") for _, properties in found if properties.get("region") == "us"] == ["9"]
    if messages_max < 0:
        assert [region for region, _ in found] == ["us", "eu", "eu", "eu"]
    again = desk.broker.handling.prioritize(desk.queue, Choice(ids=[5]), 4)
    assert desk.finish(again).done_count == 0


def test_one_message_by_its_number() -> None:
    desk = PagedDesk(3)
    fill(desk, 10)
    desk.settle()
    for number in (9, 1):
        assert desk.finish(desk.broker.handling.remove(desk.queue, Choice(ids=[number]))).done_count == 1
        assert desk.finish(desk.broker.handling.remove(desk.queue, Choice(ids=[number]))).done_count == 0
    assert desk.queue.message_count == 8


# ---- dead letters ----------------------------------------------------------------------------------


def die(desk: PagedDesk, count: int) -> None:
    """Messages of q that fail twice are on graves."""
    fill(desk, count)
    for _ in range(2):
        consumer = consumer_on(desk.broker, desk.queue)
        desk.settle()
        desk.broker.detach(desk.queue, consumer, failed=True, now_ms=desk.now_ms)
        desk.settle()
    assert counts(desk, "graves") == (count, count)


@pytest.mark.parametrize("messages_max", [-1, 2])
def test_dead_letters_go_back_to_their_queue(messages_max: int) -> None:
    """They keep what says who they are, and tell how often they went back."""
    desk = PagedDesk(messages_max)
    graves = desk.broker.queues["graves"]
    die(desk, 4)
    assert desk.finish(desk.broker.handling.retry(graves, Choice(origin="q", cause="max_cancels"))).done_count == 0
    assert desk.finish(desk.broker.handling.retry(graves, Choice(origin="elsewhere"))).done_count == 0
    assert desk.finish(desk.broker.handling.retry(graves, Choice(origin="q", cause="max_deliveries"))).done_count == 4
    desk.settle()
    for _, properties in contents(desk, "q"):
        assert {name: properties[name] for name in ("destination", "_ART_RETRIED", "_AMQ_ORIG_QUEUE", "region")} == {
            "destination": "q", "_ART_RETRIED": "1", "_AMQ_ORIG_QUEUE": "q", "region": "eu",
        }  # fmt: skip


def test_a_dead_letter_may_be_moved_before_it_goes_back() -> None:
    desk = PagedDesk(-1)
    die(desk, 2)
    handling, queues = desk.broker.handling, desk.broker.queues
    desk.finish(handling.move(queues["graves"], Choice(), "late"))
    assert desk.finish(handling.retry(queues["late"], Choice())).done_count == 2
    assert counts(desk, "q") == (2, 2)


def test_what_came_from_nowhere_stays() -> None:
    desk = PagedDesk(-1)
    send(desk.broker, "graves", 2)
    change = desk.finish(desk.broker.handling.retry(desk.broker.queues["graves"], Choice()))
    assert (change.done_count, change.kept) == (0, {"does not say where it comes from": 2})


def test_an_allowance_is_kept() -> None:
    desk = PagedDesk(-1)
    die(desk, 6)
    change = desk.broker.handling.retry(desk.broker.queues["graves"], Choice(), allowance=2)
    for done_count, allowance in ((2, 0), (2, 3), (5, 3)):
        desk.broker.handling.nudge(change)
        desk.settle()
        assert (change.done_count, change.done, change.is_over) == (done_count, True, False)
        change.allowance = allowance
    desk.broker.handling.nudge(change)
    desk.settle()
    assert (change.done_count, change.is_over) == (6, True)


def test_a_broker_that_stops_waits_for_no_change() -> None:
    desk = PagedDesk(2)
    fill(desk, 30)
    desk.settle()
    change = desk.broker.handling.move(desk.queue, Choice(), "other")
    desk.turn()
    desk.broker.finish(desk.now_ms)
    assert (change.is_over, change.stopped_because) == (True, "the broker stopped")


def test_scheduled_messages_are_delivered_in_the_order_of_their_time() -> None:
    desk = PagedDesk(-1)
    for delay_ms in (3000, 1000, 2000):
        send(desk.broker, "q", head=head_of("q", region=str(delay_ms)), due_ms=desk.now_ms + delay_ms)
    gone = 99
    assert desk.broker.handling.deliver(desk.queue, [*desk.queue.contents.scheduled, gone], desk.now_ms) == 3
    desk.settle()
    assert regions(desk, "q") == ["1000", "2000", "3000"]


# ---- what it costs ---------------------------------------------------------------------------------


def test_a_slice_is_short_however_much_there_is() -> None:
    """In each turn a change gets on, and does no more than its share."""
    desk = PagedDesk(-1)
    send(desk.broker, "q", 20_000, head=head_of("q", persistent=True))
    change = desk.broker.handling.move(desk.queue, Choice(), "other")
    most, before, turns = 0, 0, 0
    while not change.is_over:
        desk.turn()
        turns += 1
        most, before = max(most, change.done_count - before), change.done_count
    assert (change.done_count, most < 100, turns > 200) == (20_000, True, True)


def test_looking_costs_what_was_looked_at() -> None:
    desk = PagedDesk(-1)
    send(desk.broker, "q", 5_000)
    change = Change(desk.queue, chosen("region = 'none'"), desk.broker.handling.remove(desk.queue, Choice(ids=[])).deed)
    budget = Budget()
    while not change.is_over:
        budget.refill(500)
        change.work(budget, desk.now_ms)
        assert budget.left > -20
    assert change.done_count == 0
