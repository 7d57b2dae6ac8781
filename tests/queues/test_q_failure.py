"""Qpid's rows about messages that fail (Q-73 to Q-75 of rows.py) and Artemis' dead letters."""

from __future__ import annotations

import pytest

from tests.kit.bench import ONE_AT_A_TIME, Bench
from tests.kit.life import Life

pytestmark = pytest.mark.wire

DEAD = """<address name="dead"><anycast><queue name="dead"/></anycast></address>
<address name="other"><anycast><queue name="other"/></anycast></address>"""


def refuse(bench: Bench, times: int, name: str = "c") -> list[str | None]:
    """A consumer refuses what it gets, so often; returns the flags ``redelivered`` of what it got."""
    flags: list[str | None] = []
    for _ in range(times):
        (frame,) = bench.messages(name)
        flags.append(frame.header("redelivered"))
        bench.settle(name, frame, "NACK")
    return flags


def test_Q_73_Q_74_dead_letter_address_and_attempts_of_the_queue(cut: bool) -> None:
    """Both on the queue: they beat the address-setting."""
    settings = "<dead-letter-address>other</dead-letter-address><max-delivery-attempts>5</max-delivery-attempts>"
    bench = Bench("dead-letter-address='dead' max-delivery-attempts='2'", settings=settings, more=DEAD, cut=cut)
    bench.send("a", "k:v")
    bench.subscribe("c", ONE_AT_A_TIME)
    assert refuse(bench, 2) == ["false", "true"]
    assert bench.messages("c") == []
    assert (bench.count(), bench.count("dead"), bench.count("other")) == (0, 1, 0)
    bench.subscribe("d", to="dead")
    (frame,) = bench.messages("d")
    assert [frame.header(name) for name in ("_AMQ_ORIG_QUEUE", "_AMQ_ORIG_ADDRESS", "reason", "k", "redelivered")] == [
        "q", "q", "max_deliveries", "v", "false",
    ]  # fmt: skip
    assert {code for code in bench.core.events.counts if code.startswith("CHN-")} == {"CHN-1011"}


def test_how_often_a_message_was_sent(cut: bool) -> None:
    """Told on every queue, whether a delivery failed or its subscription ended. The sender's own header is not used."""
    bench = Bench(cut=cut)
    bench.send("a", "JMSXDeliveryCount:7")
    counts: list[tuple[str | None, str | None]] = []
    for way in ("refuse", "leave", "lose"):
        bench.subscribe(way, ONE_AT_A_TIME)
        (frame,) = bench.messages(way)
        counts.append((frame.header("redelivered"), frame.header("JMSXDeliveryCount")))
        if way == "refuse":
            bench.settle(way, frame, "NACK")
            (frame,) = bench.messages(way)
            counts.append((frame.header("redelivered"), frame.header("JMSXDeliveryCount")))
        (bench.lose if way == "lose" else bench.leave)(way)
    bench.subscribe("d", ONE_AT_A_TIME)
    (frame,) = bench.messages("d")
    counts.append((frame.header("redelivered"), frame.header("JMSXDeliveryCount")))
    assert counts == [("false", "1"), ("true", "2"), ("true", "3"), ("true", "4"), ("true", "5")]


def test_how_often_deliveries_failed_is_known_after_a_restart() -> None:
    life = Life("")
    life.send("a")
    reader = life.client("reader")
    life.read("reader", 1)
    reader.drop()
    life = life.again()
    reader = life.client("reader")
    life.write("reader", "SUBSCRIBE", "id:1", "destination:/queue/q", "ack:client", ONE_AT_A_TIME)
    (frame,) = reader.collect()
    assert (frame.header("redelivered"), frame.header("JMSXDeliveryCount")) == ("true", "2")


def test_Q_74_each_queue_counts_for_itself(cut: bool) -> None:
    """Two queues with one message: one gives it two attempts, the other the ten of the address-setting."""
    both = """<address name="both"><multicast><queue name="two" max-delivery-attempts="2" dead-letter-address="dead"/>
    <queue name="ten"/></multicast></address>"""
    bench = Bench(more=both + DEAD, cut=cut)
    bench.write("p", "SEND", "destination:/topic/both", body="a")
    for name in ("two", "ten"):
        bench.subscribe(name, ONE_AT_A_TIME, to=f"both::{name}")
        refuse(bench, 2, name)
    assert (bench.count("two"), bench.count("ten"), bench.count("dead")) == (0, 1, 1)


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_Q_74_no_limit(limit: str) -> None:
    bench = Bench(f"dead-letter-address='dead' max-delivery-attempts='{limit}'", more=DEAD)
    bench.send("a")
    bench.subscribe("c", ONE_AT_A_TIME)
    refuse(bench, 30)
    assert (bench.count(), bench.count("dead")) == (1, 0)


def test_Q_74_a_lost_connection_is_an_attempt_over_STOMP(cut: bool) -> None:
    """Whatever the row says of AMQP (Artemis counts it, too); UNSUBSCRIBE is none."""
    bench = Bench("dead-letter-address='dead' max-delivery-attempts='2'", more=DEAD, cut=cut)
    bench.send("a")
    for _ in range(3):
        bench.subscribe("c", ONE_AT_A_TIME)
        assert bench.got("c") == ["a"]
        bench.leave("c")
    for _ in range(2):
        bench.subscribe("d", ONE_AT_A_TIME)
        assert bench.got("d") == ["a"]
        bench.lose("d")
    assert (bench.count(), bench.count("dead")) == (0, 1)


@pytest.mark.parametrize(
    ("attributes", "settings", "code"),
    [
        ("", "", "CHN-1009"),
        ("dead-letter-address=''", "<dead-letter-address>dead</dead-letter-address>", "CHN-1009"),
        ("dead-letter-address='nowhere'", "", "CHN-1010"),
    ],
)  # fmt: skip
def test_Q_75_without_a_dead_letter_address_it_is_gone(attributes: str, settings: str, code: str) -> None:
    """An empty one on the queue says that there is none, whatever the address-setting says."""
    bench = Bench(f"max-delivery-attempts='2' {attributes}", settings=settings, more=DEAD)
    bench.send("a")
    bench.subscribe("c", ONE_AT_A_TIME)
    refuse(bench, 2)
    assert (bench.count(), bench.count("dead"), bench.queue().contents.counters.killed) == (0, 0, 1)
    assert {code for code in bench.core.events.counts if code.startswith("CHN-")} == {code}


def test_Q_73_over_a_restart() -> None:
    """Attempts are remembered, and what the queue says too, when the file no longer declares it."""
    life = Life("dead-letter-address='dead' max-delivery-attempts='3'")
    life.send("a")
    for attempt in range(3):
        assert life.read("reader", count_max=1) == ["a"]
        life.lose("reader")
        if attempt == 1:
            life = life.again()
    assert life.count() == 0


def test_Q_73_what_a_deleted_queue_still_has_is_gone(cut: bool) -> None:
    """Qpid gives it to the alternate; here it is killed, as in Artemis (docs/queues.md, Differences from Qpid)."""
    bench = Bench(settings="<dead-letter-address>dead</dead-letter-address>", more=DEAD, cut=cut)
    bench.world.client("c").send(b"CONNECT\naccept-version:1.2\nhost:x\nclient-id:me\n\n\0")
    bench.frames("c")
    bench.write("c", "SUBSCRIBE", "id:1", "destination:/topic/t", "durable-subscription-name:mine", "ack:client")
    for body in "ab":
        bench.write("p", "SEND", "destination:/topic/t", body=body)
    assert bench.got("c") == ["a", "b"]
    queue = bench.queue("me.mine")
    bench.write("c", "UNSUBSCRIBE", "id:1", "durable-subscription-name:mine", "receipt:r")
    assert [frame.command for frame in bench.frames("c")] == ["RECEIPT"]
    assert "me.mine" not in bench.world.broker.queues
    assert (queue.message_count, queue.contents.counters.killed, bench.count("dead")) == (0, 2, 0)


# ---- Artemis' resources --------------------------------------------------------------------------


def test_auto_create_dead_letter_resources(cut: bool) -> None:
    settings = """<dead-letter-address>DLA</dead-letter-address>
    <max-delivery-attempts>1</max-delivery-attempts>
    <auto-create-dead-letter-resources>true</auto-create-dead-letter-resources>
    <dead-letter-queue-prefix>dead.</dead-letter-queue-prefix>
    <dead-letter-queue-suffix>.end</dead-letter-queue-suffix>"""
    bench = Bench(settings=settings, more='<address name="r"><anycast><queue name="r"/></anycast></address>', cut=cut)
    for name in ("q", "r"):
        bench.send(name, to=f"/queue/{name}")
        bench.subscribe(name, ONE_AT_A_TIME, to=name)
        refuse(bench, 1, name)
    assert (bench.count("dead.q.end"), bench.count("dead.r.end")) == (1, 1)
    bench.subscribe("d", to="DLA::dead.r.end")
    assert bench.got("d") == ["r"]


def test_auto_create_dead_letter_resources_for_the_address_that_the_queue_names(cut: bool) -> None:
    settings = "<auto-create-dead-letter-resources>true</auto-create-dead-letter-resources>"
    bench = Bench("dead-letter-address='mine' max-delivery-attempts='1'", settings=settings, cut=cut)
    bench.send("a")
    bench.subscribe("c", ONE_AT_A_TIME)
    refuse(bench, 1)
    assert bench.queue("DLQ.q").address.name == "mine"
    assert bench.count("DLQ.q") == 1


def test_auto_create_dead_letter_resources_of_a_wildcard_queue(cut: bool) -> None:
    """The queue is named after the address that the message was sent to, and takes what died of that."""
    settings = """<dead-letter-address>DLA</dead-letter-address><max-delivery-attempts>1</max-delivery-attempts>
    <auto-create-dead-letter-resources>true</auto-create-dead-letter-resources>"""
    wide = """<address name="w.#"><multicast><queue name="wide"/></multicast></address>"""
    bench = Bench(settings=settings, more=wide, cut=cut)
    for name in ("w.a.b", "w.it's"):
        bench.write("p", "SEND", f"destination:/topic/{name}", body=name)
    bench.subscribe("c", ONE_AT_A_TIME, to="w.#::wide")
    refuse(bench, 2)
    for name in ("w.a.b", "w.it's"):
        bench.subscribe(name, to=f"DLA::DLQ.{name}")
        assert bench.got(name) == [name]


@pytest.mark.parametrize("way", ["SEND", "COMMIT", "filter"])
def test_no_route_makes_the_queue_for_the_dead(way: str, cut: bool) -> None:
    """In Artemis it does not, and the message is lost."""
    settings = """<dead-letter-address>DLA</dead-letter-address>
    <send-to-dla-on-no-route>true</send-to-dla-on-no-route>
    <auto-create-dead-letter-resources>true</auto-create-dead-letter-resources>"""
    queue = '<queue name="picky"><filter string="a = 1"/></queue>' if way == "filter" else ""
    bench = Bench(settings=settings, more=f'<address name="e"><multicast>{queue}</multicast></address>', cut=cut)
    inside = ["transaction:t"] if way == "COMMIT" else []
    if inside:
        bench.write("p", "BEGIN", *inside)
    for body in "12":
        bench.write("p", "SEND", "destination:/topic/e", *inside, body=body)
    if inside:
        assert "DLQ.e" not in bench.world.broker.queues
        bench.write("p", "COMMIT", *inside)
    bench.subscribe("c", to="DLA::DLQ.e")
    assert bench.got("c") == ["1", "2"]


def test_no_route_over_a_restart() -> None:
    """The queue that was made, and what it got, alone and in a transaction."""
    settings = """<dead-letter-address>DLA</dead-letter-address>
    <send-to-dla-on-no-route>true</send-to-dla-on-no-route>
    <auto-create-dead-letter-resources>true</auto-create-dead-letter-resources>"""
    life = Life("", settings=settings, more='<address name="e"><multicast/></address>')
    life.write("producer", "BEGIN", "transaction:t")
    sent = "destination:/topic/e", "persistent:true"
    life.write("producer", "SEND", *sent, "transaction:t", body="1")
    life.write("producer", "COMMIT", "transaction:t")
    life.write("producer", "SEND", *sent, body="2")
    life = life.again()
    reader = life.client("reader")
    life.write("reader", "SUBSCRIBE", "id:1", "destination:DLA\\c\\cDLQ.e", "ack:auto")
    assert [frame.body for frame in reader.collect()] == [b"1", b"2"]


def test_auto_create_expiry_resources(cut: bool) -> None:
    settings = """<expiry-address>EXP</expiry-address>
    <auto-create-expiry-resources>true</auto-create-expiry-resources>"""
    bench = Bench("max-message-ttl='100'", settings=settings, cut=cut)
    bench.send("a")
    bench.world.advance(200)
    assert bench.count("EXP.q") == 1
    assert bench.queue("EXP.q").address.name == "EXP"


def test_send_to_dla_on_no_route(cut: bool) -> None:
    """A message that reaches no queue is not lost; the copy says which address it was sent to, and no queue."""
    settings = """<dead-letter-address>dead</dead-letter-address>
    <send-to-dla-on-no-route>true</send-to-dla-on-no-route>"""
    empty = '<address name="empty"><multicast/></address>'
    bench = Bench(settings=settings, more=DEAD + empty, cut=cut)
    bench.write("p", "SEND", "destination:/topic/empty", "k:v", body="a")
    bench.subscribe("c", to="dead")
    (frame,) = bench.messages("c")
    assert [frame.header(name) for name in ("_AMQ_ORIG_ADDRESS", "_AMQ_ORIG_QUEUE", "reason", "k")] == [
        "empty", None, "no_route", "v",
    ]  # fmt: skip
