"""Messages that are sent again and again: frames in, frames out, and through restarts."""

from __future__ import annotations

from itertools import chain, repeat
from unittest.mock import DEFAULT, Mock

import pytest

from artemis_py.config.settings import QueueConfig
from artemis_py.core.events import NO_DESTINATION as NO_DESTINATION_EVENT
from artemis_py.core.events import ORPHANED
from artemis_py.core.recurrence import fall_due
from artemis_py.management.operations.schedules import NO_DESTINATION, NO_QUEUE, WAITS, Schedule
from artemis_py.message import Account, Head, Message
from tests.kit.bench import Bench
from tests.kit.life import Life

EVERY_SECOND = ("AMQ_SCHEDULED_PERIOD:1000", "AMQ_SCHEDULED_REPEAT:-1")
SCHEDULES = "$schedules"


def beats(bench: Bench, count: int, step_ms: int = 1000) -> list[list[str]]:
    """What a client gets in each of so many steps."""
    found = []
    for _ in range(count):
        bench.world.advance(step_ms)
        found.append(bench.got("c"))
    return found


def test_a_period_until_it_has_repeated(cut: bool) -> None:
    bench = Bench(cut=cut)
    bench.subscribe("c", ack="auto")
    bench.send("a", "AMQ_SCHEDULED_PERIOD:1000", "AMQ_SCHEDULED_REPEAT:2")
    assert bench.got("c") == []
    assert beats(bench, 5) == [["a"], ["a"], ["a"], [], []]
    assert bench.count(SCHEDULES) == 0


def test_the_first_after_a_delay(cut: bool) -> None:
    bench = Bench(cut=cut)
    bench.subscribe("c", ack="auto")
    bench.send("a", "AMQ_SCHEDULED_DELAY:300", "AMQ_SCHEDULED_PERIOD:1000", "AMQ_SCHEDULED_REPEAT:1")
    assert beats(bench, 5, 300) == [["a"], [], [], [], ["a"]]


def test_a_period_alone_is_a_delay(cut: bool) -> None:
    bench = Bench(cut=cut)
    bench.subscribe("c", ack="auto")
    bench.send("a", "AMQ_SCHEDULED_PERIOD:1000")
    assert beats(bench, 3) == [["a"], [], []]


def test_cron(cut: bool) -> None:
    """The clock of these tests begins at the full minute."""
    bench = Bench(cut=cut)
    bench.subscribe("c", ack="auto")
    bench.send("a", "AMQ_SCHEDULED_CRON:* * * * *")
    found = [text for texts in beats(bench, 10, 30_000) for text in texts]
    assert found == ["a"] * 5


def test_all_subscribers_of_then_get_it(cut: bool) -> None:
    bench = Bench(cut=cut)
    bench.write("producer", "SEND", "destination:/topic/t", *EVERY_SECOND, body="a")
    bench.write("c", "SUBSCRIBE", "id:1", "destination:/topic/t")
    bench.write("late", "SUBSCRIBE", "id:1", "destination:/topic/t")
    assert beats(bench, 1) == [["a"]]
    assert bench.got("late") == ["a"]


def test_a_queue_of_a_qualified_name(cut: bool) -> None:
    bench = Bench(cut=cut)
    bench.write("producer", "SEND", "destination:q::q", *EVERY_SECOND, body="a")
    bench.subscribe("c", ack="auto")
    assert beats(bench, 2) == [["a"], ["a"]]


def test_in_a_transaction(cut: bool) -> None:
    bench = Bench(cut=cut)
    bench.subscribe("c", ack="auto")
    for name, command in (("kept", "COMMIT"), ("dropped", "ABORT")):
        bench.write("producer", "BEGIN", f"transaction:{name}")
        bench.send(name, f"transaction:{name}", *EVERY_SECOND)
        bench.write("producer", command, f"transaction:{name}")
    assert beats(bench, 2) == [["kept"], ["kept"]]


def test_it_expires(cut: bool) -> None:
    bench = Bench(cut=cut)
    bench.subscribe("c", ack="auto")
    bench.send("a", f"expires:{bench.world.now_ms + 2500}", *EVERY_SECOND)
    assert beats(bench, 5) == [["a"], ["a"], [], [], []]
    assert bench.count(SCHEDULES) == 0


def test_address_settings_do_not_count(cut: bool) -> None:
    bench = Bench(settings="<default-ring-size>1</default-ring-size>", cut=cut)
    bench.subscribe("c", ack="auto")
    for body in "abc":
        bench.send(body, *EVERY_SECOND)
    assert beats(bench, 2) == [["a", "b", "c"], ["a", "b", "c"]]


def test_a_wrong_one_is_an_error(cut: bool) -> None:
    bench = Bench(cut=cut)
    bench.send("a", "AMQ_SCHEDULED_CRON:tomorrow")
    (frame,) = bench.frames("producer")
    assert frame.command == "ERROR"
    assert "AMQ_SCHEDULED_CRON is not understood" in frame.text


@pytest.mark.parametrize("command", ["SEND", "SUBSCRIBE"])
def test_the_queue_is_the_broker_s_own(cut: bool, command: str) -> None:
    bench = Bench(cut=cut)
    bench.write("c", command, "id:1", f"destination:/queue/{SCHEDULES}")
    (frame,) = bench.frames("c")
    assert frame.command == "ERROR"
    assert f"{SCHEDULES}" in frame.text


def test_what_an_operator_moved_there_is_delivered_like_any_other(cut: bool) -> None:
    bench = Bench(cut=cut)
    bench.send("mine", *EVERY_SECOND)
    queue = bench.queue(SCHEDULES)
    other = Message(Head(b"destination:q\n\n", "q"), b"other", 999, 0, 0, Account(), 0)
    bench.world.broker.enqueuer.enqueue_copies(
        bench.world.broker.addresses[SCHEDULES], queue, [other], bench.world.now_ms, bench.world.now_ms + 1000
    )
    bench.subscribe("c", ack="auto")
    assert beats(bench, 1) == [["mine"]]
    assert (queue.contents.ready_count, len(queue.contents.scheduled)) == (1, 1)


@pytest.mark.interpreted
def test_one_that_cannot_wait_again_is_due_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.send("a", *EVERY_SECOND)
    bench.subscribe("c", ack="auto")
    name = "artemis_py.core.publish.publish.fall_due"
    monkeypatch.setattr(name, Mock(wraps=fall_due, side_effect=chain([ValueError("once")], repeat(DEFAULT))))
    assert beats(bench, 3) == [[], ["a"], ["a"]]


def test_it_survives_restarts_and_comes_once() -> None:
    life = Life("")
    life.send("a", "_AMQ_DUPL_ID:one", *EVERY_SECOND)
    life.send("a", "_AMQ_DUPL_ID:one", *EVERY_SECOND)
    for passed_ms in (1000, 2000, 3000):  # the clock of each life begins anew
        life = life.again()
        life.broker.advance(passed_ms)
        life.broker.drain()
    assert life.read() == ["a", "a", "a"]


def test_what_is_not_persistent_is_lost_with_the_broker() -> None:
    life = Life("")
    life.write("client", "SEND", "destination:/queue/q", *EVERY_SECOND, body="a")
    life = life.again()
    life.broker.advance(5000)
    life.broker.drain()
    assert life.read() == []


# ---- where nothing is any more ---------------------------------------------------------------------------------------

NOT_CREATED = "<auto-create-addresses>false</auto-create-addresses><auto-create-queues>false</auto-create-queues>"
DEAD = (
    "<dead-letter-address>dead</dead-letter-address><send-to-dla-on-no-route>true</send-to-dla-on-no-route>"
    + NOT_CREATED
)
DEAD_QUEUE = '<address name="dead"><anycast><queue name="dead"/></anycast></address>'


def delete(bench: Bench, name: str) -> None:
    """An operator deletes a queue and its address."""
    registry = bench.world.broker.registry
    address = bench.queue(name).address
    registry.delete_queue(bench.queue(name), bench.world.now_ms)
    registry.delete_address(bench.world.broker.addresses[address.name])


def states(bench: Bench) -> list[str]:
    queue = bench.queue(SCHEDULES)
    return [Schedule(bench.world.broker, queue, entry).state for entry in queue.contents.scheduled.values()]


def test_a_deleted_address_is_told_once_and_the_schedule_stays(cut: bool) -> None:
    bench = Bench(settings=NOT_CREATED, cut=cut)
    counts = bench.world.broker.events.counts
    bench.send("a", *EVERY_SECOND)
    assert states(bench) == [WAITS]
    delete(bench, "q")
    assert states(bench) == [NO_DESTINATION]
    bench.world.advance(1000)
    bench.world.advance(1000)
    assert (counts.get(NO_DESTINATION_EVENT), counts.get(ORPHANED), states(bench)) == (1, None, [NO_DESTINATION])
    assert list(bench.world.broker.addresses) == [SCHEDULES]


def test_a_schedule_whose_address_is_there_again_sends_and_is_told_anew(cut: bool) -> None:
    bench = Bench(settings=NOT_CREATED, cut=cut)
    broker = bench.world.broker
    bench.send("a", *EVERY_SECOND)
    for times in (1, 2):
        delete(bench, "q")
        bench.world.advance(1000)
        assert broker.events.counts[NO_DESTINATION_EVENT] == times
        address = broker.registry.create_address("q", auto_created=False)
        address.add_routing_types(("ANYCAST",))
        broker.registry.create_queue(
            address, QueueConfig(name="q", address="q", routing_type="ANYCAST"), auto_created=False
        )
        assert states(bench) == [WAITS]
        bench.world.advance(1000)
        assert bench.count("q") == 1


def test_what_reaches_nobody_becomes_a_dead_letter_where_settings_say_so(cut: bool) -> None:
    bench = Bench(settings=DEAD, more=DEAD_QUEUE, cut=cut)
    bench.send("a", *EVERY_SECOND)
    bench.subscribe("c", to="dead", ack="auto")
    delete(bench, "q")
    bench.world.advance(1000)
    (frame,) = bench.messages("c")
    assert (frame.body, frame.header("_AMQ_ORIG_ADDRESS"), frame.header("reason")) == (b"a", "q", "no_route")


def test_a_deleted_queue_of_a_qualified_name(cut: bool) -> None:
    more = '<address name="a"><anycast><queue name="one"/><queue name="two"/></anycast></address>'
    bench = Bench(settings=NOT_CREATED, more=more, cut=cut)
    bench.write("producer", "SEND", "destination:a::one", *EVERY_SECOND, body="a")
    assert states(bench) == [WAITS]
    bench.world.broker.registry.delete_queue(bench.queue("one"), bench.world.now_ms)
    assert states(bench) == [NO_DESTINATION]
    bench.world.advance(1000)
    assert (bench.world.broker.events.counts.get(NO_DESTINATION_EVENT), bench.count("two")) == (1, 0)


def test_where_addresses_are_created_the_schedule_creates_its_own(cut: bool) -> None:
    bench = Bench(cut=cut)
    bench.send("a", *EVERY_SECOND)
    delete(bench, "q")
    assert states(bench) == [WAITS]
    bench.world.advance(1000)
    assert bench.count("q") == 1
    assert NO_DESTINATION_EVENT not in bench.world.broker.events.counts


def test_a_topic_without_subscribers_has_no_queue(cut: bool) -> None:
    bench = Bench(cut=cut)
    bench.write("producer", "SEND", "destination:/topic/t", *EVERY_SECOND, body="a")
    assert states(bench) == [NO_QUEUE]
    bench.world.advance(1000)
    bench.write("c", "SUBSCRIBE", "id:1", "destination:/topic/t")
    assert states(bench) == [WAITS]
    bench.write("c", "UNSUBSCRIBE", "id:1")
    assert states(bench) == [NO_QUEUE]


@pytest.mark.interpreted
def test_the_log_remembers_a_limited_number_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artemis_py.core.publish.publish._SCHEDULES_MAX", 2)
    bench = Bench(settings=NOT_CREATED)
    for body in "abc":
        bench.send(body, *EVERY_SECOND)
    delete(bench, "q")
    for _ in range(3):
        bench.world.advance(1000)
        assert len(bench.world.broker.copy_publisher._without_destination) <= 2
