"""Qpid's rows about time (Q-40, Q-41 and Q-47 to Q-50 of rows.py) and Artemis' expiry, at the wire."""

from __future__ import annotations

import pytest

from tests.kit.bench import ONE_AT_A_TIME, Bench
from tests.kit.life import Life

pytestmark = pytest.mark.wire

HOLDS = "hold-on-publish='true'"
NOT_BEFORE = "x-qpid-not-valid-before:{}"
LITTLE_ROOM = "<max-size-messages>1</max-size-messages><page-size-bytes>300</page-size-bytes>"


# ---- bounds on the time to live ------------------------------------------------------------------


def test_Q_40_the_longest_time_holds_for_all_messages(cut: bool) -> None:
    """Also for one that does not expire, and without a round that looks for it."""
    bench = Bench("max-message-ttl='500'", cut=cut)
    bench.send("none")
    bench.send("long", f"expires:{bench.world.now_ms + 60_000}")
    bench.send("short", f"expires:{bench.world.now_ms + 100}")
    bench.world.advance(499)
    assert bench.count() == 2
    bench.world.advance(1)
    assert (bench.count(), bench.queue().contents.counters.expired) == (0, 3)


def test_Q_40_the_header_tells_what_counts(cut: bool) -> None:
    bench = Bench("max-message-ttl='500'", cut=cut)
    bench.send("a")
    bench.send("b", f"expires:{bench.world.now_ms + 100}")
    expected = [str(bench.world.now_ms + 500), str(bench.world.now_ms + 100)]
    bench.subscribe("c", "consumer-window-size:10000")
    assert [frame.header("expires") for frame in bench.messages("c")] == expected


def test_Q_41_the_shortest_time_is_for_messages_that_expire(cut: bool) -> None:
    bench = Bench("min-message-ttl='5000'", cut=cut)
    bench.send("soon", f"expires:{bench.world.now_ms + 100}")
    bench.send("never")
    bench.world.advance(4999)
    assert bench.count() == 2
    bench.world.advance(1)
    bench.subscribe("c")
    assert bench.got("c") == ["never"]


@pytest.mark.parametrize(("shortest", "longest", "lives_ms"), [(1000, 1000, 1000), (5000, 1000, 1000), (0, 300, 300)])
def test_Q_41_the_longest_time_is_applied_last(shortest: int, longest: int, lives_ms: int) -> None:
    bench = Bench(f"min-message-ttl='{shortest}' max-message-ttl='{longest}'")
    bench.send("a")
    bench.send("b", f"expires:{bench.world.now_ms + longest}")
    bench.world.advance(lives_ms - 1)
    assert bench.count() == 2
    bench.world.advance(1)
    assert bench.count() == 0


def test_Q_41_each_queue_has_its_own_bounds(cut: bool) -> None:
    """One message on two queues, after the settings of the address."""
    both = """<address name="both"><multicast><queue name="short" max-message-ttl="100"/><queue name="long"/>
    </multicast></address>"""
    settings = "<max-expiry-delay>1000</max-expiry-delay>"
    bench = Bench(more=both, settings=settings, cut=cut)
    bench.write("p", "SEND", "destination:/topic/both", body="a")
    bench.world.advance(200)
    assert (bench.count("short"), bench.count("long")) == (0, 1)
    bench.world.advance(1000)
    bench.subscribe("c", to="both::long")
    assert (bench.got("c"), bench.count("long")) == ([], 0)


@pytest.mark.parametrize("attributes", ["sort-key='k'", "priority-levels='3'", "queue-type='lvq' last-value-key='k'"])
def test_Q_40_in_every_type(attributes: str) -> None:
    bench = Bench(f"max-message-ttl='500' {attributes}")
    for key in "cab":
        bench.send(key, f"k:{key}")
    bench.world.advance(500)
    assert (bench.count(), bench.queue().contents.counters.expired) == (0, 3)


def test_Q_40_not_while_in_delivery(cut: bool) -> None:
    """Row 3.17: what a consumer has is not taken from it; it expires when it comes back."""
    bench = Bench("max-message-ttl='500'", cut=cut)
    bench.send("a")
    bench.subscribe("c")
    assert bench.got("c") == ["a"]
    bench.world.advance(1000)
    assert bench.count() == 1
    bench.lose("c")
    bench.subscribe("d")
    assert (bench.got("d"), bench.count(), bench.queue().contents.counters.expired) == ([], 0, 1)


@pytest.mark.parametrize("paged", [False, True])
def test_Q_40_over_a_restart(paged: bool) -> None:
    """The time goes on from the arrival."""
    life = Life("max-message-ttl='500'", settings=LITTLE_ROOM if paged else "")
    for body in "abc":
        life.send(body)
    assert life.queue().contents.paged.count == (2 if paged else 0)
    life = life.again()
    queue = life.queue()
    for duration_ms, left in ((499, 3), (1, 0)):
        life.broker.loop.advance(duration_ms)
        queue.expire_paged(life.broker.loop.now_ms)  # as message-expiry-scan-period does
        life.broker.drain()
        assert queue.message_count == left
    assert queue.contents.counters.expired == 3


# ---- hold on publish -----------------------------------------------------------------------------


def test_Q_47_off_by_default(cut: bool) -> None:
    bench = Bench(cut=cut)
    bench.send("a", NOT_BEFORE.format(bench.world.now_ms + 2000))
    bench.subscribe("c")
    assert bench.got("c") == ["a"]


def test_Q_48_held_until_the_time_is_past(cut: bool) -> None:
    bench = Bench(HOLDS, cut=cut)
    bench.subscribe("c")
    bench.send("a", NOT_BEFORE.format(bench.world.now_ms + 2000))
    bench.world.advance(2000)
    assert bench.got("c") == []
    bench.world.advance(1)
    assert bench.got("c") == ["a"]


@pytest.mark.parametrize("text", ["soon", "", "-5", "1e30", "0", "1600000000000", "9" * 30, str(2**63)])
def test_Q_49_only_a_time_to_come_counts(text: str, cut: bool) -> None:
    bench = Bench(HOLDS, cut=cut)
    bench.send("a", NOT_BEFORE.format(text))
    bench.send("now", NOT_BEFORE.format(str(bench.world.now_ms - 1)))
    bench.subscribe("c")
    assert bench.got("c") == ["a", "now"]


def test_Q_49_any_number_of_64_bits_counts() -> None:
    bench = Bench(HOLDS)
    bench.send("a", NOT_BEFORE.format(2**63 - 1))
    bench.subscribe("c")
    bench.world.advance(1_000_000)
    assert (bench.got("c"), bench.count(), len(bench.queue().contents.scheduled)) == ([], 1, 1)


def test_Q_49_now_is_not_past() -> None:
    bench = Bench(HOLDS)
    bench.send("a", NOT_BEFORE.format(str(bench.world.now_ms)))
    bench.subscribe("c")
    assert bench.got("c") == []
    bench.world.advance(1)
    assert bench.got("c") == ["a"]


def test_Q_50_others_overtake_and_the_place_is_kept(cut: bool) -> None:
    bench = Bench(HOLDS, cut=cut)
    bench.send("A", NOT_BEFORE.format(bench.world.now_ms + 1000))
    bench.send("B")
    bench.send("C")
    assert (bench.count(), len(bench.queue().contents.scheduled)) == (3, 1)
    bench.subscribe("browser", "browser:true")
    bench.subscribe("c", ONE_AT_A_TIME)
    assert (bench.got("browser"), bench.got("c")) == (["B", "C"], ["B"])
    bench.leave("c")
    bench.world.advance(1001)
    assert bench.got("browser") == ["A"]
    bench.subscribe("d", ONE_AT_A_TIME)
    assert bench.drain("d") == ["A", "B", "C"]


def test_Q_50_in_its_priority(cut: bool) -> None:
    bench = Bench(f"{HOLDS} priority-levels='10'", cut=cut)
    bench.send("held", "priority:5", NOT_BEFORE.format(bench.world.now_ms + 1000))
    for body, priority in (("five", 5), ("nine", 9), ("one", 1)):
        bench.send(body, f"priority:{priority}")
    bench.world.advance(1001)
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.drain("c") == ["nine", "held", "five", "one"]


def test_Q_50_sorted(cut: bool) -> None:
    bench = Bench(f"{HOLDS} sort-key='k'", cut=cut)
    bench.send("held", "k:a", NOT_BEFORE.format(bench.world.now_ms + 1000))
    bench.send("equal", "k:a")
    bench.send("keyless")
    bench.world.advance(1001)
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.drain("c") == ["keyless", "held", "equal"]


def test_Q_50_a_held_value_is_one_from_its_arrival(cut: bool) -> None:
    """Qpid conflates when a message is put on the queue, held or not."""
    bench = Bench(f"{HOLDS} queue-type='lvq' last-value-key='k'", cut=cut)
    bench.send("v1", "k:x")
    bench.send("v2", "k:x", NOT_BEFORE.format(bench.world.now_ms + 1000))
    assert (bench.count(), bench.queue().contents.counters.replaced) == (1, 1)
    bench.send("v3", "k:x")
    assert (bench.count(), bench.queue().contents.counters.replaced) == (1, 2)
    bench.world.advance(2000)
    bench.subscribe("c")
    assert bench.got("c") == ["v3"]


def test_Q_50_a_held_message_expires_at_its_time(cut: bool) -> None:
    """Row 3.14: where Qpid lets it linger, ours goes."""
    bench = Bench(f"{HOLDS} max-message-ttl='500'", cut=cut)
    bench.send("a", NOT_BEFORE.format(bench.world.now_ms + 60_000))
    bench.world.advance(500)
    assert (bench.count(), len(bench.queue().contents.scheduled), bench.queue().contents.counters.expired) == (0, 0, 1)
    assert not bench.queue().contents.held_back


def test_Q_50_schedules_of_artemis_go_on_beside_it(cut: bool) -> None:
    """A scheduled message goes to the head when it is due, a held one to its place."""
    bench = Bench(HOLDS, cut=cut)
    bench.send("a")
    bench.send("held", NOT_BEFORE.format(bench.world.now_ms + 1000))
    bench.send("scheduled", "AMQ_SCHEDULED_DELAY:1000")
    bench.send("b")
    bench.world.advance(1001)
    bench.subscribe("c")
    assert bench.got("c") == ["scheduled", "a", "held", "b"]


def test_Q_50_with_a_depth(cut: bool) -> None:
    """Held messages are counted."""
    bench = Bench(f"{HOLDS} overflow-policy='RING' max-depth-messages='2'", cut=cut)
    bench.send("held", NOT_BEFORE.format(bench.world.now_ms + 1000))
    for body in "ab":
        bench.send(body)
    assert bench.count() == 2
    bench.world.advance(1001)
    bench.subscribe("c")
    assert bench.got("c") == ["held", "b"]


@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("restart", [False, True])
def test_Q_50_over_pages_and_a_restart(restart: bool, paged: bool) -> None:
    life = Life(HOLDS, settings=LITTLE_ROOM if paged else "")
    due_ms = life.broker.loop.now_ms + 1000
    life.send("a")
    life.send("held", NOT_BEFORE.format(due_ms))
    life.send("b")
    if restart:
        life = life.again()
    reader = life.client("reader")
    assert life.read("reader") == ["a", "b"]
    life.broker.loop.advance(1001)
    life.broker.drain()
    assert [frame.body for frame in reader.collect()] == [b"held"]


def test_Q_50_found_far_back_in_pages() -> None:
    """A consumer that chooses has passed it there; it still stands behind what was not read yet."""
    life = Life(HOLDS, settings=f"{LITTLE_ROOM}<max-read-page-messages>1</max-read-page-messages>")
    chooser = life.client("chooser")
    for body in ("a0", "a1", "a2"):
        life.send(body)
    life.send("held", NOT_BEFORE.format(life.broker.loop.now_ms + 1000))
    life.send("last", "k:last")
    life.write("chooser", "SUBSCRIBE", "id:1", "destination:/queue/q", "ack:client", "selector:k = 'last'")
    assert [frame.body for frame in chooser.collect()] == [b"last"]
    assert len(life.queue().contents.scheduled) == 1
    life.broker.loop.advance(1001)
    life.broker.drain()
    assert life.read() == ["a0", "a1", "a2", "held"]


# ---- what becomes of expired messages ------------------------------------------------------------

EXPIRES = "<expiry-address>expired</expiry-address><dead-letter-address>dead</dead-letter-address>"
ENDS = """<address name="expired"><anycast><queue name="expired"/></anycast></address>
<address name="dead"><anycast><queue name="dead"/></anycast></address>"""


@pytest.mark.parametrize(
    ("policy", "settings", "arrives_at"),
    [
        ("", EXPIRES, "expired"),
        ("expiry-policy='DELETE'", EXPIRES, None),
        ("expiry-policy='ROUTE_TO_ALTERNATE'", EXPIRES, "expired"),
        ("expiry-policy='ROUTE_TO_ALTERNATE'", "<dead-letter-address>dead</dead-letter-address>", "dead"),
        ("expiry-policy='ROUTE_TO_ALTERNATE' dead-letter-address='dead'", "", "dead"),
        ("expiry-policy='ROUTE_TO_ALTERNATE'", "", None),
        ("", "<default-expiry-policy>DELETE</default-expiry-policy>" + EXPIRES, None),
    ],
)
def test_expiry_policy(policy: str, settings: str, arrives_at: str | None, cut: bool) -> None:
    bench = Bench(f"max-message-ttl='100' {policy}", settings=settings, more=ENDS, cut=cut)
    bench.send("a")
    bench.world.advance(200)
    assert (bench.count(), bench.queue().contents.counters.expired) == (0, 1)
    for name in ("expired", "dead"):
        assert bench.count(name) == (name == arrives_at)
    if arrives_at is not None:
        bench.subscribe("c", to=arrives_at)
        (frame,) = bench.messages("c")
        assert (frame.header("_AMQ_ORIG_QUEUE"), frame.header("reason")) == ("q", "time_limit")
        assert frame.header("_AMQ_ACTUAL_EXPIRY") is not None


@pytest.mark.parametrize(
    ("settings", "asked", "given"),
    [
        ("<expiry-delay>500</expiry-delay>", None, 500),
        ("<expiry-delay>500</expiry-delay>", 60_000, 60_000),
        ("<min-expiry-delay>1000</min-expiry-delay><max-expiry-delay>5000</max-expiry-delay>", None, 5000),
        ("<min-expiry-delay>1000</min-expiry-delay><max-expiry-delay>5000</max-expiry-delay>", 100, 1000),
        ("<min-expiry-delay>1000</min-expiry-delay><max-expiry-delay>5000</max-expiry-delay>", 9000, 5000),
        ("<min-expiry-delay>1000</min-expiry-delay><max-expiry-delay>5000</max-expiry-delay>", 3000, 3000),
        ("<no-expiry>true</no-expiry>", 3000, None),
    ],
)
@pytest.mark.parametrize(("bounds", "longest"), [("", 1 << 40), ("max-message-ttl='2000'", 2000)])
def test_runtime_2_17_12_settings_of_the_address_come_first(
    settings: str, asked: int | None, given: int | None, bounds: str, longest: int
) -> None:
    """Then the bounds of the queue."""
    bench = Bench(bounds, settings=settings)
    bench.send("a", *([] if asked is None else [f"expires:{bench.world.now_ms + asked}"]))
    bench.subscribe("c")
    (frame,) = bench.messages("c")
    lives_ms = min(longest, given or 1 << 40)
    assert frame.header("expires") == ("0" if lives_ms == 1 << 40 else str(bench.world.now_ms + lives_ms))
