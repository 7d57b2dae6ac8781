"""What happens at a full address is in the operational log, and so is who a line is about (docs/operational-log.md)."""

from __future__ import annotations

import pytest

from tests.kit.bench import Bench
from tests.kit.core import NOW_MS, consumer_on, send, told
from tests.kit.paged_bench import PagedBench

pytestmark = pytest.mark.wire


def limited(policy: str, limit: int = 3) -> Bench:
    """A full address with this policy."""
    text = f"<max-size-messages>{limit}</max-size-messages><address-full-policy>{policy}</address-full-policy>"
    bench = Bench(settings=text)
    bench.subscribe("idle", to="other")
    for number in range(limit):
        bench.send(str(number))
    assert not told(bench.core, "ART-1014", "ART-1015", "ART-1016", "CHN-1005")
    return bench


def test_what_a_full_address_drops() -> None:
    bench = limited("DROP")
    bench.world.client("producer").send(b"SEND\ndestination:/queue/q\n\nx\0" * 8)
    (event,) = told(bench.core, "ART-1014")
    assert (event.queue, event.count) == ("", 8)
    assert event.fields.items() >= {"address": "q", "messages": 3, "limit": "max-messages"}.items()
    assert (event.fields["session"], event.fields["acceptor"]) == ("s2", "stomp")


def test_what_a_full_address_refuses() -> None:
    bench = limited("FAIL")
    bench.write("producer", "SEND", "destination:/queue/q", body="x")
    (event,) = told(bench.core, "ART-1015")
    assert (event.fields["address"], event.fields["session"], event.count) == ("q", "s2", 1)


def test_what_a_full_address_refuses_at_a_commit() -> None:
    bench = limited("FAIL")
    bench.write("other", "BEGIN", "transaction:t")
    for _ in range(2):
        bench.write("other", "SEND", "destination:/queue/q", "transaction:t", body="x")
    bench.write("other", "COMMIT", "transaction:t")
    (event,) = told(bench.core, "ART-1015")
    assert (event.fields["address"], event.fields["session"], event.count) == ("q", "s3", 2)


def test_what_a_full_address_drops_at_a_commit() -> None:
    bench = limited("DROP")
    bench.write("other", "BEGIN", "transaction:t")
    bench.write("other", "SEND", "destination:/queue/q", "transaction:t", body="x")
    bench.write("other", "COMMIT", "transaction:t")
    (event,) = told(bench.core, "ART-1014")
    assert (event.fields["address"], event.fields["session"], event.count) == ("q", "s3", 1)


def test_where_paging_begins_and_ends() -> None:
    """Each time: the address fills up, and is emptied, twice. Nothing is told in between."""
    desk = PagedBench(messages_max=3)
    desk.broker.events.take()
    for _ in range(2):
        send(desk.broker, "q", 8)
        desk.settle()
        (event,) = desk.broker.events.take()
        assert (event.code, event.fields["address"]) == ("ART-1016", "q")
        send(desk.broker, "q", 2)
        desk.settle()
        assert not desk.broker.events.take()
        consumer = consumer_on(desk.broker, desk.queue, settles=True)
        desk.settle()
        desk.queue.detach(consumer, failed=False, now_ms=NOW_MS)
        (event,) = [one for one in desk.broker.events.take() if one.code.startswith("ART")]
        assert (event.code, event.fields) == ("ART-1020", {"address": "q", "messages": 0, "bytes": 0})


def test_paging_ends_with_the_last_queue_that_pages() -> None:
    desk = PagedBench(messages_max=3)
    send(desk.broker, "q", 8)
    desk.settle()
    desk.broker.events.take()
    desk.broker.registry.delete_queue(desk.queue, NOW_MS)
    assert [event.code for event in desk.broker.events.take()].count("ART-1020") == 1


def test_whom_a_full_address_makes_wait() -> None:
    bench = limited("BLOCK")
    bench.write("producer", "SEND", "destination:/queue/q", body="x")
    (event,) = told(bench.core, "CHN-1005")
    assert (event.queue, event.fields["address"], event.fields["session"]) == ("", "q", "s2")
    assert event.fields["acceptor"] == "stomp"
    bench.subscribe("consumer", ack="auto")
    (event,) = told(bench.core, "CHN-1006")
    assert (event.fields["address"], event.fields["session"]) == ("q", "s2")


def test_who_subscribes() -> None:
    bench = Bench()
    bench.subscribe("c")
    bench.leave("c")
    found = told(bench.core, "SUB-1001", "SUB-1002")
    assert [(event.code, event.fields["session"], event.fields["acceptor"]) for event in found] == [
        ("SUB-1001", "s1", "stomp"),
        ("SUB-1002", "s1", "stomp"),
    ]


def test_frames_that_are_refused() -> None:
    bench = Bench()
    bench.write("c", "ACK", "id:nonsense")
    (event,) = told(bench.core, "ART-1018")
    assert (event.fields["session"], event.fields["acceptor"]) == ("s1", "stomp")
    assert "nonsense" in str(event.fields["why"])


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        ("SEND\ndestination:q\n\n\0", "The first frame must be CONNECT or STOMP, not SEND"),
        ("CONNECT\naccept-version:3\nhost:x\n\n\0", "No common STOMP version: the client offers 3"),
        ("CONNECT\naccept-version:1.2\nno colon\n\n\0", "colon"),
    ],
)
def test_first_frames_that_are_refused(frame: str, why: str) -> None:
    bench = Bench()
    bench.world.client("c").send(frame.encode())
    (event,) = told(bench.core, "ART-1018")
    assert why in str(event.fields["why"])


def test_a_connection_that_the_broker_closes() -> None:
    bench = Bench(acceptor="connectionTtl=1000")
    bench.write("c", "BEGIN", "transaction:t")
    bench.world.advance(2000)
    (event,) = told(bench.core, "ART-1019")
    assert event.fields["session"] == "s1"
    assert str(event.fields["why"]).startswith("Nothing received for")
