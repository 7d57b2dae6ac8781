"""Messages that are sent again and again: frames in, frames out, and through restarts."""

from __future__ import annotations

import pytest

from artemis_py.core.recurrence import Due, fall_due
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

    def fails(head: Head, number: int, now_ms: int) -> Due:
        monkeypatch.setattr(name, fall_due)
        raise ValueError("once")

    monkeypatch.setattr(name, fails)
    assert beats(bench, 3) == [[], ["a"], ["a"]]


def test_it_survives_restarts_and_comes_once() -> None:
    life = Life("")
    life.send(life.client(), "a", "_AMQ_DUPL_ID:one", *EVERY_SECOND)
    life.send(life.client(), "a", "_AMQ_DUPL_ID:one", *EVERY_SECOND)
    for passed_ms in (1000, 2000, 3000):  # the clock of each life begins anew
        life = life.again()
        life.broker.advance(passed_ms)
        life.broker.drain()
    assert life.read(life.client()) == ["a", "a", "a"]


def test_what_is_not_persistent_is_lost_with_the_broker() -> None:
    life = Life("")
    life.write(life.client(), "SEND", "destination:/queue/q", *EVERY_SECOND, body="a")
    life = life.again()
    life.broker.advance(5000)
    life.broker.drain()
    assert life.read(life.client()) == []
