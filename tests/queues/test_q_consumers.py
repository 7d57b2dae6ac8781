"""Qpid's rows and Artemis' scenarios about consumers (rows.py), at the wire: frames in, frames out."""

from __future__ import annotations

import pytest

from artemis_py.core.order.entry import PURGED
from artemis_py.errors import ConfigError
from tests.kit.bench import ONE_AT_A_TIME, Bench
from tests.kit.life import Life
from tests.queues.outcomes import refused

pytestmark = pytest.mark.wire

SOME = "consumer-window-size:-1"
NON_DESTRUCTIVE = "non-destructive='true'"


# ---- taking and looking --------------------------------------------------------------------------


def test_Q_35_taken_is_invisible_and_comes_back(cut: bool) -> None:
    bench = Bench(cut=cut)
    bench.send("a")
    bench.subscribe("c1")
    (frame,) = bench.messages("c1")
    queue = bench.queue()
    assert (queue.message_count, queue.contents.delivering_count) == (1, 1)
    bench.subscribe("c2")
    assert bench.got("c2") == []
    bench.settle("c1", frame, "NACK")
    again = bench.messages("c1") + bench.messages("c2")
    assert [one.header("redelivered") for one in again] == ["true"]
    bench.lose("c1")
    (last,) = bench.messages("c2")[-1:] or again
    bench.settle("c2", last)
    assert bench.count() == 0


def test_Q_36_a_browser_removes_nothing_and_blocks_nobody(cut: bool) -> None:
    """Nor does it count a delivery, or see what comes back a second time."""
    bench = Bench(cut=cut)
    bench.send_all("ab")
    bench.subscribe("looker", "browser:true")
    assert bench.got("looker") == ["a", "b"]
    bench.subscribe("c1")
    frames = bench.messages("c1")
    assert [(frame.body, frame.header("redelivered")) for frame in frames] == [(b"a", "false"), (b"b", "false")]
    bench.lose("c1")
    assert bench.got("looker") == []
    assert bench.count() == 2


def test_Q_36_a_browser_is_nobody_where_consumers_are_counted(cut: bool) -> None:
    """It takes no place of ``max-consumers``, does not begin a dispatch that waits for consumers, and what the last
    consumer leaves behind goes although a browser is there.
    """
    bench = Bench("max-consumers='2' consumers-before-dispatch='2'", cut=cut)
    bench.send("a")
    for name in ("b1", "b2"):
        bench.subscribe(name, "browser:true")
        assert bench.got(name) == ["a"], "a browser need not wait for consumers"
    bench.subscribe("c1")
    assert bench.got("c1") == []
    bench.subscribe("c2")
    assert sorted(bench.got("c1") + bench.got("c2")) == ["a"]
    assert "maximum of 2 consumers" in refused(bench, "c3")
    bench = Bench("purge-on-no-consumers='true'", cut=cut)
    bench.subscribe("looker", "browser:true")
    bench.send("nobody")
    assert bench.count() == 0
    bench.subscribe("c", SOME)
    bench.send("left")
    bench.lose("c")
    assert (bench.got("looker"), bench.count()) == (["left"], 0)


def test_Q_36_a_browser_sees_what_is_on_a_paused_queue(cut: bool) -> None:
    """What was there, and what comes; consumers get nothing, and no browser gets anything twice."""
    bench = Bench(cut=cut)
    bench.world.broker.queue_operations.pause("q")
    bench.send("a")
    bench.subscribe("c", SOME)
    bench.subscribe("looker", "browser:true")
    assert (bench.got("looker"), bench.got("c")) == (["a"], [])
    bench.send("b")
    assert (bench.got("looker"), bench.got("c")) == (["b"], [])
    bench.world.broker.queue_operations.resume("q")
    bench.world.turns.schedule()
    bench.world.settle()
    assert (bench.got("looker"), bench.got("c")) == ([], ["a", "b"])


def test_Q_36_a_browser_of_a_paused_queue_goes_on_when_it_has_room(cut: bool) -> None:
    bench = Bench(cut=cut)
    bench.world.broker.queue_operations.pause("q")
    bench.send_all("abc")
    bench.subscribe("looker", "browser:true", ONE_AT_A_TIME)
    assert bench.drain("looker") == ["a", "b", "c"]
    assert bench.count() == 3


def test_Q_37_browsers_of_last_values(cut: bool) -> None:
    bench = Bench(f"{NON_DESTRUCTIVE} last-value-key='k'", cut=cut)
    bench.subscribe("c", ack="auto")
    for number in range(100):
        bench.send(str(number), f"k:{number % 10}")
    assert bench.got("c") == [str(number) for number in range(100)]
    assert bench.count() == 10


def test_Q_38_runtime_2_17_9_everybody_gets_everything(cut: bool) -> None:
    bench = Bench(NON_DESTRUCTIVE, cut=cut)
    bench.send_all("12345")
    bench.subscribe("c1")
    bench.subscribe("c2")
    assert bench.got("c1") == bench.got("c2") == list("12345")
    bench.send("6")
    assert bench.got("c1") == bench.got("c2") == ["6"]
    queue = bench.queue()
    assert (queue.message_count, queue.contents.counters.acknowledged) == (6, 0)
    queue.purge(PURGED, bench.world.now_ms)
    assert bench.count() == 0


@pytest.mark.parametrize("ack", ["client", "client-individual", "auto"])
def test_Q_39_acknowledging_takes_nothing_away(ack: str) -> None:
    """The queue decides, whatever the consumer asks for."""
    bench = Bench(settings="<default-non-destructive>true</default-non-destructive>")
    bench.send_all("ab")
    bench.subscribe("c1", ack=ack)
    for frame in bench.messages("c1"):
        if ack != "auto":
            bench.settle("c1", frame)
    bench.subscribe("c2")
    assert bench.got("c2") == ["a", "b"]
    assert bench.queue().contents.counters.acknowledged == 0


# ---- replay period and default filters -----------------------------------------------------------


@pytest.mark.parametrize("header", ["x-qpid-replay-period", "replay-period"])
@pytest.mark.parametrize("attributes", ["", NON_DESTRUCTIVE])
def test_Q_42_Q_44_the_replay_period(header: str, attributes: str, cut: bool) -> None:
    """Seconds; the window is fixed when the consumer comes, and what comes later always passes."""
    bench = Bench(attributes, cut=cut)
    bench.send("a")
    bench.world.advance(3000)
    bench.send("b")
    bench.world.advance(1000)
    bench.subscribe("c", SOME, f"{header}:2")
    assert bench.got("c") == ["b"]
    bench.world.advance(10_000)
    bench.send("later")
    assert bench.got("c") == ["later"]


def test_Q_43_nothing_of_the_past_and_bad_values(cut: bool) -> None:
    bench = Bench(NON_DESTRUCTIVE, cut=cut)
    bench.send("a")
    bench.subscribe("c", SOME, "x-qpid-replay-period:0")
    assert bench.got("c") == []
    bench.send("b")
    assert bench.got("c") == ["b"]
    assert "x-qpid-replay-period" in refused(bench, "bad", "x-qpid-replay-period:soon")
    assert "x-qpid-replay-period" in refused(bench, "negative", "x-qpid-replay-period:-1")
    bench.subscribe("hour", SOME, "x-qpid-replay-period:3600")
    assert bench.got("hour") == ["a", "b"]


def test_Q_43_nothing_of_the_past_comes_back_either() -> None:
    """What another consumer had before, and gave back, is of the past."""
    bench = Bench()
    bench.send("old")
    bench.subscribe("c1")
    assert bench.got("c1") == ["old"]
    bench.subscribe("c2", SOME, "x-qpid-replay-period:0")
    bench.lose("c1")
    bench.send("new", "priority:0")
    assert bench.got("c2") == ["new"]
    assert bench.count() == 2


def test_Q_45_default_filters(cut: bool) -> None:
    bench = Bench(f"{NON_DESTRUCTIVE} consumer-replay-period='0' consumer-selector=\"color = 'red'\"", cut=cut)
    bench.send("a", "color:red")
    bench.subscribe("c", SOME)
    assert bench.got("c") == []
    bench.send("b", "color:red")
    bench.send("c", "color:blue")
    assert bench.got("c") == ["b"]


def test_Q_45_default_filters_of_an_address_setting() -> None:
    """Also for the subscriptions of a multicast address."""
    bench = Bench(settings="<default-consumer-selector>color = 'red'</default-consumer-selector>")
    bench.write("s", "SUBSCRIBE", "id:1", "destination:/topic/t", "ack:auto")
    for color in ("red", "blue"):
        bench.write("p", "SEND", "destination:/topic/t", f"color:{color}", body=color)
    assert bench.got("s") == ["red"]


@pytest.mark.parametrize(
    "filters", ["consumer-replay-period='-1'", "consumer-replay-period='soon'", "consumer-selector='a ='"]
)
def test_Q_45_bad_default_filters_are_refused(filters: str) -> None:
    with pytest.raises(ConfigError, match=r"broker.xml:[0-9]+: .*consumer-(replay-period|selector)"):
        Bench(filters)


@pytest.mark.parametrize("order", ["", "priority-levels='10'", "sort-key='k'"])
def test_Q_43_nothing_of_the_past_in_any_order(order: str, cut: bool) -> None:
    """Row 3.12: what comes later is new wherever it stands."""
    bench = Bench(f"{NON_DESTRUCTIVE} {order}", cut=cut)
    bench.send("old", "priority:5", "k:m")
    bench.subscribe("c", SOME, "x-qpid-replay-period:0")
    bench.send("before", "priority:9", "k:a")
    bench.send("behind", "priority:0", "k:z")
    assert bench.got("c") == ["before", "behind"]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ((), []),
        (("x-qpid-replay-period:3600",), ["red"]),
        (("selector:color = 'blue'",), []),
        (("x-qpid-replay-period:3600", "selector:color = 'blue'"), ["blue"]),
    ],
)
def test_Q_46_a_filter_replaces_the_default_of_the_same_name(headers: tuple[str, ...], expected: list[str]) -> None:
    bench = Bench(f"{NON_DESTRUCTIVE} consumer-replay-period='0' consumer-selector=\"color = 'red'\"")
    for color in ("red", "blue"):
        bench.send(color, f"color:{color}")
    bench.subscribe("c", SOME, *headers)
    assert bench.got("c") == expected


def test_Q_46_the_default_period_counts_from_when_the_consumer_comes() -> None:
    bench = Bench(f"{NON_DESTRUCTIVE} consumer-replay-period='60'")
    bench.send("old")
    bench.world.advance(59_000)
    bench.send("new")
    bench.world.advance(2_000)
    bench.subscribe("c", SOME)
    assert bench.got("c") == ["new"]


# ---- prefetch ------------------------------------------------------------------------------------


@pytest.mark.parametrize("attributes", ["", "priority-levels='10'"])
def test_Q_63_what_was_sent_is_not_reordered(attributes: str) -> None:
    bench = Bench(attributes)
    bench.subscribe("c", SOME)
    for number in range(100):
        bench.send(str(number), "priority:1")
    bench.send("high", "priority:9")
    assert bench.got("c") == [*map(str, range(100)), "high"]


def test_Q_64_a_late_better_message_is_first_of_what_is_left() -> None:
    bench = Bench("priority-levels='10'")
    for number in range(4):
        bench.send(f"{number}", "priority:1")
    bench.subscribe("c", "consumer-window-size:300")
    frames = bench.messages("c")
    assert 1 < len(frames) < 4
    bench.send("high", "priority:9")
    assert bench.got("c") == []
    for frame in frames:
        bench.settle("c", frame)
    assert bench.got("c")[0] == "high"


def test_Q_65_one_at_a_time_is_exact(cut: bool) -> None:
    bench = Bench("priority-levels='10'", cut=cut)
    for body in "abc":
        bench.send(body, "priority:1")
    bench.subscribe("c", ONE_AT_A_TIME)
    (first,) = bench.messages("c")
    bench.send("high", "priority:9")
    bench.settle("c", first)
    assert bench.drain("c") == ["high", "b", "c"]


# ---- no-local ------------------------------------------------------------------------------------


def test_Q_78_no_local(cut: bool) -> None:
    """What a connection sent stays for others."""
    bench = Bench(cut=cut)
    bench.subscribe("c1", SOME, "no-local:true")
    bench.write("c1", "SEND", "destination:/queue/q", body="mine")
    bench.send("theirs")
    assert bench.got("c1") == ["theirs"]
    bench.subscribe("c2", SOME)
    assert bench.got("c2") == ["mine"]


# ---- who is served -------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["consumer-priority", "x-priority"])
def test_Q_81_consumer_priority(header: str, cut: bool) -> None:
    """The lower one gets what the higher has no credit for, or does not want."""
    bench = Bench(cut=cut)
    bench.subscribe("low", SOME)
    bench.subscribe("high", ONE_AT_A_TIME, f"{header}:5", "selector:color = 'red'")
    for body, color in (("1", "red"), ("2", "red"), ("3", "blue")):
        bench.send(body, f"color:{color}")
    assert (bench.got("high"), bench.got("low")) == (["1"], ["2", "3"])


def test_Q_81_the_default_is_0() -> None:
    bench = Bench()
    bench.subscribe("below", SOME, "consumer-priority:-1")
    bench.subscribe("usual", SOME)
    bench.send_all("ab")
    assert (bench.got("usual"), bench.got("below")) == (["a", "b"], [])


def test_Q_82_an_exclusive_consumer_is_alone(cut: bool) -> None:
    """It refuses others, and is refused where others are."""
    bench = Bench(cut=cut)
    bench.subscribe("c1", "exclusive:true")
    assert "(header exclusive)" in refused(bench, "c2")
    assert "(header exclusive)" in refused(bench, "looker", "browser:true")
    bench.lose("c1")
    bench.subscribe("c2")
    assert "(header exclusive)" in refused(bench, "c3", "exclusive:true")
    bench.send("a")
    assert bench.got("c2") == ["a"]


def test_Q_82_live_consumers(cut: bool) -> None:
    """The others wait in line and take over in the order in which they came, also what came back."""
    bench = Bench("max-live-consumers='1'", cut=cut)
    bench.subscribe("c1", ONE_AT_A_TIME)
    bench.subscribe("c2", SOME)
    bench.subscribe("c3", SOME, "consumer-priority:9")
    bench.send_all("abc")
    assert [bench.got(name) for name in ("c1", "c2", "c3")] == [["a"], [], []]
    bench.lose("c1")
    frames = bench.messages("c2")
    assert [(one.body, one.header("redelivered")) for one in frames] == [
        (b"a", "true"),
        (b"b", "false"),
        (b"c", "false"),
    ]
    assert bench.got("c3") == []
    bench.leave("c2")
    assert bench.got("c3") == ["a", "b", "c"]


def test_Q_82_two_live_consumers_take_turns_and_browsers_do_not_count() -> None:
    bench = Bench("max-live-consumers='2'")
    bench.subscribe("looker", "browser:true")
    for name in ("c1", "c2", "c3"):
        bench.subscribe(name, SOME)
    bench.send_all("abcd")
    assert [bench.got(name) for name in ("c1", "c2", "c3")] == [["a", "c"], ["b", "d"], []]
    bench.leave("c2")
    assert sorted(bench.got("c1") + bench.got("c3")) == ["b", "d"]


# ---- exclusivity ---------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["CONNECTION", "SESSION"])
def test_exclusivity_of_a_connection(policy: str, cut: bool) -> None:
    """Its other subscriptions are admitted; when it has none left, anybody."""
    bench = Bench(f"exclusivity-policy='{policy}'", cut=cut)
    bench.subscribe("c1")
    bench.write("c1", "SUBSCRIBE", "id:2", "destination:/queue/q")
    assert bench.frames("c1") == []
    assert f"exclusivity-policy {policy}" in refused(bench, "c2")
    bench.lose("c1")
    bench.subscribe("c2")
    bench.send("a")
    assert bench.got("c2") == ["a"]


@pytest.mark.parametrize(("policy", "header"), [("CONTAINER", "client-id"), ("PRINCIPAL", "login")])
def test_exclusivity_of_a_client_id_and_of_a_user(policy: str, header: str) -> None:
    """The owner keeps the queue; who names none is refused."""
    bench = Bench(f"exclusivity-policy='{policy}'")
    bench.client("c1", f"{header}:ann")
    bench.subscribe("c1")
    bench.client("also", f"{header}:ann")
    bench.subscribe("also")
    assert bench.frames("also") == []
    bench.client("c2", f"{header}:bob")
    assert f"exclusivity-policy {policy}" in refused(bench, "c2")
    assert header in refused(bench, "nobody")
    bench.lose("c1")
    bench.lose("also")
    bench.client("c2", f"{header}:bob")
    assert f"exclusivity-policy {policy}" in refused(bench, "c2")


def test_exclusivity_of_a_link() -> None:
    bench = Bench("exclusivity-policy='LINK'")
    bench.subscribe("c1")
    bench.write("c1", "SUBSCRIBE", "id:2", "destination:/queue/q")
    (frame,) = bench.frames("c1")
    assert "exclusivity-policy LINK" in (frame.header("message") or "")
    bench.subscribe("c2")
    assert bench.frames("c2") == [], "1.2 closed the connection that was refused, and with it its consumer"


@pytest.mark.parametrize("policy", ["NONE", "SHARED_SUBSCRIPTION"])
def test_exclusivity_without_a_check(policy: str) -> None:
    bench = Bench(f"exclusivity-policy='{policy}'")
    bench.subscribe("c1")
    bench.subscribe("c2")
    assert bench.frames("c1") == bench.frames("c2") == []


def test_an_owner_by_another_policy_is_none() -> None:
    """A file with another policy came with the restart: a client-id is not taken for a user."""
    life = Life("exclusivity-policy='CONTAINER'")
    for policy, names in (("PRINCIPAL", ("client-id:ann", "login:x")), ("CONTAINER", ("client-id:bob", "login:bob"))):
        life.client("c", *names)
        life.subscribe("c", "receipt:r", ack="auto")
        assert [frame.command for frame in life.frames("c")] == ["RECEIPT"]
        life = life.again(f"exclusivity-policy='{policy}'")


def test_the_owner_outlives_a_restart() -> None:
    """As long as it is no connection."""
    life = Life("exclusivity-policy='CONTAINER'")
    for name, taken in (("ann", True), ("bob", False)):
        life.client("c", f"client-id:{name}")
        life.subscribe("c", "receipt:r", ack="auto")
        assert [frame.command for frame in life.frames("c")] == ["RECEIPT" if taken else "ERROR"]
        life = life.again()
