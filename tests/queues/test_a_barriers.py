"""Rows of AMPS (rows.py) about barriers, at the wire: frames in, frames out."""

from __future__ import annotations

import pytest

from artemis_py.core.order.entry import PURGED
from tests.kit.bench import FLAT, FREELY, Bench
from tests.kit.frames import ServerFrame
from tests.kit.life import Life
from tests.queues.outcomes import shown

pytestmark = pytest.mark.wire

EXPIRES = "<expiry-address>over</expiry-address>"
OVER = '<address name="over"><anycast><queue name="over"/></anycast></address>'
BARRIER = "barrier-expression=\"kind = 'barrier'\" max-per-subscription-backlog='10'"
"""Attributes of a queue on which messages with ``kind:barrier`` are barriers, and consumers may have ten others."""
MANY = "max-backlog:10"
IS_BARRIER = "kind:barrier"


def settle_all(bench: Bench, name: str, frames: list[ServerFrame], command: str = "ACK") -> None:
    for frame in frames:
        bench.settle(name, frame, command)


def send_all(bench: Bench, bodies: str) -> None:
    """A message for each character; B and C are barriers."""
    for body in bodies:
        bench.send(body, *([IS_BARRIER] if body in "BC" else []))


def test_A_50_a_barrier_waits_for_all_before_it_and_all_behind_it_wait_for_the_barrier(cut: bool) -> None:
    bench = Bench(BARRIER, cut=cut)
    send_all(bench, "12B3")
    bench.subscribe("c", *FREELY)
    first, second = bench.messages("c")
    assert (first.body, second.body) == (b"1", b"2")
    bench.settle("c", second)
    assert bench.got("c") == []
    bench.settle("c", first)
    assert bench.got("c") == ["B", "3"]
    assert bench.count() == 1, "the barrier is done, 3 is not"


@pytest.mark.parametrize("ack", ["client-individual", "client", "auto"])
def test_A_50_in_each_ack_mode(cut: bool, ack: str) -> None:
    """With ``auto`` what is written is done."""
    bench = Bench(BARRIER, cut=cut)
    bench.subscribe("c", *FREELY, ack=ack)
    send_all(bench, "1B2C3")
    got = ""
    while frames := bench.messages("c"):
        got += shown(frames)
        held = [frame for frame in frames if frame.header("ack")]
        settle_all(bench, "c", held[-1:] if ack == "client" else held)
    assert got == "1B2C3"
    assert bench.count() == 0


def test_A_50_every_way_in_which_an_earlier_message_ends_opens_it(cut: bool) -> None:
    """Acknowledged, expired by its consumer, dead, expired, purged."""
    for way in ("ACK", "expire", "NACK", "expires", "purge"):
        bench = Bench(f"{BARRIER} max-cancels='1'", cut=cut)
        bench.send("1", *([f"expires:{bench.world.now_ms + 500}"] if way == "expires" else []))
        if way in ("purge", "expires"):
            send_all(bench, "B2")
            if way == "purge":
                bench.queue().purge(PURGED, bench.world.now_ms)
                send_all(bench, "B2")
            bench.world.advance(60_000)
            bench.subscribe("c", *FREELY)
            assert bench.got("c") == ["B", "2"], way
            continue
        bench.subscribe("c", *FREELY)
        send_all(bench, "B2")
        (frame,) = bench.messages("c")
        option = ["options:expire"] if way == "expire" else []
        bench.write("c", "NACK" if way == "NACK" else "ACK", f"id:{frame.header('ack')}", *option)
        assert bench.got("c") == ["B", "2"], way


def test_A_50_one_that_comes_back_is_still_before_it(cut: bool) -> None:
    """A NACK, a lease that ends, a lost connection: the message goes out again, and the barrier waits for that."""
    for way in ("NACK", "lease", "lose"):
        bench = Bench(f"{BARRIER} lease-period='1s'" if way == "lease" else BARRIER, cut=cut)
        bench.subscribe("one", *FREELY)
        send_all(bench, "1B2")
        (frame,) = bench.messages("one")
        bench.subscribe("two", *FREELY)
        if way == "NACK":
            bench.settle("one", frame, "NACK")
        elif way == "lease":
            bench.world.advance(1000)
        else:
            bench.lose("one")
        names = ["two"] if way == "lose" else ["one", "two"]
        got = {name: bench.messages(name) for name in names}
        (again,) = [(name, each) for name, frames in got.items() for each in frames]
        assert (again[1].body, again[1].header("redelivered")) == (b"1", "true")
        bench.settle(*again)
        assert [shown(bench.messages(name))[:1] for name in names] == ["B"] * len(names)


def test_A_50_one_that_waits_for_another_attempt_holds_it(cut: bool) -> None:
    bench = Bench(BARRIER, cut=cut, settings="<redelivery-delay>1000</redelivery-delay>")
    bench.subscribe("c", *FREELY)
    send_all(bench, "1B2")
    (frame,) = bench.messages("c")
    bench.settle("c", frame, "NACK")
    bench.world.advance(999)
    assert bench.got("c") == []
    bench.world.advance(1)
    (again,) = bench.messages("c")
    assert again.body == b"1"
    bench.settle("c", again)
    assert bench.got("c") == ["B", "2"]


def test_A_50_one_that_is_scheduled_holds_it_if_it_came_before(cut: bool) -> None:
    """And one that came behind the barrier comes to its place there, however early it is due."""
    bench = Bench(BARRIER, cut=cut)
    bench.subscribe("c", *FREELY)
    bench.send("early", "AMQ_SCHEDULED_DELAY:1000")
    send_all(bench, "1B")
    bench.send("late", "AMQ_SCHEDULED_DELAY:500")
    send_all(bench, "2")
    (one,) = bench.messages("c")
    bench.settle("c", one)
    bench.world.advance(999)
    assert (bench.got("c"), bench.count()) == ([], 4)
    bench.world.advance(1)
    (early,) = bench.messages("c")
    assert early.body == b"early"
    bench.settle("c", early)
    assert bench.got("c") == ["B", "late", "2"]


def test_A_50_a_scheduled_barrier_holds_what_comes_behind_it(cut: bool) -> None:
    """It has its place from when it comes, as every message here."""
    bench = Bench(BARRIER, cut=cut)
    bench.subscribe("c", *FREELY)
    bench.send("1")
    bench.send("B", IS_BARRIER, "AMQ_SCHEDULED_DELAY:1000")
    bench.send("2")
    (one,) = bench.messages("c")
    assert one.body == b"1"
    bench.settle("c", one)
    bench.world.advance(999)
    assert bench.got("c") == []
    bench.world.advance(1)
    assert bench.got("c") == ["B", "2"]


def test_A_50_one_barrier_behind_the_other(cut: bool) -> None:
    """They follow each other at once."""
    bench = Bench(BARRIER, cut=cut)
    send_all(bench, "BCBC1B")
    bench.subscribe("c", *FREELY)
    frames = bench.messages("c")
    assert shown(frames) == "BCBC1"
    assert bench.count() == 2
    bench.settle("c", frames[-1])
    assert (bench.got("c"), bench.count()) == (["B"], 0)


def test_A_50_it_is_arrival_that_counts(cut: bool) -> None:
    """Whatever the priority: such a queue is strictly FIFO."""
    bench = Bench(BARRIER, cut=cut)
    bench.send("1", "priority:0")
    bench.send("2", "priority:9")
    bench.send("B", IS_BARRIER, "priority:9")
    bench.send("3", "priority:9")
    bench.subscribe("c", *FREELY)
    frames = bench.messages("c")
    assert shown(frames) == "12"
    settle_all(bench, "c", frames)
    assert bench.got("c") == ["B", "3"]


def test_A_50_consumers_that_choose_are_held_as_well(cut: bool) -> None:
    bench = Bench(BARRIER, cut=cut)
    send_all(bench, "1B")
    bench.send("2", "t:x")
    bench.subscribe("chooser", *FREELY, "selector:t = 'x' OR kind = 'barrier'")
    assert bench.got("chooser") == [], "1 is before the barrier, and nobody has taken it"
    bench.subscribe("other", *FREELY)
    (one,) = bench.messages("other")
    bench.settle("other", one)
    assert bench.got("chooser") == ["B", "2"]


def test_A_50_expired_barriers_hold_nothing(cut: bool) -> None:
    bench = Bench(BARRIER, cut=cut, settings=EXPIRES, more=OVER)
    bench.send("B", IS_BARRIER, f"expires:{bench.world.now_ms + 500}")
    send_all(bench, "1")
    bench.world.advance(500)
    bench.subscribe("c", *FREELY)
    assert bench.got("c") == ["1"]
    assert bench.count("over") == 1


def test_A_51_it_goes_to_every_consumer(cut: bool) -> None:
    """Whatever they hold, without an acknowledgement, and it is gone at once."""
    bench = Bench(BARRIER, cut=cut)
    for name in ("c1", "c2", "c3"):
        bench.subscribe(name, *FREELY)
    send_all(bench, "B")
    for name in ("c1", "c2", "c3"):
        (frame,) = bench.messages(name)
        assert (frame.body, frame.header("ack")) == (b"B", None)
    assert (bench.count(), bench.queue().contents.delivering_count) == (0, 0)
    assert bench.queue().contents.counters.acknowledged == 1


@pytest.mark.parametrize("window", ["consumer-window-size:0", "consumer-window-size:1", "max-backlog:1"])
def test_A_51_it_takes_nothing_of_window_and_backlog(cut: bool, window: str) -> None:
    bench = Bench(BARRIER, cut=cut)
    bench.subscribe("c", window)
    send_all(bench, "BB12")
    assert bench.got("c") == ["B", "B", "1"]


def test_A_51_it_says_nothing_of_a_lease(cut: bool) -> None:
    bench = Bench(f"{BARRIER} lease-period='1s'", cut=cut)
    bench.subscribe("c", *FREELY)
    send_all(bench, "B1")
    barrier, other = bench.messages("c")
    assert (barrier.header("lease-expires"), barrier.header("ack")) == (None, None)
    assert other.header("lease-expires") is not None
    bench.world.advance(1000)
    assert bench.got("c") == ["1"], "the barrier has no lease that could end"


def test_A_51_without_its_body_it_needs_no_acknowledgement_either(cut: bool) -> None:
    bench = Bench(f"{BARRIER} lease-period='1s'", cut=cut)
    bench.subscribe("heads", *FREELY, "headers-only:true")
    send_all(bench, "B1")
    barrier, other = bench.messages("heads")
    assert (barrier.header("ack"), barrier.header("lease-expires"), barrier.header("body-size")) == (None, None, "1")
    assert other.header("ack") is not None


def test_A_51_who_does_not_want_it_waits_all_the_same(cut: bool) -> None:
    bench = Bench(BARRIER, cut=cut)
    bench.subscribe("other", *FREELY, "selector:kind IS NULL")
    bench.subscribe("all", *FREELY)
    send_all(bench, "1B")
    bench.send("2")
    holder, (one,) = next((name, frames) for name in ("other", "all") if (frames := bench.messages(name)))
    assert (bench.got("other"), bench.got("all")) == ([], [])
    bench.settle(holder, one)
    assert bench.got("all")[:1] == ["B"]
    assert "B" not in bench.got("other")


def test_A_51_it_waits_for_somebody_who_wants_it(cut: bool) -> None:
    """Nobody there, or nobody who wants it: it stays, and so does what is behind it."""
    bench = Bench(BARRIER, cut=cut)
    send_all(bench, "B1")
    bench.world.advance(60_000)
    assert bench.count() == 2
    bench.subscribe("other", *FREELY, "selector:kind IS NULL")
    bench.subscribe("looker", "browser:true")
    assert (bench.got("other"), bench.got("looker"), bench.count()) == ([], [], 2)
    bench.subscribe("all", *FREELY)
    assert sorted(bench.got("all") + bench.got("other")) == ["1", "B"]


def test_A_51_no_local(cut: bool) -> None:
    bench = Bench(BARRIER, cut=cut)
    bench.subscribe("producer", FLAT, MANY, "no-local:true")
    send_all(bench, "B")
    assert (bench.frames("producer"), bench.count()) == ([], 1)
    bench.subscribe("other", *FREELY)
    assert (bench.got("other"), bench.frames("producer"), bench.count()) == (["B"], [], 0)


def test_A_51_those_that_wait_in_line_do_not_get_it(cut: bool) -> None:
    """On an exclusive queue, and with a limit of live consumers, they are not served."""
    for attribute in ("exclusive='true'", "max-live-consumers='1'"):
        bench = Bench(f"{BARRIER} {attribute}", cut=cut)
        bench.subscribe("first", *FREELY)
        bench.subscribe("standby", *FREELY)
        send_all(bench, "B1")
        assert (bench.got("first"), bench.got("standby")) == (["B", "1"], [])


def test_A_51_a_client_that_does_not_read_is_waited_for() -> None:
    """Others have the barrier meanwhile, and nobody gets what is behind it; other queues go on."""
    bench = Bench(BARRIER, more=OVER)
    bench.subscribe("slow", *FREELY)
    bench.subscribe("quick", *FREELY)
    bench.world.client("slow").stall()
    large = "B" + "x" * 200_000  # more than a connection takes in a turn
    bench.write("producer", "SEND", "destination:/queue/q", IS_BARRIER, body=large)
    send_all(bench, "C1")
    assert bench.got("quick") == [large, "C"]
    assert bench.count() == 2
    bench.subscribe("elsewhere", to="over")
    bench.send("a", to="/queue/over")
    assert bench.got("elsewhere") == ["a"]
    bench.world.client("slow").read_again()
    got = bench.got("slow")
    assert got[:2] == [large, "C"]
    assert got[2:] + bench.got("quick") == ["1"]


def test_A_51_a_client_that_goes_is_not_waited_for() -> None:
    bench = Bench(BARRIER)
    bench.subscribe("slow", *FREELY)
    bench.subscribe("quick", *FREELY)
    bench.world.client("slow").stall()
    large = "B" + "x" * 200_000
    bench.write("producer", "SEND", "destination:/queue/q", IS_BARRIER, body=large)
    send_all(bench, "C1")
    assert bench.got("quick") == [large, "C"]
    bench.lose("slow")
    assert bench.got("quick") == ["1"]


def test_A_52_sent_at_most_once_it_waits_for_acknowledgements(cut: bool) -> None:
    """What it waits for is gone already, and not acknowledged."""
    bench = Bench(f"{BARRIER} delivery-semantics='at-most-once'", cut=cut)
    bench.subscribe("c1", *FREELY)
    bench.subscribe("c2", *FREELY)
    send_all(bench, "12B3")
    first, second = bench.messages("c1"), bench.messages("c2")
    assert sorted(shown(first) + shown(second)) == ["1", "2"]
    assert bench.count() == 2
    settle_all(bench, "c1", first)
    assert (bench.got("c1"), bench.got("c2")) == ([], [])
    settle_all(bench, "c2", second, "NACK")
    assert sorted(bench.got("c1") + bench.got("c2")) == ["3", "B", "B"]


def test_A_52_a_client_that_goes_with_unacknowledged_ones_opens_it(cut: bool) -> None:
    bench = Bench(f"{BARRIER} delivery-semantics='at-most-once'", cut=cut)
    bench.subscribe("c1", *FREELY)
    send_all(bench, "1B2")
    assert bench.got("c1") == ["1"]
    bench.subscribe("c2", *FREELY)
    assert bench.got("c2") == []
    bench.lose("c1")
    assert bench.got("c2") == ["B", "2"]


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize("ack", ["auto", "client", "client-individual"])
def test_A_51_an_ack_of_a_barrier_is_no_error(version: str, ack: str) -> None:
    """Clients need not know which messages are barriers. In 1.2 there is nothing that an ACK could name; whoever names
    the message-id is not told off.
    """
    bench = Bench(BARRIER)
    bench.client("c", version=version)
    bench.write("c", "SUBSCRIBE", "id:1", "destination:/queue/q", f"ack:{ack}", FLAT, MANY)
    send_all(bench, "B1B2")
    barrier, one = bench.messages("c")[:2]
    assert (barrier.body, one.body) == (b"B", b"1")
    for command in ("ACK", "NACK") if version != "1.0" else ("ACK",):
        bench.write("c", "BEGIN", "transaction:t")
        for more in ((), ("transaction:t",)):
            bench.write("c", command, *barrier.names(version), *more)
        bench.write("c", "COMMIT", "transaction:t")
    if ack != "auto":
        bench.write("c", "ACK", *one.names(version))
    got = bench.messages("c")
    assert shown(got).endswith("B2") if ack != "auto" else True
    if ack == "client":
        bench.write("c", "ACK", *got[0].names(version))
        assert bench.count() == 1, "a barrier covers nothing: all before it was done"
        bench.write("c", "ACK", *got[1].names(version))
    elif ack == "client-individual":
        bench.write("c", "ACK", *got[1].names(version))
    assert (bench.frames("c"), bench.count()) == ([], 0)


def test_A_51_many_acks_in_a_row_with_barriers_among_them() -> None:
    """A client that acknowledges everything in one go."""
    bench = Bench(BARRIER)
    bench.subscribe("c", *FREELY)
    send_all(bench, "BCB123")
    frames = bench.messages("c")
    assert shown(frames) == "BCB123"
    names = [f"ACK\nid:{frame.header('message-id')}\n\n\0" for frame in frames]
    bench.world.client("c").send("".join(names).encode())
    assert (bench.frames("c"), bench.count()) == ([], 0)


def test_A_50_a_commit_with_barriers_in_it(cut: bool) -> None:
    """Nothing of it is there before; then its messages are in their order."""
    bench = Bench(BARRIER, cut=cut)
    bench.subscribe("c", *FREELY)
    bench.write("producer", "BEGIN", "transaction:t")
    for body in "1B2":
        more = [IS_BARRIER] if body == "B" else []
        bench.write("producer", "SEND", "destination:/queue/q", "transaction:t", *more, body=body)
    send_all(bench, "0")
    (zero,) = bench.messages("c")
    bench.write("producer", "COMMIT", "transaction:t")
    (one,) = bench.messages("c")
    settle_all(bench, "c", [one, zero])
    assert bench.got("c") == ["B", "2"]


@pytest.mark.parametrize("end", ["COMMIT", "ABORT"])
def test_A_50_what_is_acknowledged_in_a_transaction_is_done_with_its_commit(cut: bool, end: str) -> None:
    bench = Bench(BARRIER, cut=cut)
    bench.subscribe("c", *FREELY)
    send_all(bench, "1B2")
    (one,) = bench.messages("c")
    bench.write("c", "BEGIN", "transaction:t")
    bench.write("c", "ACK", f"id:{one.header('ack')}", "transaction:t")
    assert bench.got("c") == []
    bench.write("c", end, "transaction:t")
    assert bench.got("c") == (["B", "2"] if end == "COMMIT" else ["1"])


def test_A_65_a_browser_sees_nothing_behind_a_barrier(cut: bool) -> None:
    """Neither it nor what it holds up is available. What was behind it appears when it has gone."""
    bench = Bench(BARRIER, cut=cut)
    send_all(bench, "12B3")
    bench.subscribe("looker", "browser:true")
    assert bench.got("looker") == ["1", "2"]
    bench.subscribe("c", *FREELY)
    settle_all(bench, "c", bench.messages("c"))
    assert bench.got("c") == ["B", "3"]
    assert bench.got("looker") == [], "3 was with the consumer before the browser could see it"
    send_all(bench, "4C5")
    bench.leave("c")
    bench.subscribe("late", "browser:true")
    assert bench.got("late") == ["3", "4"]


def test_A_50_a_restart_in_the_middle() -> None:
    """What was acknowledged is done; the rest is in its order, and waits as before."""
    life = Life(BARRIER)
    reader = life.client("reader")
    for body in "12B3C4":
        life.send(body, *((IS_BARRIER,) if body in "BC" else ()))
    life.subscribe("reader", MANY)
    first, second = reader.collect()
    life.settle("reader", first)
    assert second.body == b"2"
    life = life.again()
    reader = life.client("reader")
    life.subscribe("reader", MANY)
    got = ""
    while frames := list(reader.collect()):
        reader.collect().clear()
        got += shown(frames)
        for frame in frames:
            if frame.header("ack"):
                life.settle("reader", frame)
    assert got == "2B3C4"
    assert life.count() == 0
    life = life.again()
    assert life.count() == 0, "barriers do not come again"


def test_A_50_it_goes_out_when_no_crash_can_undo_what_came_before() -> None:
    """As long as the ACK of an earlier message is not on the disk, a crash would bring that one behind the barrier."""
    life = Life(BARRIER)
    producer, reader, other = life.client("producer"), life.client("reader"), life.client("other")
    for body in "1B":
        life.send(body, *((IS_BARRIER,) if body == "B" else ()))
    for name in ("reader", "other"):
        life.subscribe(name, MANY)
    (one,) = reader.collect()
    reader.collect().clear()
    life.broker.disk_works = False
    life.broker.together = True  # two clients send something, so the turn does not write by itself
    reader.send(f"ACK\nid:{one.header('ack')}\n\n\0".encode())
    producer.send(b"SEND\ndestination:/queue/other\npersistent:true\n\n\0")
    life.broker.together = False
    life.broker.settle()
    assert life.count() == 0
    assert [list(client.collect()) for client in (reader, other)] == [[], []], "nothing was written"
    life.broker.drain()
    assert [shown(list(client.collect())) for client in (reader, other)] == ["B", "B"]


def test_A_50_one_that_waits_for_another_attempt_holds_it_after_a_restart_too() -> None:
    life = Life(BARRIER, settings="<redelivery-delay>5000</redelivery-delay>")
    reader = life.client("reader")
    for body in "1B2":
        life.send(body, *((IS_BARRIER,) if body == "B" else ()))
    life.subscribe("reader", MANY)
    (frame,) = reader.collect()
    life.settle("reader", frame, "NACK")
    life = life.again()
    reader = life.client("reader")
    life.subscribe("reader", MANY)
    assert reader.collect() == []
    life.broker.advance(5000)
    (frame,) = reader.collect()
    assert frame.body == b"1"


@pytest.mark.parametrize("more", ["", "overflow-policy='FLOW_TO_DISK' max-depth-messages='2'"], ids=["PAGE", "to disk"])
@pytest.mark.parametrize("restart", [False, True])
def test_A_50_in_pages_too(more: str, restart: bool) -> None:
    """It is found when it is read, in order, also by consumers that choose."""
    pages = "<page-size-bytes>300</page-size-bytes>" + ("" if more else "<max-size-messages>2</max-size-messages>")
    life = Life(f"{BARRIER} {more}", settings=pages)
    for body in "1234B567C89":
        life.send(body, f"n:{body}", *([IS_BARRIER] if body in "BC" else []))
    assert life.queue().contents.paged.count > 5
    if restart:
        life = life.again()
    wishes = {"chooser": "selector:n IN ('B', 'C', '5', '9')", "other": "selector:n <> '5' AND n <> '9'"}
    for name, wish in wishes.items():
        life.subscribe(name, "max-backlog:2", wish)
    got = {"chooser": "", "other": ""}
    order = ""
    for _ in range(30):
        for name in wishes:
            frames = life.frames(name)
            got[name] += shown(frames)
            order += shown(frames)
            for frame in frames:
                if frame.header("ack"):
                    life.settle(name, frame)
    assert got == {"chooser": "B5C9", "other": "1234B67C8"}
    assert order.index("4") < order.index("B") < order.index("5") < order.index("C")
    assert life.count() == 0


def test_A_50_A_66_purge_and_delete_take_all(cut: bool) -> None:
    for attributes in (BARRIER, "target-queue-depth='2'"):
        bench = Bench(attributes, cut=cut)
        send_all(bench, "12B34")
        bench.send("later", "AMQ_SCHEDULED_DELAY:1000")
        queue = bench.queue()
        queue.purge(PURGED, bench.world.now_ms)
        assert (queue.message_count, queue.contents.counters.size_bytes, queue.contents.counters.killed) == (0, 0, 6)
        send_all(bench, "5B6")
        queue.purge(PURGED, bench.world.now_ms)
        assert bench.count() == 0
