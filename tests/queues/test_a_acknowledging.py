"""Rows of AMPS (rows.py) about acknowledging several messages at once, and about changing a subscription in place."""

from __future__ import annotations

import pytest

from artemis_py.core.memory import ID_BYTES, IDS
from tests.kit.bench import FLAT
from tests.kit.crash.retained import Archive
from tests.kit.frames import ServerFrame
from tests.kit.life import Life
from tests.kit.replays import QUEUE, bookmarks
from tests.queues.outcomes import SETTINGS, TARGETS, counts

pytestmark = pytest.mark.wire

SUBLET = "leasing='sublet' max-per-subscription-backlog='9'"
STRICT = "leasing='strict' max-per-subscription-backlog='9'"
MANY = "max-backlog:9"


def opened(attributes: str = SUBLET) -> Life:
    return Life(attributes, settings=SETTINGS, more=TARGETS)


def held(bench: Life, bodies: str = "abc", name: str = "c1", *headers: str) -> list[ServerFrame]:
    """Messages that a consumer holds."""
    bench.send_all(bodies, *headers)
    bench.subscribe(name, FLAT, MANY)
    frames = bench.messages(name)
    assert "".join(frame.body.decode() for frame in frames) == bodies
    return frames


# ---- bookmarks -----------------------------------------------------------------------------------


def test_A_22_a_message_has_a_bookmark_that_grows() -> None:
    bench = opened()
    marks = bookmarks(held(bench))
    assert marks == sorted(set(marks))
    assert bench.core.log.last_lsn >= marks[-1]


def test_A_39_several_at_once() -> None:
    bench = opened()
    first, _, third = bookmarks(held(bench))
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{first},{third}")
    assert counts(bench) == (1, 0, 0)
    bench.lose("c1")
    bench.subscribe("c2", FLAT, MANY)
    assert bench.got("c2") == ["b"]


def test_A_39_A_64_in_any_order_with_blanks_and_twice() -> None:
    bench = opened()
    first, second, third = bookmarks(held(bench))
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{third}, {first},{third}", "receipt:r")
    assert [frame.command for frame in bench.frames("c1")] == ["RECEIPT"]
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{second}")
    assert counts(bench) == (0, 0, 0)


def test_A_39_unknown_ones_are_ignored() -> None:
    bench = opened()
    (mark,) = bookmarks(held(bench, "a"))
    bench.write("c1", "ACK", QUEUE, f"bookmarks:0,1,{10**18},{mark}")
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{mark}", "receipt:r")
    assert [frame.command for frame in bench.frames("c1")] == ["RECEIPT"]
    assert counts(bench) == (0, 0, 0)


def test_A_39_A_59_it_makes_room() -> None:
    bench = opened()
    bench.send_all("abcd")
    bench.subscribe("c1", FLAT, "max-backlog:2")
    marks = bookmarks(bench.messages("c1"))
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{','.join(map(str, marks))}")
    assert bench.got("c1") == ["c", "d"]


def test_A_39_who_acknowledges_need_not_be_subscribed() -> None:
    bench = opened()
    (mark,) = bookmarks(held(bench, "a"))
    bench.write("other", "ACK", QUEUE, f"bookmarks:{mark}", "receipt:r")
    assert [frame.command for frame in bench.frames("other")] == ["RECEIPT"]
    assert counts(bench) == (0, 0, 0)


def test_A_39_what_was_never_delivered_has_a_bookmark_too() -> None:
    """Who reads the log knows it. Here the first queue tells the bookmarks of what is on both."""
    more = "<address name='t'><multicast><queue name='t1' leasing='sublet'/><queue name='t2' leasing='sublet'/>"
    bench = Life(SUBLET, more=more + "</multicast></address>")
    for body in "abc":
        bench.write("producer", "SEND", "destination:/topic/t", "persistent:true", body=body)
    bench.subscribe("c1", FLAT, MANY, to="t::t1", ack="client-individual")
    (frame,) = bench.messages("c1")
    bench.write("c1", "ACK", "destination:/queue/t::t2", f"bookmarks:{frame.header('bookmark')}")
    assert (bench.count("t1"), bench.count("t2")) == (3, 2)
    bench.subscribe("c2", FLAT, MANY, to="t::t2", id="2")
    assert bench.got("c2") == ["b"]


def test_A_39_A_09_a_bookmark_is_the_same_after_a_restart() -> None:
    bench = opened()
    marks = bookmarks(held(bench, "abc"))
    bench = bench.again()
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{marks[1]}")
    assert counts(bench) == (2, 0, 0)
    bench = bench.again()
    bench.subscribe("c1", FLAT, MANY)
    frames = bench.messages("c1")
    assert [(frame.body, frame.header("bookmark")) for frame in frames] == [
        (b"a", str(marks[0])),
        (b"c", str(marks[2])),
    ]


def test_A_39_after_a_restart_scheduled_messages_stand_elsewhere() -> None:
    """What fell due went to the head, so the queue is not in the order of the log any more."""
    bench = opened()
    bench.send_all("ab")
    bench.send("c", "AMQ_SCHEDULED_DELAY:100")
    bench.send("d")
    bench.broker.advance(100)
    bench.subscribe("c1", FLAT, MANY)
    frames = bench.messages("c1")
    marks = {frame.body.decode(): frame.header("bookmark") for frame in frames}
    assert "".join(marks) == "cabd"
    for body in "dbca":
        bench = bench.again()
        bench.write("c1", "ACK", QUEUE, f"bookmarks:{marks.pop(body)}")
        assert bench.count() == len(marks)


def test_A_39_a_message_without_a_place_in_the_log_has_no_bookmark() -> None:
    bench = opened()
    bench.send("a", "persistent:false")
    bench.subscribe("c1", FLAT, MANY)
    (frame,) = bench.messages("c1")
    assert frame.header("bookmark") is None


@pytest.mark.parametrize("command", ["NACK", "ACK"])
def test_A_39_A_42_cancel(command: str) -> None:
    bench = opened("leasing='sublet' max-per-subscription-backlog='9' max-cancels='2'")
    frames = held(bench)
    option = ("options:cancel",) if command == "ACK" else ()
    bench.write("c1", command, QUEUE, f"bookmarks:{','.join(map(str, bookmarks(frames)[:2]))}", *option)
    again = bench.messages("c1")
    assert [(frame.body, frame.header("redelivered")) for frame in again] == [(b"a", "true"), (b"b", "true")]
    bench.write("c1", command, QUEUE, f"bookmarks:{bookmarks(again)[0]}", *option)
    assert counts(bench) == (2, 0, 1)


def test_A_39_A_42_what_nobody_holds_is_not_cancelled() -> None:
    bench = opened("leasing='sublet' max-per-subscription-backlog='9' max-cancels='1'")
    (mark,) = bookmarks(held(bench, "a"))
    bench.lose("c1")
    bench.write("c2", "NACK", QUEUE, f"bookmarks:{mark}")
    assert counts(bench) == (1, 0, 0)


def test_A_39_A_45_expire() -> None:
    """Also what nobody holds."""
    bench = opened()
    first, second = bookmarks(held(bench, "ab"))
    bench.lose("c1")
    bench.subscribe("c1", FLAT, "max-backlog:1")
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{first},{second}", "options:expire")
    assert counts(bench) == (0, 2, 0)
    bench.subscribe("c2", FLAT, to="over")
    (frame, *_) = bench.messages("c2")
    assert frame.header("reason") == "forced_expire"


def test_A_39_A_41_strict_only_ones_own_and_what_nobody_has() -> None:
    bench = opened(STRICT)
    first, second, third = bookmarks(held(bench))
    bench.write("c2", "ACK", QUEUE, f"bookmarks:{first},{second}", "receipt:r")
    assert [frame.command for frame in bench.frames("c2")] == ["RECEIPT"]
    assert bench.count() == 3
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{first}")
    assert bench.count() == 2
    bench.lose("c1")
    bench.write("c2", "ACK", QUEUE, f"bookmarks:{third}")
    assert bench.count() == 1


def test_A_39_A_41_sublet_the_holder_has_room_again() -> None:
    bench = opened()
    bench.send_all("ab")
    bench.subscribe("c1", FLAT, "max-backlog:1")
    (frame,) = bench.messages("c1")
    bench.write("c2", "ACK", QUEUE, f"bookmarks:{frame.header('bookmark')}")
    assert bench.got("c1") == ["b"]


def test_A_39_the_holder_may_still_acknowledge() -> None:
    """It cannot know that somebody else was faster."""
    bench = opened("max-per-subscription-backlog='9'")
    (frame,) = held(bench, "a")
    bench.write("c2", "ACK", QUEUE, f"bookmarks:{frame.header('bookmark')}")
    bench.write("c1", "ACK", f"id:{frame.header('ack')}", "receipt:r")
    assert [one.command for one in bench.frames("c1")] == ["RECEIPT"]


def test_A_39_A_25_at_most_once_it_frees_the_backlog() -> None:
    """One's own, and whatever the options say."""
    bench = Life("delivery-semantics='at-most-once' max-per-subscription-backlog='2'")
    bench.send_all("abcd")
    bench.subscribe("c1", FLAT, "max-backlog:2")
    first, second = bookmarks(bench.messages("c1"))
    bench.write("c2", "ACK", QUEUE, f"bookmarks:{first}")
    assert bench.got("c1") == []
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{second}", "options:cancel")
    assert bench.got("c1") == ["c"]
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{first},{second}")
    assert (bench.got("c1"), bench.count()) == (["d"], 0)


# ---- bookmarks of messages in pages --------------------------------------------------------------

PAGING = "<max-size-messages>2</max-size-messages><address-full-policy>PAGE</address-full-policy>"
"""Two messages are in memory and the others in pages. The log is retained, so that it has all of them."""


def test_A_39_a_message_from_a_page_has_its_bookmark() -> None:
    bench = Life(SUBLET, settings=PAGING, archive=Archive())
    marks = bookmarks(held(bench, "abcdef"))
    assert marks == sorted(set(marks))
    bench = bench.again()
    bench.subscribe("c1", FLAT, MANY)
    assert bookmarks(bench.messages("c1")) == marks


@pytest.mark.parametrize("selector", [(), ("selector:AMQDurable = 'DURABLE'",)], ids=["any", "chooses"])
def test_A_39_A_66_what_is_in_pages_goes_when_it_is_read(selector: tuple[str, ...]) -> None:
    """After a restart nothing is known to be leased. The acknowledgement waits for the page."""
    bench = Life(SUBLET, settings=PAGING, archive=Archive())
    marks = bookmarks(held(bench, "abcdef"))
    bench = bench.again()
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{marks[0]},{marks[2]},{marks[4]}")
    bench.subscribe("c1", FLAT, MANY, *selector)
    assert (bench.got("c1"), bench.count()) == (list("bdf"), 3)
    bench = bench.again()
    assert bench.count() == 3


def test_A_39_A_45_A_66_what_is_in_pages_expires_when_it_is_read() -> None:
    bench = Life(SUBLET, settings=PAGING + SETTINGS, more=TARGETS, archive=Archive())
    marks = bookmarks(held(bench, "abcdef"))
    bench = bench.again()
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{marks[5]}", "options:expire")
    bench.subscribe("c1", FLAT, MANY)
    assert (bench.got("c1"), counts(bench)) == (list("abcde"), (5, 1, 0))


def test_A_66_a_queue_that_is_deleted_remembers_nothing() -> None:
    bench = Life(SUBLET, settings=PAGING, archive=Archive())
    held(bench, "abcdef")
    bench = bench.again()
    broker = bench.core
    before = broker.holdings.of(IDS)
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{10**9},{10**9 + 1}")
    assert broker.holdings.of(IDS) == before + 2 * ID_BYTES
    broker.registry.delete_queue(broker.queues["q"], bench.broker.loop.clock_ms())
    assert broker.holdings.of(IDS) == before


# ---- filters -------------------------------------------------------------------------------------


def test_A_40_everything_that_matches() -> None:
    bench = opened()
    bench.send_all("1112", "number:{}")
    bench.write("c1", "ACK", QUEUE, "filter:number = '1'", "receipt:r")
    assert [frame.command for frame in bench.frames("c1")] == ["RECEIPT"]
    bench.subscribe("c1", FLAT, MANY)
    assert bench.got("c1") == ["2"]


def test_A_40_whether_leased_or_not() -> None:
    bench = opened()
    bench.send_all("12121", "number:{}")
    bench.subscribe("c1", FLAT, "max-backlog:2")
    assert bench.got("c1") == ["1", "2"]
    bench.write("c2", "ACK", QUEUE, "filter:number = '1'")
    assert (bench.count(), bench.got("c1")) == (2, ["2"])


def test_A_40_A_41_strict_spares_what_others_hold() -> None:
    bench = opened(STRICT)
    bench.send_all("111", "number:{}")
    bench.subscribe("c1", FLAT, "max-backlog:1")
    assert bench.got("c1") == ["1"]
    bench.write("c2", "ACK", QUEUE, "filter:number = '1'")
    assert (bench.count(), bench.queue().contents.delivering_count) == (1, 1)
    bench.write("c1", "ACK", QUEUE, "filter:number = '1'")
    assert bench.count() == 0


def test_A_40_later_messages_stay() -> None:
    bench = opened()
    bench.send_all("11", "number:{}")
    bench.write("c1", "ACK", QUEUE, "filter:number = '1'")
    bench.send_all("1", "number:{}")
    assert bench.count() == 1


def test_A_40_also_what_waits_for_its_time() -> None:
    bench = opened()
    bench.send("a", "number:1", "AMQ_SCHEDULED_DELAY:1000")
    bench.write("c1", "ACK", QUEUE, "filter:number = '1'")
    assert bench.count() == 0


def test_A_40_A_42_cancel_takes_back_what_is_leased() -> None:
    bench = opened()
    bench.send_all("121", "number:{}")
    bench.subscribe("c1", FLAT, "max-backlog:2")
    assert bench.got("c1") == ["1", "2"]
    bench.write("c2", "NACK", QUEUE, "filter:number = '1'")
    (frame,) = bench.messages("c1")
    assert (frame.body, frame.header("redelivered"), bench.count()) == (b"1", "true", 3)


def test_A_40_A_45_expire() -> None:
    bench = opened()
    bench.send_all("121", "number:{}")
    bench.subscribe("c1", FLAT, "max-backlog:1")
    bench.got("c1")
    bench.write("c2", "ACK", QUEUE, "filter:number = '1'", "options:expire")
    assert (counts(bench), bench.got("c1")) == ((1, 2, 0), ["2"])


def test_A_40_at_most_once_what_is_still_there() -> None:
    bench = Life("delivery-semantics='at-most-once' max-per-subscription-backlog='2'")
    bench.send_all("121", "number:{}")
    bench.write("c1", "ACK", QUEUE, "filter:number = '1'")
    assert bench.count() == 1


def test_A_40_a_restart_does_not_bring_them_back() -> None:
    bench = opened()
    bench.send_all("121", "number:{}")
    bench.write("c1", "ACK", QUEUE, "filter:number = '1'")
    bench = bench.again()
    bench.subscribe("c1", FLAT, MANY)
    assert bench.got("c1") == ["2"]


def test_A_40_a_long_queue_stops_nobody() -> None:
    """Ten thousand messages in slices; what is delivered meanwhile is met all the same."""
    bench = opened()
    client = bench.client("producer")
    for start in range(0, 10_000, 100):
        frames = [
            f"SEND\ndestination:/queue/q\npersistent:true\nnumber:{number % 2}\n\n{number}\0"
            for number in range(start, start + 100)
        ]
        client.send("".join(frames).encode())
        bench.broker.drain()
    assert bench.count() == 10_000
    bench.broker.turns.units = 300
    bench.subscribe("c1", FLAT, MANY)
    bench.write("c2", "ACK", QUEUE, "filter:number = '1'", "receipt:r")
    assert [frame.command for frame in bench.frames("c2")] == ["RECEIPT"]
    assert bench.count() == 5_000
    assert "".join(bench.got("c1")).startswith("0123456789"[:9])


# ---- transactions --------------------------------------------------------------------------------


def test_A_39_in_a_transaction() -> None:
    """What is leased is out of its holder's hands at once, so that the next comes."""
    bench = opened()
    bench.send_all("abc")
    bench.subscribe("c1", FLAT, "max-backlog:1")
    (frame,) = bench.messages("c1")
    bench.write("c1", "BEGIN", "transaction:t")
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{frame.header('bookmark')}", "transaction:t")
    assert (bench.got("c1"), bench.count()) == (["b"], 3)
    bench.write("c1", "COMMIT", "transaction:t")
    assert bench.count() == 2


def test_A_39_an_abort_gives_it_back() -> None:
    bench = opened()
    (mark,) = bookmarks(held(bench, "a"))
    bench.write("c1", "BEGIN", "transaction:t")
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{mark}", "transaction:t")
    bench.write("c1", "ABORT", "transaction:t")
    (frame,) = bench.messages("c1")
    assert (frame.header("bookmark"), frame.header("redelivered")) == (str(mark), "true")


@pytest.mark.parametrize("names", ["filter", "bookmarks"])
def test_A_40_what_nobody_has_waits_for_the_commit(names: str) -> None:
    bench = opened()
    first, second = bookmarks(held(bench, "ab", "c1", "number:1"))
    bench.lose("c1")
    choice = "filter:number = '1'" if names == "filter" else f"bookmarks:{first},{second}"
    for end, left in (("ABORT", 2), ("COMMIT", 0)):
        bench.write("c2", "BEGIN", "transaction:t")
        bench.write("c2", "ACK", QUEUE, choice, "transaction:t")
        assert bench.count() == 2
        bench.write("c2", end, "transaction:t", "receipt:r")
        assert [frame.command for frame in bench.frames("c2")] == ["RECEIPT"]
        assert bench.count() == left


def test_A_40_a_queue_that_is_gone_at_the_commit() -> None:
    bench = opened()
    bench.send("a")
    bench.write("c2", "BEGIN", "transaction:t")
    bench.write("c2", "ACK", QUEUE, "filter:TRUE = TRUE", "transaction:t")
    broker = bench.core
    broker.registry.delete_queue(broker.queues["q"], bench.broker.loop.clock_ms())
    bench.write("c2", "COMMIT", "transaction:t", "receipt:r")
    assert [frame.command for frame in bench.frames("c2")] == ["RECEIPT"]


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        (["bookmarks:1", "filter:a = 1"], "not both"),
        (["bookmarks:1,x"], "must be numbers, separated by commas, not 'x'"),
        (["bookmarks:"], "must be numbers"),
        (["bookmarks:-1"], "must be numbers"),
        (["bookmarks:" + "9" * 20], "must be numbers"),
        (["filter:a ="], "selector"),
        (["filter:a = 1", "options:drop"], "options of ACK must be cancel or expire"),
        (["filter:a = 1", "transaction:t"], "No transaction 't' has begun"),
    ],
)
def test_A_39_A_40_what_is_refused(headers: list[str], text: str) -> None:
    bench = opened()
    bench.send("a")
    bench.write("c1", "ACK", QUEUE, *headers)
    assert text.lower() in (bench.error("c1").header("message") or "").lower()
    assert bench.count() == 1


def test_A_39_A_40_the_queue_must_be_named_and_be_there() -> None:
    bench = opened()
    bench.write("c1", "ACK", "bookmarks:1")
    assert "needs a destination header" in (bench.error("c1").header("message") or "")
    bench.write("c2", "ACK", "destination:/queue/nobody", "bookmarks:1")
    assert "There is no queue nobody" in (bench.error("c2").header("message") or "")
    assert "nobody" not in bench.core.addresses
    bench.write("c3", "ACK", "destination:/queue/q::other", "bookmarks:1")
    assert "There is no queue q" in (bench.error("c3").header("message") or "")


def test_A_39_A_40_a_queue_without_amps() -> None:
    bench = Life("")
    bench.send("a")
    bench.write("c1", "ACK", QUEUE, "filter:a = 1")
    assert "Queue q has no attribute of AMPS" in (bench.error("c1").header("message") or "")


# ---- bookmarks on any queue ----------------------------------------------------------------------


MARKED = ("bookmarks:true", MANY)


def test_who_asks_for_bookmarks_settles_by_them() -> None:
    bench = opened("")
    bench.send_all("abcd")
    bench.subscribe("c1", FLAT, *MARKED)
    first, _, third, _ = bookmarks(bench.messages("c1"))
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{first},{third}", "receipt:r")
    (receipt,) = bench.frames("c1")
    assert (receipt.header("kept"), receipt.header("ready"), bench.count()) == ("", "0", 2)
    bench.lose("c1")
    bench.subscribe("c2", FLAT)
    frames = bench.messages("c2")
    assert [(frame.body, frame.header("bookmark")) for frame in frames] == [(b"b", None), (b"d", None)]


def test_what_nobody_has_is_settled_and_what_others_hold_is_kept() -> None:
    """They know nothing of leases: their own ACK must still count. It does not matter when they came."""
    bench = opened("")
    bench.send_all("abc")
    bench.subscribe("before", FLAT, "max-backlog:1")
    (a,) = bench.messages("before")
    bench.subscribe("c1", FLAT, *MARKED)
    marks = bookmarks(bench.messages("c1"))
    bench.lose("c1")
    bench.subscribe("after", FLAT, "max-backlog:1")
    (b,) = bench.messages("after")
    holders = bench.queue().distribution.consumers
    theirs = ",".join(str(entry.message.lsn) for holder in holders for entry in holder.held.values())
    bench.write("other", "ACK", QUEUE, f"bookmarks:{theirs},{marks[1]}", "receipt:r")
    (receipt,) = bench.frames("other")
    assert (receipt.header("kept"), receipt.header("ready")) == (theirs, "0")
    assert bench.count() == 2
    for name, frame in (("before", a), ("after", b)):
        bench.write(name, "ACK", f"id:{frame.header('ack')}", "receipt:mine")
        assert [one.header("receipt-id") for one in bench.frames(name)] == ["mine"]
    assert bench.count() == 0


def test_others_on_the_queue_settle_as_before() -> None:
    bench = opened("")
    bench.subscribe("c1", FLAT, *MARKED)
    bench.subscribe("plain", FLAT)
    bench.send_all("ab")
    (frame,) = bench.messages("plain")
    for _ in range(2):
        bench.write("plain", "ACK", f"id:{frame.header('ack')}")
    assert "waits for acknowledgement" in (bench.error("plain").header("message") or "")


def test_a_restart_does_not_change_what_bookmarks_settle() -> None:
    """What fell due went to the head, so the queue is not in the order of the log any more."""
    bench = opened("")
    bench.send_all("ab")
    bench.send("c", "AMQ_SCHEDULED_DELAY:100")
    bench.send("d")
    bench.broker.advance(100)
    bench.subscribe("c1", FLAT, *MARKED)
    frames = bench.messages("c1")
    marks = {frame.body.decode(): frame.header("bookmark") for frame in frames}
    assert "".join(marks) == "cabd"
    for body in "dbca":
        bench = bench.again()
        bench.write("c1", "ACK", QUEUE, f"bookmarks:{marks.pop(body)}")
        assert bench.count() == len(marks)


@pytest.mark.parametrize(
    ("queue", "text"),
    [
        ("<queue name='t' non-destructive='true'/>", "Queue t is non-destructive"),
        ("<queue name='t'><durable>false</durable></queue>", "Queue t is not durable"),
    ],
)
def test_where_nothing_can_be_settled_by_bookmarks(queue: str, text: str) -> None:
    bench = Life("", more=f"<address name='t'><anycast>{queue}</anycast></address>")
    bench.subscribe("c1", FLAT, *MARKED, to="t")
    bench.send("a", to="/queue/t")
    assert bench.got("c1") == ["a"]
    bench.write("c1", "ACK", "destination:/queue/t", "bookmarks:1")
    assert text in (bench.error("c1").header("message") or "")


# ---- a subscription is changed in place ----------------------------------------------------------


def test_A_67_the_backlog_shrinks_and_leases_stay() -> None:
    bench = opened("leasing='sublet' max-per-subscription-backlog='10'")
    bench.send_all("abcdefghijkl")
    bench.subscribe("c1", FLAT, "max-backlog:10")
    frames = bench.messages("c1")
    assert len(frames) == 10
    bench.subscribe("c1", FLAT, "max-backlog:5", "replace:true")
    for frame in frames[:5]:
        bench.write("c1", "ACK", f"id:{frame.header('ack')}")
        assert bench.got("c1") == []
    assert bench.queue().contents.delivering_count == 5
    bench.write("c1", "ACK", f"id:{frames[5].header('ack')}")
    assert bench.got("c1") == ["k"]


def test_A_67_the_backlog_grows() -> None:
    bench = opened()
    bench.send_all("abc")
    bench.subscribe("c1", FLAT)
    assert bench.got("c1") == ["a"]
    bench.subscribe("c1", FLAT, MANY, "replace:true")
    assert bench.got("c1") == ["b", "c"]


def test_A_67_without_a_backlog_it_is_one_again() -> None:
    bench = opened()
    bench.subscribe("c1", FLAT, MANY)
    bench.subscribe("c1", FLAT, "replace:true")
    bench.send_all("ab")
    assert bench.got("c1") == ["a"]


@pytest.mark.parametrize("groups", ["", "group-type='STANDARD'", "group-type='SHARED_GROUPS'"])
def test_A_67_another_selector(groups: str) -> None:
    """It sees what it passed over before, and not what it wanted before."""
    bench = opened(f"{SUBLET} {groups}")
    bench.send_all("1212", "number:{}")
    bench.subscribe("c1", FLAT, MANY, "selector:number = '1'")
    assert bench.got("c1") == ["1", "1"]
    bench.subscribe("c1", FLAT, MANY, "selector:number = '2'", "replace:true")
    assert bench.got("c1") == ["2", "2"]
    bench.send_all("12", "number:{}")
    assert bench.got("c1") == ["2"]
    bench.subscribe("c1", FLAT, MANY, "replace:true")
    assert bench.got("c1") == ["1"]


@pytest.mark.parametrize("kind", ["STANDARD", "SHARED_GROUPS"])
def test_A_67_its_groups_stay_with_it(kind: str) -> None:
    bench = opened(f"{SUBLET} group-type='{kind}' fairness-model='round-robin'")
    bench.subscribe("c1", FLAT, MANY, "selector:number = '1'")
    bench.subscribe("c2", FLAT, MANY)
    bench.send("a", "JMSXGroupID:g", "number:1")
    assert bench.got("c1") == ["a"]
    bench.send("b", "JMSXGroupID:g", "number:2")
    assert (bench.got("c1"), bench.got("c2")) == ([], [])
    bench.subscribe("c1", FLAT, MANY, "replace:true")
    assert (bench.got("c1"), bench.got("c2")) == (["b"], [])


def test_A_67_on_a_plain_queue() -> None:
    bench = Life("")
    bench.send_all("12", "number:{}")
    bench.subscribe("c1", FLAT, "selector:number = '2'")
    assert bench.got("c1") == ["2"]
    bench.subscribe("c1", FLAT, "replace:true")
    assert bench.got("c1") == ["1"]


def test_A_67_proportional_counts_the_new_backlog() -> None:
    bench = opened("fairness-model='proportional' max-per-subscription-backlog='10'")
    bench.subscribe("c1", FLAT, "max-backlog:10")
    bench.subscribe("c2", FLAT, "max-backlog:4")
    bench.send_all("aab")
    assert (bench.got("c1"), bench.got("c2")) == (["a", "b"], ["a"])
    bench.subscribe("c1", FLAT, "max-backlog:2", "replace:true")
    bench.send("c")
    assert (bench.got("c1"), bench.got("c2")) == ([], ["c"])


def test_A_67_a_new_id_is_a_new_subscription() -> None:
    bench = opened()
    bench.send("a")
    bench.subscribe("c1", FLAT, "replace:true")
    assert bench.got("c1") == ["a"]


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ([], [], "There is already a subscription '1'"),
        ([], ["replace:true", "consumer-priority:5"], "consumer-priority was 0 and cannot become 5"),
        ([], ["replace:true", "max-backlog:0"], "max-backlog must be a number of messages"),
        ([], ["replace:true", "selector:a ="], "selector"),
        (["browser:true"], ["replace:true"], "only looks at them"),
    ],
)
def test_A_67_what_is_refused(first: list[str], second: list[str], text: str) -> None:
    bench = opened()
    bench.subscribe("c1", FLAT, *first)
    bench.subscribe("c1", FLAT, *second)
    assert text.lower() in (bench.error("c1").header("message") or "").lower()


def test_A_67_neither_the_queue_nor_the_way_of_acknowledging_changes() -> None:
    bench = opened()
    bench.subscribe("c1", FLAT)
    bench.subscribe("c1", FLAT, "replace:true", to="dead")
    assert "destination was /queue/q and cannot become /queue/dead" in (bench.error("c1").header("message") or "")
    bench.subscribe("c2", FLAT)
    bench.subscribe("c2", FLAT, "replace:true", ack="client")
    assert "ack was client-individual and cannot become client" in (bench.error("c2").header("message") or "")
    bench.write("c3", "SUBSCRIBE", "id:1", "destination:/topic/t", FLAT)
    bench.write("c3", "SUBSCRIBE", "id:1", "destination:/topic/t", FLAT, "replace:true")
    assert "has a queue of its own" in (bench.error("c3").header("message") or "")
