"""Headers of other brokers are told once, with what to use here, and cost nothing per message."""

from __future__ import annotations

import pytest

from artemis_py.core.events import FOREIGN_HEADER, NO_ID, Event, Events
from artemis_py.server.operational_log import OperationalLog, line_of
from artemis_py.stomp.foreign_headers import FAMILIES, KNOWN, OWN, ForeignHeaders
from tests.kit.bench import Bench
from tests.kit.core import told as events_of


def told(bench: Bench) -> dict[tuple[str, str], Event]:
    """What was told since the last look, by frame and header."""
    events = events_of(bench.core, FOREIGN_HEADER)
    return {(str(event.fields["frame"]), str(event.fields["header"])): event for event in events}


def test_a_subscriber_of_another_broker_is_told_once() -> None:
    bench = Bench()
    asked = ("durable:true", "auto-delete:false", "x-queue-name:mine", "x-anything:1", "activemq.dispatchAsync:true")
    bench.subscribe("c", *asked, "activemq.prefetchSize:5", "x-priority:1")
    found = told(bench)
    assert {header for _, header in found} == {line.partition(":")[0] for line in asked}
    durable = found["SUBSCRIBE", "durable"]
    assert durable.fields["session"] == "s1"
    assert "durable-subscription-name" in str(durable.fields["use"])
    assert line_of(durable).startswith("ART-1013 session=s1 acceptor=stomp frame=SUBSCRIBE header=durable use=")
    assert line_of(durable).endswith(" client sends a header that means nothing here")
    assert "queue=" not in line_of(durable)
    bench.subscribe("d", *asked, to="r")
    assert told(bench) == {}


def test_a_subscription_without_an_id_is_told_once() -> None:
    bench = Bench()
    for name in ("q", "r"):
        bench.write("c", "SUBSCRIBE", f"destination:/queue/{name}")
    (event,) = events_of(bench.core, NO_ID)
    assert event.count == 1
    assert line_of(event) == (
        'ART-1017 session=s1 acceptor=stomp use="an id of its own for each subscription" '
        "client subscribes without an id, so the destination serves as one"
    )


@pytest.mark.parametrize("more", ["", "note:with\\nan escape"])
def test_a_sender_is_told_once_however_many_messages_it_sends(more: str) -> None:
    bench = Bench()
    for number in range(5):
        bench.send("x", "expiration:1000", f"n:{number}", *([more] if more else []))
    (event,) = told(bench).values()
    assert (event.fields["header"], event.fields["use"]) == ("expiration", "expires, in epoch ms")
    assert (event.fields["session"], event.fields["acceptor"]) == ("s1", "stomp")
    bench.send("x", "expiration:1", "shop:7", "x-own:of the application")
    assert told(bench) == {}
    bench.subscribe("c")
    assert bench.messages("c")[0].header("expiration") == "1000"


def test_connect() -> None:
    bench = Bench()
    bench.world.client("c").send(b"CONNECT\naccept-version:1.2\nhost:x\nlogin:me\nusername:me\npassword:secret\n\n\0")
    found = told(bench)
    assert {header for _, header in found} == {"username", "password"}
    assert found["CONNECT", "username"].fields["user"] == "me"
    assert "secret" not in "".join(line_of(event) for event in found.values())


def test_what_is_told_has_a_limit() -> None:
    events = Events()
    foreign = ForeignHeaders(events)
    foreign.check("SUBSCRIBE", [f"x-{number}" for number in range(10_000)], {})
    assert events.counts[FOREIGN_HEADER] == 256


def test_each_header_has_its_line_however_many_come_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """It is told only once, so a line that is left out would never come."""
    events, log = Events(), OperationalLog()
    foreign = ForeignHeaders(events)
    foreign.check("SUBSCRIBE", [f"x-{number}" for number in range(60)], {"session": "s1"})
    with caplog.at_level("INFO", "artemis_py.operational"):
        log.write(events.take(), 1)
        log.end()
    assert len(caplog.messages) == 60
    assert not any("not_written_before" in line for line in caplog.messages)


def test_what_a_client_says_when_it_refuses_a_message_or_leaves() -> None:
    bench = Bench()
    bench.send("x")
    bench.subscribe("c", "transformation:jms-map-json")
    (message,) = bench.messages("c")
    bench.write("c", "NACK", f"id:{message.header('ack')}", "requeue:false")
    bench.write("c", "UNSUBSCRIBE", "id:1", "durable:true", "persistent:true")
    assert set(told(bench)) == {
        ("SUBSCRIBE", "transformation"), ("NACK", "requeue"), ("UNSUBSCRIBE", "durable"), ("UNSUBSCRIBE", "persistent"),
    }  # fmt: skip


def test_the_table_names_nothing_that_has_a_meaning_here() -> None:
    assert all(name.startswith(FAMILIES) for name in OWN)
    assert not OWN & KNOWN["SUBSCRIBE"].keys()


def test_a_header_is_told_of_the_client_whose_frame_it_is() -> None:
    """The block is read when it comes, and carried out with its body: meanwhile others send."""
    bench = Bench()
    bench.subscribe("a")
    bench.world.client("a").send(b"SEND\ndestination:/queue/q\nx-delay:1\ncontent-length:5\n\nab")
    bench.send("b", to="/queue/q")
    (event,) = told(bench).values()
    assert event.fields["session"] == "s1"
