"""Artemis' scenarios that are no matter of one feature of a queue (rows 2.8 and 2.17 of rows.py), at the wire. Those
about types, groups, consumers, time and retroactive addresses are in the files of these.
"""

from __future__ import annotations

import pytest

from tests.kit.bench import ONE_AT_A_TIME, Bench, declared
from tests.kit.frames import ServerFrame

pytestmark = pytest.mark.wire

SOME = "consumer-window-size:-1"
DEAD = '<address name="dead"><anycast><queue name="dead"/></anycast></address>'


def counts(bench: Bench, name: str = "q") -> tuple[int, int, int]:
    """Messages, in delivery, scheduled."""
    queue = bench.queue(name)
    return queue.message_count, queue.contents.delivering_count, len(queue.contents.scheduled)


def the_one(bench: Bench, name: str = "c") -> ServerFrame:
    """The one message that a client got."""
    (frame,) = bench.messages(name)
    return frame


def test_runtime_2_8_an_expired_message(cut: bool) -> None:
    """It is there until its time is over, then on the expiry address; a non-destructive queue is no exception."""
    expired = '<address name="old"><anycast><queue name="old"/></anycast></address>'
    settings = "<expiry-address>old</expiry-address>"
    bench = Bench("non-destructive='true'", settings=settings, more=expired, cut=cut)
    bench.send("a", f"expires:{bench.world.now_ms + 200}")
    assert (bench.count(), bench.count("old")) == (1, 0)
    bench.world.advance(31_000)
    assert (bench.count(), bench.queue().contents.counters.expired, bench.count("old")) == (0, 1, 1)


def test_runtime_2_17_10_consumers_before_dispatch(cut: bool) -> None:
    """Two begin, one goes on, and after none the count and the delay begin again."""
    bench = Bench("consumers-before-dispatch='2' delay-before-dispatch='2000'", cut=cut)
    bench.send("1")
    bench.subscribe("c1", ack="auto")
    assert bench.got("c1") == []
    bench.subscribe("c2", ack="auto")
    assert bench.got("c1") + bench.got("c2") == ["1"]
    bench.leave("c2")
    bench.send("2")
    assert bench.got("c1") == ["2"]
    bench.leave("c1")
    bench.send("3")
    bench.subscribe("c3", ack="auto")
    assert bench.got("c3") == []
    bench.world.advance(1999)
    assert bench.got("c3") == []
    bench.world.advance(1)
    assert bench.got("c3") == ["3"]


def test_runtime_2_17_11_priority(cut: bool) -> None:
    bench = Bench(cut=cut)
    for body in ("1", "9a", "4", "9b"):
        bench.send(body, f"priority:{body[0]}")
    bench.subscribe("c", ONE_AT_A_TIME)
    assert the_one(bench).body == b"9a"
    bench.send("9c", "priority:9")
    bench.leave("c")
    bench.subscribe("d", ONE_AT_A_TIME)
    assert bench.one_by_one("d") == ["9a", "9b", "9c", "4", "1"]


def test_runtime_2_17_13_dead_after_three_lost_connections(cut: bool) -> None:
    """The copy says where it comes from, and is as persistent as it was; it was never delivered there (in Artemis
    ``redelivered`` stays true).
    """
    settings = "<dead-letter-address>dead</dead-letter-address><max-delivery-attempts>3</max-delivery-attempts>"
    bench = Bench(settings=settings, more=DEAD, cut=cut)
    bench.send("a", "persistent:true")
    redelivered = []
    for _ in range(3):
        bench.subscribe("c", ONE_AT_A_TIME)
        redelivered.append(the_one(bench).header("redelivered"))
        bench.lose("c")
    assert redelivered == ["false", "true", "true"]
    assert (bench.count(), bench.queue().contents.counters.killed, bench.count("dead")) == (0, 1, 1)
    bench.subscribe("d", to="dead")
    frame = the_one(bench, "d")
    names = ("_AMQ_ORIG_ADDRESS", "_AMQ_ORIG_QUEUE", "persistent", "_AMQ_ORIG_ROUTING_TYPE")
    assert [frame.header(name) for name in names] == ["q", "q", "true", "1"]
    assert frame.header("_AMQ_ORIG_MESSAGE_ID") is not None


def test_runtime_2_17_13_no_queue_on_the_dead_letter_address(cut: bool) -> None:
    settings = "<dead-letter-address>nowhere</dead-letter-address><max-delivery-attempts>1</max-delivery-attempts>"
    bench = Bench(settings=settings, cut=cut)
    bench.send("a")
    bench.subscribe("c", ONE_AT_A_TIME)
    the_one(bench)
    bench.lose("c")
    assert (bench.count(), bench.queue().contents.counters.killed) == (0, 1)


@pytest.mark.parametrize("way", ["lose", "NACK"])
def test_runtime_2_17_14_gaps_grow_to_their_maximum(way: str, cut: bool) -> None:
    """1, 2, 3 and 3 s after a failed delivery, of which DISCONNECT and UNSUBSCRIBE are none (in Artemis DISCONNECT is
    one, and a lost connection is none).
    """
    settings = """<redelivery-delay>1000</redelivery-delay>
    <redelivery-delay-multiplier>2</redelivery-delay-multiplier>
    <max-redelivery-delay>3000</max-redelivery-delay>"""
    bench = Bench(settings=settings, cut=cut)
    bench.send("a")
    for gap_ms in (1000, 2000, 3000, 3000):
        bench.subscribe("c", ONE_AT_A_TIME)
        frame = the_one(bench)
        if way == "lose":
            bench.lose("c")
        else:
            bench.settle("c", frame, "NACK")
            bench.leave("c")
        assert counts(bench) == (1, 0, 1)
        bench.world.advance(gap_ms - 1)
        assert counts(bench) == (1, 0, 1)
        bench.world.advance(1)
        assert counts(bench) == (1, 0, 0)
    for ending in ("UNSUBSCRIBE", "DISCONNECT"):
        bench.subscribe("d", ONE_AT_A_TIME)
        the_one(bench, "d")
        bench.write("d", ending, "id:1")
        assert counts(bench) == (1, 0, 0)


def test_runtime_2_17_15_auto_delete(cut: bool) -> None:
    """A queue that was used and is empty goes, with its address, at the second look; one that nobody read stays."""
    bench = Bench(cut=cut)
    bench.subscribe("c", ONE_AT_A_TIME, to="made")
    bench.send("a", to="made")
    bench.send("b", to="never.read")
    assert bench.one_by_one("c") == ["a"]
    bench.leave("c")
    for _ in range(4):
        bench.world.advance(30_000)
    assert [name for name in bench.world.broker.queues if name != "q"] == ["never.read"]
    assert "made" not in bench.world.broker.addresses


@pytest.mark.parametrize(
    ("diverts", "expected"),
    [
        ({"one": ("false", "")}, (1, 1, 0)),
        ({"one": ("true", "")}, (0, 1, 0)),
        ({"one": ("false", "color = 'blue'")}, (1, 0, 0)),
        ({"one": ("true", ""), "two": ("false", "")}, (0, 1, 0)),
    ],
)
def test_runtime_2_17_16_diverts(diverts: dict[str, tuple[str, str]], expected: tuple[int, int, int]) -> None:
    """An exclusive one that matches is the only one."""
    targets = "".join(
        f'<address name="{name}"><anycast><queue name="{name}"/></anycast></address>' for name in ("one", "two")
    )
    declared_diverts = "".join(
        f'<divert name="to-{name}"><address>q</address><forwarding-address>{name}</forwarding-address>'
        f"<exclusive>{exclusive}</exclusive>" + (f'<filter string="{text}"/>' if text else "") + "</divert>"
        for name, (exclusive, text) in diverts.items()
    )
    bench = Bench(core=f"{declared(more=targets)}<diverts>{declared_diverts}</diverts>")
    bench.send("a", "color:red")
    assert (bench.count(), bench.count("one"), bench.count("two")) == expected
    if bench.count("one"):
        bench.subscribe("c", to="one")
        assert the_one(bench).header("_AMQ_ORIG_ADDRESS") == "q"


def test_runtime_2_17_18_duplicates(cut: bool) -> None:
    """Confirmed twice and there once; in a transaction COMMIT is the ERROR, and nothing of it arrives."""
    bench = Bench(cut=cut)
    for number in range(2):
        bench.send("a", "_AMQ_DUPL_ID:1", f"receipt:{number}")
    assert [frame.header("receipt-id") for frame in bench.frames("producer")] == ["0", "1"]
    assert (bench.count(), bench.queue().contents.counters.added) == (1, 1)
    bench.write("p", "BEGIN", "transaction:t")
    bench.write("p", "SEND", "destination:/queue/q", "transaction:t", "receipt:sent", "_AMQ_DUPL_ID:1", body="b")
    bench.write("p", "SEND", "destination:/queue/q", "transaction:t", "receipt:more", body="c")
    bench.write("p", "COMMIT", "transaction:t", "receipt:done")
    assert [frame.command for frame in bench.frames("p")] == ["RECEIPT", "RECEIPT", "ERROR"]
    assert bench.count() == 1


@pytest.mark.parametrize("policy", ["FAIL", "BLOCK", "DROP"])
def test_runtime_2_17_18_duplicates_and_a_full_address(policy: str, cut: bool) -> None:
    """Who missed the receipt sends again, and is told that the message is there."""
    settings = f"<max-size-messages>1</max-size-messages><address-full-policy>{policy}</address-full-policy>"
    bench = Bench(settings=settings, cut=cut)
    for number in range(2):
        bench.send("a", "_AMQ_DUPL_ID:1", f"receipt:{number}")
    assert [frame.header("receipt-id") for frame in bench.frames("producer")] == ["0", "1"]
    assert bench.count() == 1


def test_runtime_2_17_19_headers_are_texts(cut: bool) -> None:
    """A number in a header is compared as one only where that is asked for."""
    bench = Bench(cut=cut)
    bench.send("a", "age:21")
    bench.subscribe("text", "selector:age > 18")
    assert bench.got("text") == []
    bench.subscribe("number", "selector:convert_string_expressions:age > 18")
    assert bench.got("number") == ["a"]


def test_runtime_2_17_19_selectors_split_a_queue(cut: bool) -> None:
    bench = Bench(cut=cut)
    for color in ("red", "blue"):
        bench.subscribe(color, SOME, f"selector:color = '{color}'")
    for body, color in (("1", "red"), ("2", "blue"), ("3", "green"), ("4", "red")):
        bench.send(body, f"color:{color}")
    assert (bench.got("red"), bench.got("blue")) == (["1", "4"], ["2"])
    assert counts(bench) == (4, 3, 0)


@pytest.mark.parametrize(
    ("routing_type", "expected"), [("ANYCAST", (1, 0, 0)), ("MULTICAST", (0, 1, 1)), ("", (1, 1, 1))]
)
def test_runtime_2_17_20_routing_types(routing_type: str, expected: tuple[int, int, int]) -> None:
    both = """<address name="x"><anycast><queue name="a"/><queue name="b"/></anycast>
    <multicast><queue name="c"/><queue name="d"/></multicast></address>"""
    bench = Bench(more=both)
    header = [f"destination-type:{routing_type}"] if routing_type else []
    bench.write("p", "SEND", "destination:x", *header, body="m")
    found = {name: bench.count(name) for name in "abcd"}
    assert (found["a"] + found["b"], found["c"], found["d"]) == expected
