"""What the operational log tells of queues with attributes of AMPS: leases that end, backlogs that are used up, and why
a message is dead (docs/operational-log.md).
"""

from __future__ import annotations

import pytest

from artemis_py.core.events import Event
from tests.kit.bench import Bench
from tests.kit.core import told
from tests.queues.test_q_alerts import log_with

pytestmark = pytest.mark.wire

FLAT = "consumer-window-size:-1"
LEASES = "lease-period='1s' max-per-subscription-backlog='9'"
DEAD = "<address name='dead'><anycast><queue name='dead'/></anycast></address>"


def line_of_one(events: list[Event]) -> str:
    """The line of the only event."""
    lines: list[str] = []
    log_with(lines).write(events, 0)
    (line,) = lines
    return line


def test_A_19_leases_that_end_are_told_with_their_number_and_last_holder(cut: bool) -> None:
    bench = Bench(LEASES, cut=cut)
    bench.client("c1", "client-id:shop", "login:ada")
    bench.subscribe("c1", FLAT, "max-backlog:9")
    for body in "abc":
        bench.send(body)
    bench.world.advance(999)
    assert told(bench.core, "ART-1007") == []
    bench.world.advance(1)
    (event,) = told(bench.core, "ART-1007")
    (consumer,) = bench.queue().distribution.consumers
    assert (event.queue, event.count) == ("q", 3)
    assert event.fields == {
        "consumer": consumer.id, "connection": consumer.reader.connection, "client_id": "shop",
        "user": "ada", "session": "s1", "acceptor": "stomp",
    }  # fmt: skip
    assert line_of_one([event]).startswith(f"ART-1007 queue=q consumer={consumer.id} connection=")
    assert line_of_one([event]).endswith("acceptor=stomp count=3 leases ended before their messages were acknowledged")


def test_A_19_leases_that_do_not_end_are_not_told(cut: bool) -> None:
    """Acknowledged in time, given back, or lost with the connection."""
    bench = Bench(LEASES, cut=cut)
    bench.subscribe("c1", FLAT, "max-backlog:9")
    for body in "abc":
        bench.send(body)
    first, second, _ = bench.messages("c1")
    bench.settle("c1", first)
    bench.settle("c1", second, "NACK")
    bench.lose("c1")
    bench.world.advance(5000)
    assert told(bench.core, "ART-1007") == []


def test_A_59_a_queue_that_is_held_up_says_by_whom(cut: bool) -> None:
    bench = Bench("max-per-subscription-backlog='2' lease-period='1m'", cut=cut)
    bench.subscribe("c1", FLAT, "max-backlog:2")
    for body in "abc":
        bench.send(body)
    frames = bench.messages("c1")
    assert [frame.body for frame in frames] == [b"a", b"b"]
    bench.world.advance(9999)
    assert told(bench.core, "ART-1008") == []
    bench.world.advance(1)
    (event,) = told(bench.core, "ART-1008")
    (consumer,) = bench.queue().distribution.consumers
    assert line_of_one([event]) == (
        "ART-1008 queue=q reason=consumer-backlogs quiet_ms=10000 ready=1 consumers=1 full=1 held=2 "
        f"consumer={consumer.id} oldest_ms=10000 "
        'why="1 of 1 consumers hold 2 messages and have room for no more (max-backlog); '
        f'consumer {consumer.id} has had the oldest for 10 s" '
        "nothing is delivered although messages are ready: backlogs are used up"
    )
    bench.settle("c1", frames[0])
    assert bench.got("c1") == ["c"]
    bench.world.advance(100_000)
    assert told(bench.core, "ART-1008") == []


def test_A_25_messages_sent_at_most_once_hold_a_queue_up_too(cut: bool) -> None:
    bench = Bench("delivery-semantics='at-most-once' max-backlog='1' max-per-subscription-backlog='9'", cut=cut)
    bench.subscribe("c1", FLAT, "max-backlog:9")
    for body in "ab":
        bench.send(body)
    bench.world.advance(10_000)
    (event,) = told(bench.core, "ART-1008")
    assert (event.fields["reason"], event.fields["unconfirmed"], event.fields["max_backlog"]) == ("max-backlog", 1, 1)


@pytest.mark.parametrize(
    ("attributes", "reason"), [("max-deliveries='1'", "max_deliveries"), ("max-cancels='1'", "max_cancels")]
)
@pytest.mark.parametrize(("target", "code"), [("dead", "CHN-1011"), ("nowhere", "CHN-1010"), ("", "CHN-1009")])
def test_A_28_a_dead_message_is_told_with_its_reason(
    cut: bool, attributes: str, reason: str, target: str, code: str
) -> None:
    bench = Bench(f"{attributes} dead-letter-address='{target}'", more=DEAD, cut=cut)
    bench.subscribe("c1")
    bench.send("a")
    (frame,) = bench.messages("c1")
    bench.settle("c1", frame, "NACK")
    (event,) = told(bench.core, code)
    assert event.fields["reason"] == reason
    assert f"reason={reason}" in line_of_one([event])


def test_A_28_each_reason_has_its_own_count(cut: bool) -> None:
    bench = Bench("max-deliveries='2' max-cancels='1' dead-letter-address='dead'", more=DEAD, cut=cut)
    bench.subscribe("c1", FLAT)
    bench.send("a")
    bench.messages("c1")
    bench.leave("c1")
    bench.subscribe("c1", FLAT)
    bench.messages("c1")
    bench.leave("c1")
    bench.subscribe("c1", FLAT)
    bench.send("b")
    (frame,) = bench.messages("c1")
    bench.settle("c1", frame, "NACK")
    found = [(event.fields["reason"], event.count) for event in told(bench.core, "CHN-1011")]
    assert found == [("max_deliveries", 1), ("max_cancels", 1)]
