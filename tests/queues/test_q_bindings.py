"""Qpid's rows about where queues come from, what leads to them and what a restart keeps (Q-66 to Q-70, Q-76 and
Q-77 of rows.py), at the wire.
"""

from __future__ import annotations

from math import ceil

import pytest

from tests.kit.bench import Bench, declared
from tests.kit.life import Life

pytestmark = pytest.mark.wire

BODY = "x" * 400


@pytest.mark.parametrize(
    ("acceptor", "headers", "window_bytes"),
    [
        ("", (), 10_240),
        ("stompConsumerWindowSize=1000", (), 1000),
        ("stompConsumerWindowSize=1000", ("consumer-window-size:2000",), 2000),
        ("stompConsumerWindowSize=-1", ("consumer-window-size:0",), 1),
        ("stompConsumerWindowSize=-1", (), 1_000_000),
    ],
)
def test_Q_66_the_window_of_an_acceptor_and_of_a_subscription(
    acceptor: str, headers: tuple[str, ...], window_bytes: int
) -> None:
    """In bytes of MESSAGE frames, of which the last may pass it; the subscription's goes before the acceptor's."""
    bench = Bench(acceptor=acceptor)
    for _ in range(30):
        bench.send(BODY)
    bench.subscribe("c", *headers)
    frames = bench.messages("c")
    frame_bytes = len(frames[0].text.encode())
    assert abs(frame_bytes - 600) < 30
    assert len(frames) == min(ceil(window_bytes / frame_bytes), 30)


@pytest.mark.parametrize("durable", [True, False])
def test_Q_68_what_a_restart_keeps(durable: bool) -> None:
    """The persistent messages of a durable queue; a queue that is not keeps nothing, and is there again, empty."""
    queue = f'<queue name="d"><durable>{str(durable).lower()}</durable></queue>'
    life = Life("", more=f'<address name="d"><anycast>{queue}</anycast></address>')
    life.write("producer", "SEND", "destination:/queue/d", "persistent:true", body="persistent")
    life.write("producer", "SEND", "destination:/queue/d", body="not persistent")
    assert life.count("d") == 2
    life = life.again()
    reader = life.client("reader")
    life.write("reader", "SUBSCRIBE", "id:1", "destination:/queue/d", "ack:auto")
    assert [frame.body for frame in reader.collect()] == ([b"persistent"] if durable else [])


def test_Q_69_ways_to_create_a_queue(cut: bool) -> None:
    """The file, a sender, a reader, a name of both, a durable subscription, the broker for its dead messages: each
    holds messages as any other.
    """
    settings = """<dead-letter-address>DLA</dead-letter-address><max-delivery-attempts>1</max-delivery-attempts>
    <auto-create-dead-letter-resources>true</auto-create-dead-letter-resources>"""
    bench = Bench(settings=settings, cut=cut)
    bench.send("m")
    bench.send("m", to="/queue/sent")
    bench.subscribe("reader", to="read")
    bench.leave("reader")
    bench.send("m", to="/queue/read")
    bench.write("p", "SEND", "destination:address\\c\\cnamed", body="m")
    client = bench.world.client("durable")
    client.send(b"CONNECT\naccept-version:1.2\nhost:x\nclient-id:me\n\n\0")
    bench.frames("durable")
    bench.write("durable", "SUBSCRIBE", "id:1", "destination:/topic/t", "ack:client", "durable-subscription-name:mine")
    bench.leave("durable")
    bench.write("p", "SEND", "destination:/topic/t", body="m")
    bench.send("dead", to="/queue/dies")
    bench.subscribe("fails", to="dies")
    (frame,) = bench.messages("fails")
    bench.settle("fails", frame, "NACK")
    expected = {"q": 1, "sent": 1, "read": 1, "named": 1, "me.mine": 1, "dies": 0, "DLQ.dies": 1}
    assert {name: queue.message_count for name, queue in bench.world.broker.queues.items()} == expected


def test_Q_76_several_ways_to_one_queue(cut: bool) -> None:
    """Addresses and diverts lead to it; a message that comes by one of them is there once."""
    queues = """<address name="all.#"><multicast><queue name="all"/></multicast></address>
    <address name="goal"><anycast><queue name="goal"/></anycast></address>"""
    diverts = "".join(
        f'<divert name="{name}"><address>all.{name}</address><forwarding-address>goal</forwarding-address></divert>'
        for name in ("a", "b")
    )
    bench = Bench(core=f"{declared(more=queues)}<diverts>{diverts}</diverts>", cut=cut)
    for name in ("a", "b", "b.c"):
        bench.write("p", "SEND", f"destination:/topic/all.{name}", body=name)
    for queue, bodies in (("all.#::all", ["a", "b", "b.c"]), ("/queue/goal", ["a", "b"])):
        bench.write(queue, "SUBSCRIBE", "id:1", f"destination:{queue}", "ack:auto")
        assert bench.got(queue) == bodies


def test_Q_76_two_diverts_to_one_address_bring_two_copies(cut: bool) -> None:
    """As in Artemis; in Qpid one publish comes to a queue once (rows.md)."""
    goal = '<address name="goal"><anycast><queue name="goal"/></anycast></address>'
    diverts = "".join(
        f'<divert name="{name}"><address>q</address><forwarding-address>goal</forwarding-address></divert>'
        for name in ("a", "b")
    )
    bench = Bench(core=f"{declared(more=goal)}<diverts>{diverts}</diverts>", cut=cut)
    bench.send("m")
    assert (bench.count(), bench.count("goal")) == (1, 2)


@pytest.mark.parametrize("types", ["anycast", "multicast"])
def test_Q_77_a_filter_lets_only_its_messages_in(types: str, cut: bool) -> None:
    queue = '<queue name="some"><filter string="app = \'app1\'"/></queue><queue name="every"/>'
    bench = Bench(more=f'<address name="f"><{types}>{queue}</{types}></address>', cut=cut)
    for app in ("app1", "app2"):
        for way in (types, ""):
            bench.write("p", "SEND", "destination:f", *([f"destination-type:{way.upper()}"] if way else []),
                        f"app:{app}", body=app)  # fmt: skip
    bench.subscribe("c", to="f::some")
    found = bench.got("c")
    assert set(found) == {"app1"}
    assert len(found) + bench.count("every") == (4 if types == "anycast" else 6)
