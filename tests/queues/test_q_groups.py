"""Qpid's rows and Artemis' scenarios about message groups (rows.py), at the wire: frames in, frames out."""

from __future__ import annotations

import pytest

from tests.kit.bench import ONE_AT_A_TIME, Bench

pytestmark = pytest.mark.wire

STICKY = "group-type='STANDARD'"
SHARED = "group-type='SHARED_GROUPS'"
SOME = "consumer-window-size:-1"


def two_readers(bench: Bench, *headers: str) -> None:
    """Consumers c1 and c2, one message at a time unless the headers say more."""
    for name in ("c1", "c2"):
        bench.subscribe(name, *(headers or (ONE_AT_A_TIME,)))


def send_all(bench: Bench, groups: list[str], header: str = "JMSXGroupID") -> None:
    """Messages named after their group and their number in it: a1, b1, a2."""
    seen: dict[str, int] = {}
    for name in groups:
        seen[name] = seen.get(name, 0) + 1
        bench.send(f"{name}{seen[name]}", f"{header}:{name}")


def test_Q_20_the_queue_groups_not_the_message(cut: bool) -> None:
    """Row 3.10: sticky groups are there without configuration, NONE switches them off."""
    for attributes, halves in (("", [4, 0]), (STICKY, [4, 0]), ("group-type='NONE'", [2, 2])):
        bench = Bench(attributes, cut=cut)
        two_readers(bench, SOME)
        send_all(bench, ["a"] * 4)
        assert sorted((len(bench.got("c1")), len(bench.got("c2"))), reverse=True) == halves, attributes


def test_Q_21_one_group_is_never_with_two_consumers(cut: bool) -> None:
    bench = Bench(STICKY, cut=cut)
    two_readers(bench)
    bench.send("add", "JMSXGroupID:cart")
    bench.send("remove", "JMSXGroupID:cart")
    (add,) = bench.messages("c1")
    assert (add.body, bench.got("c2")) == (b"add", [])
    bench.settle("c1", add)
    assert (bench.got("c1"), bench.got("c2")) == (["remove"], [])


@pytest.mark.parametrize("header", ["JMSXGroupID", "JMSXGroupId", "_AMQ_GROUP_ID"])
def test_Q_22_the_usual_headers(header: str, cut: bool) -> None:
    bench = Bench(cut=cut)
    two_readers(bench, SOME)
    send_all(bench, ["g"] * 4, header)
    assert (bench.got("c1"), bench.got("c2")) == (["g1", "g2", "g3", "g4"], [])


def test_Q_23_a_header_of_ones_own(cut: bool) -> None:
    bench = Bench("group-key='cart'", cut=cut)
    two_readers(bench, SOME)
    for body, cart in (("a", 1), ("b", 1), ("c", 2), ("d", 2)):
        bench.send(body, f"cart:{cart}", f"JMSXGroupID:{body}")
    assert (bench.got("c1"), bench.got("c2")) == (["a", "b"], ["c", "d"])


def test_Q_24_sticky_for_the_life_of_the_consumer(cut: bool) -> None:
    """Qpid's own data: c2 gets nothing while the group is with c1, also while c1 has nothing of it."""
    bench = Bench(STICKY, cut=cut)
    two_readers(bench)
    send_all(bench, ["ONE", "TWO", "THREE", "ONE"])
    (one,), (two,) = bench.messages("c1"), bench.messages("c2")
    assert (one.body, two.body) == (b"ONE1", b"TWO1")
    bench.settle("c1", one)
    (three,) = bench.messages("c1")
    assert three.body == b"THREE1"
    bench.settle("c2", two)
    assert bench.got("c2") == []
    bench.settle("c1", three)
    assert bench.drain("c1") == ["ONE2"]
    bench.send("ONE3", "JMSXGroupID:ONE")
    assert (bench.got("c2"), bench.got("c1")) == ([], ["ONE3"])


def test_Q_25_shared_while_something_is_not_settled(cut: bool) -> None:
    """The same data as Q-24: now c2 gets the second of the group."""
    bench = Bench(SHARED, cut=cut)
    two_readers(bench)
    send_all(bench, ["ONE", "TWO", "THREE", "ONE"])
    (one,), (two,) = bench.messages("c1"), bench.messages("c2")
    bench.settle("c1", one)
    assert bench.got("c1") == ["THREE1"]
    bench.settle("c2", two)
    assert bench.got("c2") == ["ONE2"]


def test_Q_25_a_shared_group_goes_on_at_its_consumer_while_that_has_room() -> None:
    """Row 3.7: the count is per group, and the group is free when it is 0."""
    bench = Bench(SHARED)
    two_readers(bench, SOME)
    send_all(bench, ["a", "a", "b"])
    first, second = bench.messages("c1")
    assert ([first.body, second.body], bench.got("c2")) == ([b"a1", b"a2"], ["b1"])
    bench.settle("c1", first)
    bench.write("c1", "UNSUBSCRIBE", "id:1")
    assert bench.got("c2") == ["a2"]


def test_Q_26_no_group_sticky(cut: bool) -> None:
    bench = Bench(STICKY, cut=cut)
    two_readers(bench)
    bench.send("grouped", "JMSXGroupID:A")
    bench.send("plain")
    assert (bench.got("c1"), bench.got("c2")) == (["grouped"], ["plain"])


def test_Q_27_no_group_shared_is_a_group(cut: bool) -> None:
    bench = Bench(SHARED, cut=cut)
    two_readers(bench)
    bench.send("first")
    bench.send("second")
    (first,) = bench.messages("c1")
    assert bench.got("c2") == []
    bench.settle("c1", first)
    assert sorted(bench.got("c1") + bench.got("c2")) == ["second"]


@pytest.mark.parametrize(
    ("attributes", "settings", "name"),
    [
        (SHARED, "", "qpid.no-group"),
        (f"{SHARED} fallback-group='rest'", "<default-fallback-group>other</default-fallback-group>", "rest"),
        (SHARED, "<default-fallback-group>other</default-fallback-group>", "other"),
    ],
)
def test_Q_28_Q_80_the_name_of_the_fallback_group(attributes: str, settings: str, name: str) -> None:
    """The queue's beats the one for all; a message that names it is in it."""
    bench = Bench(attributes, settings=settings)
    two_readers(bench)
    bench.send("none")
    bench.send("named", f"JMSXGroupID:{name}")
    bench.send("another", f"JMSXGroupID:{name}-not")
    assert (bench.got("c1"), bench.got("c2")) == (["none"], ["another"])


@pytest.mark.parametrize("attributes", [STICKY, SHARED])
def test_Q_29_no_effect_on_browsers(attributes: str, cut: bool) -> None:
    bench = Bench(attributes, cut=cut)
    bench.subscribe("c1", ONE_AT_A_TIME)
    send_all(bench, ["a", "a", "b", "a"])
    assert bench.got("c1") == ["a1"]
    bench.subscribe("looker", "browser:true")
    assert bench.got("looker") == ["a2", "b1", "a3"]
    assert bench.count() == 4


@pytest.mark.parametrize("attributes", ["", STICKY, SHARED])
def test_Q_30_runtime_2_17_5_a_busy_consumer_blocks_its_groups_only(attributes: str, cut: bool) -> None:
    """In Artemis c2 would get nothing until c1 acknowledges (README, Differences from Artemis)."""
    bench = Bench(attributes, cut=cut)
    two_readers(bench)
    send_all(bench, ["g", "g", "h"])
    (held,) = bench.messages("c1")
    assert (held.body, bench.got("c2")) == (b"g1", ["h1"])
    bench.settle("c1", held)
    assert bench.got("c1") == ["g2"]


@pytest.mark.parametrize("attributes", [STICKY, SHARED])
def test_Q_31_a_consumer_leaves(attributes: str, cut: bool) -> None:
    """What it had comes first, redelivered, then the others of its groups."""
    bench = Bench(attributes, cut=cut)
    two_readers(bench)
    send_all(bench, ["ONE", "ONE", "TWO", "ONE"])
    (first,), (two,) = bench.messages("c1"), bench.messages("c2")
    assert (first.body, two.body) == (b"ONE1", b"TWO1")
    bench.lose("c1")
    bench.settle("c2", two)
    (again,) = bench.messages("c2")
    assert (again.body, again.header("redelivered")) == (b"ONE1", "true")
    bench.settle("c2", again)
    assert bench.drain("c2") == ["ONE2", "ONE3"]


def test_Q_31_several_consumers_leave(cut: bool) -> None:
    bench = Bench(cut=cut)
    for name in ("c1", "c2", "c3"):
        bench.subscribe(name, SOME)
    send_all(bench, ["a", "b", "c", "a", "b", "c"])
    assert [bench.got(name) for name in ("c1", "c2", "c3")] == [["a1", "a2"], ["b1", "b2"], ["c1", "c2"]]
    bench.lose("c1")
    bench.lose("c3")
    assert bench.got("c2") == ["a1", "a2", "c1", "c2"]


def test_Q_32_grouped_on_one_queue_and_not_on_the_other() -> None:
    queues = """<address name="both"><multicast>
        <queue name="one" group-key="cart"/><queue name="two" group-type="NONE"/>
    </multicast></address>"""
    bench = Bench(more=queues)
    for queue in ("one", "two"):
        for name in ("c1", "c2"):
            bench.write(f"{name}-{queue}", "SUBSCRIBE", "id:1", f"destination:both::{queue}")
    for number in range(4):
        bench.write("p", "SEND", "destination:/topic/both", "cart:7", body=str(number))
    assert (bench.got("c1-one"), bench.got("c2-one")) == (["0", "1", "2", "3"], [])
    assert (bench.got("c1-two"), bench.got("c2-two")) == (["0", "2"], ["1", "3"])


def test_Q_33_ids_are_compared_as_texts() -> None:
    bench = Bench()
    two_readers(bench, SOME)
    for body, name in (("a", "1"), ("b", "01"), ("c", "1"), ("d", "01")):
        bench.send(body, f"JMSXGroupID:{name}")
    assert (bench.got("c1"), bench.got("c2")) == (["a", "c"], ["b", "d"])


def test_Q_34_a_thousand_ids_that_nobody_declared() -> None:
    bench = Bench()
    two_readers(bench, SOME)
    for number in range(2000):
        bench.send(str(number), f"JMSXGroupID:g{number % 1000}")
    first, second = bench.got("c1"), bench.got("c2")
    assert sorted(first + second, key=int) == [str(number) for number in range(2000)]
    assert {int(body) % 1000 for body in first}.isdisjoint({int(body) % 1000 for body in second})
    assert first == sorted(first, key=int)


def test_Q_34_runtime_2_17_8_buckets() -> None:
    """0: groups are ignored; 2 buckets and 3 consumers: the third gets nothing."""
    bench = Bench("group-buckets='0'")
    two_readers(bench, SOME)
    send_all(bench, ["a"] * 4)
    assert (bench.got("c1"), bench.got("c2")) == (["a1", "a3"], ["a2", "a4"])
    bench = Bench("group-buckets='2'")
    for name in ("c1", "c2", "c3"):
        bench.subscribe(name, SOME)
    send_all(bench, [f"g{number}" for number in range(100)])
    shares = [len(bench.got(name)) for name in ("c1", "c2", "c3")]
    assert sum(shares) == 100
    assert shares[2] == 0
    assert min(shares[:2]) > 20


def test_Q_79_the_key_alone_is_sticky() -> None:
    bench = Bench("group-key='cart'")
    two_readers(bench)
    send_all(bench, ["a", "a"], "cart")
    (held,) = bench.messages("c1")
    bench.settle("c1", held)
    assert (bench.got("c1"), bench.got("c2")) == (["a2"], [])


# ---- Artemis -------------------------------------------------------------------------------------


def test_runtime_2_3_each_group_whole_at_one_consumer(cut: bool) -> None:
    bench = Bench(cut=cut)
    two_readers(bench, SOME)
    send_all(bench, ["g1-", "g1-", "g2-", "g1-", "g2-", "g2-"])
    assert (bench.got("c1"), bench.got("c2")) == (["g1-1", "g1-2", "g1-3"], ["g2-1", "g2-2", "g2-3"])
    bench.lose("c1")
    assert bench.got("c2") == ["g1-1", "g1-2", "g1-3"]


@pytest.mark.parametrize("header", ["_AMQ_GROUP_SEQUENCE", "JMSXGroupSeq"])
def test_runtime_2_3_closing_a_group(header: str, cut: bool) -> None:
    """The message with -1 goes to the group's consumer, the next one to anybody."""
    bench = Bench(cut=cut)
    two_readers(bench, SOME)
    bench.send("first", "JMSXGroupID:g", f"{header}:1")
    bench.send("last", "JMSXGroupID:g", f"{header}:-1")
    bench.send("next", "JMSXGroupID:g")
    bench.send("more", "JMSXGroupID:g")
    assert (bench.got("c1"), bench.got("c2")) == (["first", "last"], ["next", "more"])


def test_runtime_2_17_6_rebalance() -> None:
    """With a consumer more, all of them get groups; without it the new one gets new groups only."""
    for attributes, expected in (
        ("group-rebalance='true'", [["gA2"], ["gB2"], ["gC2"]]),
        ("", [["gA2", "gC2"], ["gB2"], []]),
    ):
        bench = Bench(attributes)
        two_readers(bench, SOME)
        send_all(bench, ["gA", "gB", "gC"])
        assert (bench.got("c1"), bench.got("c2")) == (["gA1", "gC1"], ["gB1"])
        bench.subscribe("c3", SOME)
        for name in ("gA", "gB", "gC"):
            bench.send(f"{name}2", f"JMSXGroupID:{name}")
        assert sorted(bench.got(name) for name in ("c1", "c2", "c3")) == sorted(expected), attributes


def test_runtime_2_17_6_rebalance_waits_for_what_is_in_delivery(cut: bool) -> None:
    """group-rebalance-pause-dispatch: nothing goes out before everything is settled."""
    bench = Bench("group-rebalance='true' group-rebalance-pause-dispatch='true'", cut=cut)
    two_readers(bench, SOME)
    send_all(bench, ["a", "b"])
    (first,), (second,) = bench.messages("c1"), bench.messages("c2")
    bench.subscribe("c3", SOME)
    bench.send("a2", "JMSXGroupID:a")
    bench.send("plain")
    bench.settle("c1", first)
    assert [bench.got(name) for name in ("c1", "c2", "c3")] == [[], [], []]
    bench.settle("c2", second, "NACK")
    got = [bench.got(name) for name in ("c1", "c2", "c3")]
    assert sorted(body for bodies in got for body in bodies) == ["a2", "b1", "plain"]


def test_runtime_2_17_7_first_key(cut: bool) -> None:
    """The header comes with the message that brings the group to a consumer, and with no other; it is not stored."""
    bench = Bench("group-first-key='first'", cut=cut)
    two_readers(bench, SOME)
    send_all(bench, ["g", "h", "g"])
    assert [(frame.body, frame.header("first")) for frame in bench.messages("c1")] == [(b"g1", "true"), (b"g2", None)]
    assert [frame.header("first") for frame in bench.messages("c2")] == ["true"]
    bench.lose("c1")
    assert [(frame.body, frame.header("first")) for frame in bench.messages("c2")] == [(b"g1", "true"), (b"g2", None)]
    bench.subscribe("looker", "browser:true")
    assert all(frame.header("first") is None for frame in bench.messages("looker"))


def test_runtime_2_17_4_an_exclusive_queue_ignores_groups() -> None:
    bench = Bench("exclusive='true'")
    two_readers(bench, SOME)
    send_all(bench, ["a", "b", "a"])
    assert (bench.got("c1"), bench.got("c2")) == (["a1", "b1", "a2"], [])


# ---- groups with everything else -----------------------------------------------------------------


@pytest.mark.parametrize("attributes", [STICKY, SHARED])
def test_order_in_a_group_over_a_redelivery_delay(attributes: str, cut: bool) -> None:
    """What waits for another attempt holds its group up, and no other (Artemis lets the next of the group go by)."""
    settings = "<redelivery-delay>1000</redelivery-delay>"
    bench = Bench(attributes, settings=settings, cut=cut)
    two_readers(bench)
    send_all(bench, ["g", "g", "h"])
    (first,), (other,) = bench.messages("c1"), bench.messages("c2")
    bench.settle("c1", first, "NACK")
    bench.settle("c2", other)
    assert (bench.got("c1"), bench.got("c2")) == ([], [])
    bench.send("i1", "JMSXGroupID:i")
    assert sorted(bench.got("c1") + bench.got("c2")) == ["i1"]
    bench.lose("c1")
    bench.lose("c2")
    bench.world.advance(2000)
    bench.subscribe("c3", ONE_AT_A_TIME)
    assert bench.drain("c3")[:2] in (["g1", "g2"], ["g1", "i1"])


def test_order_in_a_group_over_a_rollback(cut: bool) -> None:
    """ABORT: what was acknowledged in it comes back before the rest of the group."""
    bench = Bench(cut=cut)
    two_readers(bench)
    send_all(bench, ["g", "g", "h"])
    (first,) = bench.messages("c1")
    bench.write("c1", "BEGIN", "transaction:t")
    bench.write("c1", "ACK", f"id:{first.header('ack')}", "transaction:t")
    (second,) = bench.messages("c1")
    assert second.body == b"g2"
    bench.write("c1", "ABORT", "transaction:t")
    bench.settle("c1", second, "NACK")
    assert bench.drain("c1") == ["g1", "g2"]


def test_a_group_in_an_open_transaction_stays_shared_with_nobody(cut: bool) -> None:
    """Acknowledged is settled when the transaction is committed, not before."""
    bench = Bench(SHARED, cut=cut)
    two_readers(bench)
    send_all(bench, ["g", "g"])
    (first,) = bench.messages("c1")
    bench.write("c1", "BEGIN", "transaction:t")
    bench.write("c1", "ACK", f"id:{first.header('ack')}", "transaction:t")
    bench.leave("c1")
    assert bench.got("c2") == []
    bench.write("c1", "ABORT", "transaction:t")
    assert bench.drain("c2") == ["g1", "g2"]


def test_groups_follow_the_order_of_the_queue() -> None:
    """Row 3.8: priority inside a group, too; also for what was passed over while the group was blocked."""
    bench = Bench("priority-levels='10'")
    two_readers(bench)
    bench.send("g-now", "JMSXGroupID:g")
    (held,) = bench.messages("c1")
    for body, priority, name in (("g-low", 1, "g"), ("h", 5, "h"), ("g-high", 9, "g")):
        bench.send(body, f"priority:{priority}", f"JMSXGroupID:{name}")
    bench.settle("c1", held)
    assert bench.got("c2") == ["h"]
    assert bench.drain("c1") == ["g-high", "g-low"]


def test_sorted_groups() -> None:
    bench = Bench("sort-key='k'")
    two_readers(bench)
    bench.send("g-now", "JMSXGroupID:g", "k:m")
    (held,) = bench.messages("c1")
    for body, key, name in (("g-z", "z", "g"), ("h", "p", "h"), ("g-a", "a", "g")):
        bench.send(body, f"k:{key}", f"JMSXGroupID:{name}")
    bench.settle("c1", held)
    assert bench.got("c2") == ["h"]
    assert bench.drain("c1") == ["g-a", "g-z"]


def test_a_selector_keeps_what_its_group_may_not_have() -> None:
    """Row 3.8: a message that the group's consumer does not want goes to nobody until that leaves."""
    bench = Bench()
    bench.subscribe("c1", SOME, "selector:color = 'red'")
    bench.subscribe("c2", SOME)
    bench.send("red", "JMSXGroupID:g", "color:red")
    assert bench.got("c1") == ["red"]
    bench.send("blue", "JMSXGroupID:g", "color:blue")
    bench.send("plain", "color:blue")
    assert (bench.got("c1"), bench.got("c2")) == ([], ["plain"])
    bench.leave("c1")
    assert bench.got("c2") == ["red", "blue"]


def test_ack_auto_consumers_have_groups() -> None:
    """Also the first one, which was alone and got its messages without queueing."""
    bench = Bench()
    bench.subscribe("c1", ack="auto")
    bench.send("g1", "JMSXGroupID:g")
    bench.subscribe("c2", ack="auto")
    for body in ("g2", "g3"):
        bench.send(body, "JMSXGroupID:g")
    assert (bench.got("c1"), bench.got("c2")) == (["g1", "g2", "g3"], [])


def test_a_ring_takes_from_blocked_groups() -> None:
    bench = Bench("ring-size='2' queue-type='standard'")
    two_readers(bench)
    send_all(bench, ["g"] * 6)
    (held,) = bench.messages("c1")
    assert bench.got("c2") == []
    bench.settle("c1", held)
    assert bench.drain("c1") == ["g5", "g6"]


def test_last_values_in_blocked_groups() -> None:
    bench = Bench("queue-type='lvq' last-value-key='k'")
    two_readers(bench)
    bench.send("first", "JMSXGroupID:g", "k:0")
    (held,) = bench.messages("c1")
    for body, key in (("a1", "a"), ("b1", "b"), ("a2", "a")):
        bench.send(body, "JMSXGroupID:g", f"k:{key}")
    bench.settle("c1", held)
    assert (bench.drain("c1"), bench.got("c2")) == (["b1", "a2"], [])


def test_expiry_in_a_blocked_group() -> None:
    bench = Bench()
    two_readers(bench)
    now_ms = bench.world.now_ms
    bench.send("g1", "JMSXGroupID:g")
    bench.send("g2", "JMSXGroupID:g", f"expires:{now_ms + 500}")
    bench.send("g3", "JMSXGroupID:g")
    (held,) = bench.messages("c1")
    bench.world.advance(1000)
    bench.settle("c1", held)
    assert bench.drain("c1") == ["g3"]


def test_live_consumers_have_the_groups() -> None:
    """The next in line takes over the groups of one that left."""
    bench = Bench("max-live-consumers='2'")
    for name in ("c1", "c2", "c3"):
        bench.subscribe(name, SOME)
    send_all(bench, ["a", "b", "c"])
    assert [bench.got(name) for name in ("c1", "c2", "c3")] == [["a1", "c1"], ["b1"], []]
    bench.lose("c1")
    assert sorted(bench.got("c2") + bench.got("c3")) == ["a1", "c1"]
