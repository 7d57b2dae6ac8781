"""Rows of AMPS (rows.py) about acknowledging several messages at once, and about changing a subscription in place."""

from __future__ import annotations

import pytest

from artemis_py.core.memory import ID_BYTES, IDS
from tests.kit.frames import ServerFrame
from tests.queues.ledger import FLAT, Ledger, bookmarks

pytestmark = pytest.mark.wire

TARGETS = """<address name="dead"><anycast><queue name="dead"/></anycast></address>
<address name="over"><anycast><queue name="over"/></anycast></address>"""
SETTINGS = "<dead-letter-address>dead</dead-letter-address><expiry-address>over</expiry-address>"
SUBLET = "leasing='sublet' max-per-subscription-backlog='9'"
STRICT = "leasing='strict' max-per-subscription-backlog='9'"
MANY = "max-backlog:9"


def opened(attributes: str = SUBLET) -> Ledger:
    return Ledger(attributes, settings=SETTINGS, more=TARGETS)


def held(ledger: Ledger, bodies: str = "abc", name: str = "c1", *headers: str) -> list[ServerFrame]:
    """Messages that a consumer holds."""
    ledger.send(bodies, *headers)
    ledger.subscribe(name, MANY)
    frames = ledger.messages(name)
    assert "".join(frame.body.decode() for frame in frames) == bodies
    return frames


def counts(ledger: Ledger) -> tuple[int, int, int]:
    """Messages on the queue, on the expiry address and on the dead-letter address."""
    return ledger.count(), ledger.count("over"), ledger.count("dead")


# ---- bookmarks -----------------------------------------------------------------------------------


def test_A_22_a_message_has_a_bookmark_that_grows() -> None:
    ledger = opened()
    marks = [int(mark) for mark in bookmarks(held(ledger))]
    assert marks == sorted(set(marks))
    assert ledger.life.broker.broker.log.last_lsn >= marks[-1]


def test_A_39_several_at_once() -> None:
    ledger = opened()
    first, _, third = bookmarks(held(ledger))
    ledger.settle("c1", "ACK", f"bookmarks:{first},{third}")
    assert counts(ledger) == (1, 0, 0)
    ledger.lose("c1")
    ledger.subscribe("c2", MANY)
    assert ledger.got("c2") == "b"


def test_A_39_A_64_in_any_order_with_blanks_and_twice() -> None:
    ledger = opened()
    first, second, third = bookmarks(held(ledger))
    ledger.settle("c1", "ACK", f"bookmarks:{third}, {first},{third}", "receipt:r")
    assert [frame.command for frame in ledger.frames("c1")] == ["RECEIPT"]
    ledger.settle("c1", "ACK", f"bookmarks:{second}")
    assert counts(ledger) == (0, 0, 0)


def test_A_39_unknown_ones_are_ignored() -> None:
    ledger = opened()
    (mark,) = bookmarks(held(ledger, "a"))
    ledger.settle("c1", "ACK", f"bookmarks:0,1,{10**18},{mark}")
    ledger.settle("c1", "ACK", f"bookmarks:{mark}", "receipt:r")
    assert [frame.command for frame in ledger.frames("c1")] == ["RECEIPT"]
    assert counts(ledger) == (0, 0, 0)


def test_A_39_A_59_it_makes_room() -> None:
    ledger = opened()
    ledger.send("abcd")
    ledger.subscribe("c1", "max-backlog:2")
    marks = bookmarks(ledger.messages("c1"))
    ledger.settle("c1", "ACK", f"bookmarks:{','.join(marks)}")
    assert ledger.got("c1") == "cd"


def test_A_39_who_acknowledges_need_not_be_subscribed() -> None:
    ledger = opened()
    (mark,) = bookmarks(held(ledger, "a"))
    ledger.settle("other", "ACK", f"bookmarks:{mark}", "receipt:r")
    assert [frame.command for frame in ledger.frames("other")] == ["RECEIPT"]
    assert counts(ledger) == (0, 0, 0)


def test_A_39_what_was_never_delivered_has_a_bookmark_too() -> None:
    """Who reads the log knows it. Here the first queue tells the bookmarks of what is on both."""
    more = "<address name='t'><multicast><queue name='t1' leasing='sublet'/><queue name='t2' leasing='sublet'/>"
    ledger = Ledger(SUBLET, more=more + "</multicast></address>")
    for body in "abc":
        ledger.write("producer", "SEND", "destination:/topic/t", "persistent:true", body=body)
    ledger.subscribe("c1", MANY, to="t::t1", ack="client-individual")
    (frame,) = ledger.messages("c1")
    ledger.settle("c1", "ACK", f"bookmarks:{frame.header('bookmark')}", to="t::t2")
    assert (ledger.count("t1"), ledger.count("t2")) == (3, 2)
    ledger.subscribe("c2", MANY, to="t::t2", number="2")
    assert ledger.got("c2") == "b"


def test_A_39_A_09_a_bookmark_is_the_same_after_a_restart() -> None:
    ledger = opened()
    marks = bookmarks(held(ledger, "abc"))
    ledger = ledger.again()
    ledger.settle("c1", "ACK", f"bookmarks:{marks[1]}")
    assert counts(ledger) == (2, 0, 0)
    ledger = ledger.again()
    ledger.subscribe("c1", MANY)
    frames = ledger.messages("c1")
    assert [(frame.body, frame.header("bookmark")) for frame in frames] == [(b"a", marks[0]), (b"c", marks[2])]


def test_A_39_after_a_restart_scheduled_messages_stand_elsewhere() -> None:
    """What fell due went to the head, so the queue is not in the order of the log any more."""
    ledger = opened()
    ledger.send("ab")
    ledger.send("c", "AMQ_SCHEDULED_DELAY:100")
    ledger.send("d")
    ledger.advance(100)
    ledger.subscribe("c1", MANY)
    frames = ledger.messages("c1")
    marks = {frame.body.decode(): frame.header("bookmark") for frame in frames}
    assert "".join(marks) == "cabd"
    for body in "dbca":
        ledger = ledger.again()
        ledger.settle("c1", "ACK", f"bookmarks:{marks.pop(body)}")
        assert ledger.count() == len(marks)


def test_A_39_a_message_without_a_place_in_the_log_has_no_bookmark() -> None:
    ledger = opened()
    ledger.send("a", persistent=False)
    ledger.subscribe("c1", MANY)
    (frame,) = ledger.messages("c1")
    assert frame.header("bookmark") is None


@pytest.mark.parametrize("command", ["NACK", "ACK"])
def test_A_39_A_42_cancel(command: str) -> None:
    ledger = opened("leasing='sublet' max-per-subscription-backlog='9' max-cancels='2'")
    frames = held(ledger)
    option = ("options:cancel",) if command == "ACK" else ()
    ledger.settle("c1", command, f"bookmarks:{','.join(bookmarks(frames)[:2])}", *option)
    again = ledger.messages("c1")
    assert [(frame.body, frame.header("redelivered")) for frame in again] == [(b"a", "true"), (b"b", "true")]
    ledger.settle("c1", command, f"bookmarks:{bookmarks(again)[0]}", *option)
    assert counts(ledger) == (2, 0, 1)


def test_A_39_A_42_what_nobody_holds_is_not_cancelled() -> None:
    ledger = opened("leasing='sublet' max-per-subscription-backlog='9' max-cancels='1'")
    (mark,) = bookmarks(held(ledger, "a"))
    ledger.lose("c1")
    ledger.settle("c2", "NACK", f"bookmarks:{mark}")
    assert counts(ledger) == (1, 0, 0)


def test_A_39_A_45_expire() -> None:
    """Also what nobody holds."""
    ledger = opened()
    first, second = bookmarks(held(ledger, "ab"))
    ledger.lose("c1")
    ledger.subscribe("c1", "max-backlog:1")
    ledger.settle("c1", "ACK", f"bookmarks:{first},{second}", "options:expire")
    assert counts(ledger) == (0, 2, 0)
    ledger.subscribe("c2", to="over")
    (frame, *_) = ledger.messages("c2")
    assert frame.header("reason") == "forced_expire"


def test_A_39_A_41_strict_only_ones_own_and_what_nobody_has() -> None:
    ledger = opened(STRICT)
    first, second, third = bookmarks(held(ledger))
    ledger.settle("c2", "ACK", f"bookmarks:{first},{second}", "receipt:r")
    assert [frame.command for frame in ledger.frames("c2")] == ["RECEIPT"]
    assert ledger.count() == 3
    ledger.settle("c1", "ACK", f"bookmarks:{first}")
    assert ledger.count() == 2
    ledger.lose("c1")
    ledger.settle("c2", "ACK", f"bookmarks:{third}")
    assert ledger.count() == 1


def test_A_39_A_41_sublet_the_holder_has_room_again() -> None:
    ledger = opened()
    ledger.send("ab")
    ledger.subscribe("c1", "max-backlog:1")
    (frame,) = ledger.messages("c1")
    ledger.settle("c2", "ACK", f"bookmarks:{frame.header('bookmark')}")
    assert ledger.got("c1") == "b"


def test_A_39_the_holder_may_still_acknowledge() -> None:
    """It cannot know that somebody else was faster."""
    ledger = opened("max-per-subscription-backlog='9'")
    (frame,) = held(ledger, "a")
    ledger.settle("c2", "ACK", f"bookmarks:{frame.header('bookmark')}")
    ledger.write("c1", "ACK", f"id:{frame.header('ack')}", "receipt:r")
    assert [one.command for one in ledger.frames("c1")] == ["RECEIPT"]


def test_A_39_A_25_at_most_once_it_frees_the_backlog() -> None:
    """One's own, and whatever the options say."""
    ledger = Ledger("delivery-semantics='at-most-once' max-per-subscription-backlog='2'")
    ledger.send("abcd")
    ledger.subscribe("c1", "max-backlog:2")
    first, second = bookmarks(ledger.messages("c1"))
    ledger.settle("c2", "ACK", f"bookmarks:{first}")
    assert ledger.got("c1") == ""
    ledger.settle("c1", "ACK", f"bookmarks:{second}", "options:cancel")
    assert ledger.got("c1") == "c"
    ledger.settle("c1", "ACK", f"bookmarks:{first},{second}")
    assert (ledger.got("c1"), ledger.count()) == ("d", 0)


# ---- bookmarks of messages in pages --------------------------------------------------------------

PAGING = "<max-size-messages>2</max-size-messages><address-full-policy>PAGE</address-full-policy>"


def paged() -> Ledger:
    """A queue of which two messages are in memory and the others in pages, with a log that has all of them."""
    return Ledger(SUBLET, settings=PAGING, retained=True)


def test_A_39_a_message_from_a_page_has_its_bookmark() -> None:
    ledger = paged()
    marks = [int(mark) for mark in bookmarks(held(ledger, "abcdef"))]
    assert marks == sorted(set(marks))
    ledger = ledger.again()
    ledger.subscribe("c1", MANY)
    assert [int(mark) for mark in bookmarks(ledger.messages("c1"))] == marks


@pytest.mark.parametrize("selector", [(), ("selector:AMQDurable = 'DURABLE'",)], ids=["any", "chooses"])
def test_A_39_A_66_what_is_in_pages_goes_when_it_is_read(selector: tuple[str, ...]) -> None:
    """After a restart nothing is known to be leased. The acknowledgement waits for the page."""
    ledger = paged()
    marks = bookmarks(held(ledger, "abcdef"))
    ledger = ledger.again()
    ledger.settle("c1", "ACK", f"bookmarks:{marks[0]},{marks[2]},{marks[4]}")
    ledger.subscribe("c1", MANY, *selector)
    assert (ledger.got("c1"), ledger.count()) == ("bdf", 3)
    ledger = ledger.again()
    assert ledger.count() == 3


def test_A_39_A_45_A_66_what_is_in_pages_expires_when_it_is_read() -> None:
    ledger = Ledger(SUBLET, settings=PAGING + SETTINGS, more=TARGETS, retained=True)
    marks = bookmarks(held(ledger, "abcdef"))
    ledger = ledger.again()
    ledger.settle("c1", "ACK", f"bookmarks:{marks[5]}", "options:expire")
    ledger.subscribe("c1", MANY)
    assert (ledger.got("c1"), counts(ledger)) == ("abcde", (5, 1, 0))


def test_A_66_a_queue_that_is_deleted_remembers_nothing() -> None:
    ledger = paged()
    held(ledger, "abcdef")
    ledger = ledger.again()
    broker = ledger.life.broker.broker
    before = broker.holdings.of(IDS)
    ledger.settle("c1", "ACK", f"bookmarks:{10**9},{10**9 + 1}")
    assert broker.holdings.of(IDS) == before + 2 * ID_BYTES
    broker.registry.delete_queue(broker.queues["q"], ledger.life.broker.loop.clock_ms())
    assert broker.holdings.of(IDS) == before


# ---- filters -------------------------------------------------------------------------------------


def ids(ledger: Ledger, numbers: str) -> None:
    """A message for each digit, which is also its header ``number``."""
    for number in numbers:
        ledger.send(number, f"number:{number}")


def test_A_40_everything_that_matches() -> None:
    ledger = opened()
    ids(ledger, "1112")
    ledger.settle("c1", "ACK", "filter:number = '1'", "receipt:r")
    assert [frame.command for frame in ledger.frames("c1")] == ["RECEIPT"]
    ledger.subscribe("c1", MANY)
    assert ledger.got("c1") == "2"


def test_A_40_whether_leased_or_not() -> None:
    ledger = opened()
    ids(ledger, "12121")
    ledger.subscribe("c1", "max-backlog:2")
    assert ledger.got("c1") == "12"
    ledger.settle("c2", "ACK", "filter:number = '1'")
    assert (ledger.count(), ledger.got("c1")) == (2, "2")


def test_A_40_A_41_strict_spares_what_others_hold() -> None:
    ledger = opened(STRICT)
    ids(ledger, "111")
    ledger.subscribe("c1", "max-backlog:1")
    assert ledger.got("c1") == "1"
    ledger.settle("c2", "ACK", "filter:number = '1'")
    assert (ledger.count(), ledger.delivering()) == (1, 1)
    ledger.settle("c1", "ACK", "filter:number = '1'")
    assert ledger.count() == 0


def test_A_40_later_messages_stay() -> None:
    ledger = opened()
    ids(ledger, "11")
    ledger.settle("c1", "ACK", "filter:number = '1'")
    ids(ledger, "1")
    assert ledger.count() == 1


def test_A_40_also_what_waits_for_its_time() -> None:
    ledger = opened()
    ledger.send("a", "number:1", "AMQ_SCHEDULED_DELAY:1000")
    ledger.settle("c1", "ACK", "filter:number = '1'")
    assert ledger.count() == 0


def test_A_40_A_42_cancel_takes_back_what_is_leased() -> None:
    ledger = opened()
    ids(ledger, "121")
    ledger.subscribe("c1", "max-backlog:2")
    assert ledger.got("c1") == "12"
    ledger.settle("c2", "NACK", "filter:number = '1'")
    (frame,) = ledger.messages("c1")
    assert (frame.body, frame.header("redelivered"), ledger.count()) == (b"1", "true", 3)


def test_A_40_A_45_expire() -> None:
    ledger = opened()
    ids(ledger, "121")
    ledger.subscribe("c1", "max-backlog:1")
    ledger.got("c1")
    ledger.settle("c2", "ACK", "filter:number = '1'", "options:expire")
    assert (counts(ledger), ledger.got("c1")) == ((1, 2, 0), "2")


def test_A_40_at_most_once_what_is_still_there() -> None:
    ledger = Ledger("delivery-semantics='at-most-once' max-per-subscription-backlog='2'")
    ids(ledger, "121")
    ledger.settle("c1", "ACK", "filter:number = '1'")
    assert ledger.count() == 1


def test_A_40_a_restart_does_not_bring_them_back() -> None:
    ledger = opened()
    ids(ledger, "121")
    ledger.settle("c1", "ACK", "filter:number = '1'")
    ledger = ledger.again()
    ledger.subscribe("c1", MANY)
    assert ledger.got("c1") == "2"


def test_A_40_a_long_queue_stops_nobody() -> None:
    """Ten thousand messages in slices; what is delivered meanwhile is met all the same."""
    ledger = opened()
    client = ledger.client("producer")
    for start in range(0, 10_000, 100):
        frames = [
            f"SEND\ndestination:/queue/q\npersistent:true\nnumber:{number % 2}\n\n{number}\0"
            for number in range(start, start + 100)
        ]
        client.send("".join(frames).encode())
        ledger.life.broker.drain()
    assert ledger.count() == 10_000
    ledger.life.broker.turns.units = 300
    ledger.subscribe("c1", MANY)
    ledger.settle("c2", "ACK", "filter:number = '1'", "receipt:r")
    assert [frame.command for frame in ledger.frames("c2")] == ["RECEIPT"]
    assert ledger.count() == 5_000
    assert ledger.got("c1").startswith("0123456789"[:9])


# ---- transactions --------------------------------------------------------------------------------


def test_A_39_in_a_transaction() -> None:
    """What is leased is out of its holder's hands at once, so that the next comes."""
    ledger = opened()
    ledger.send("abc")
    ledger.subscribe("c1", "max-backlog:1")
    (frame,) = ledger.messages("c1")
    ledger.write("c1", "BEGIN", "transaction:t")
    ledger.settle("c1", "ACK", f"bookmarks:{frame.header('bookmark')}", "transaction:t")
    assert (ledger.got("c1"), ledger.count()) == ("b", 3)
    ledger.write("c1", "COMMIT", "transaction:t")
    assert ledger.count() == 2


def test_A_39_an_abort_gives_it_back() -> None:
    ledger = opened()
    (mark,) = bookmarks(held(ledger, "a"))
    ledger.write("c1", "BEGIN", "transaction:t")
    ledger.settle("c1", "ACK", f"bookmarks:{mark}", "transaction:t")
    ledger.write("c1", "ABORT", "transaction:t")
    (frame,) = ledger.messages("c1")
    assert (frame.header("bookmark"), frame.header("redelivered")) == (mark, "true")


@pytest.mark.parametrize("names", ["filter", "bookmarks"])
def test_A_40_what_nobody_has_waits_for_the_commit(names: str) -> None:
    ledger = opened()
    first, second = bookmarks(held(ledger, "ab", "c1", "number:1"))
    ledger.lose("c1")
    choice = "filter:number = '1'" if names == "filter" else f"bookmarks:{first},{second}"
    for end, left in (("ABORT", 2), ("COMMIT", 0)):
        ledger.write("c2", "BEGIN", "transaction:t")
        ledger.settle("c2", "ACK", choice, "transaction:t")
        assert ledger.count() == 2
        ledger.write("c2", end, "transaction:t", "receipt:r")
        assert [frame.command for frame in ledger.frames("c2")] == ["RECEIPT"]
        assert ledger.count() == left


def test_A_40_a_queue_that_is_gone_at_the_commit() -> None:
    ledger = opened()
    ledger.send("a")
    ledger.write("c2", "BEGIN", "transaction:t")
    ledger.settle("c2", "ACK", "filter:TRUE = TRUE", "transaction:t")
    broker = ledger.life.broker.broker
    broker.registry.delete_queue(broker.queues["q"], ledger.life.broker.loop.clock_ms())
    ledger.write("c2", "COMMIT", "transaction:t", "receipt:r")
    assert [frame.command for frame in ledger.frames("c2")] == ["RECEIPT"]


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
    ledger = opened()
    ledger.send("a")
    ledger.settle("c1", "ACK", *headers)
    assert text.lower() in ledger.error("c1").lower()
    assert ledger.count() == 1


def test_A_39_A_40_the_queue_must_be_named_and_be_there() -> None:
    ledger = opened()
    ledger.write("c1", "ACK", "bookmarks:1")
    assert "needs a destination header" in ledger.error("c1")
    ledger.settle("c2", "ACK", "bookmarks:1", to="nobody")
    assert "There is no queue nobody" in ledger.error("c2")
    assert "nobody" not in ledger.life.broker.broker.addresses
    ledger.settle("c3", "ACK", "bookmarks:1", to="q::other")
    assert "There is no queue q" in ledger.error("c3")


def test_A_39_A_40_a_queue_without_amps() -> None:
    ledger = Ledger("")
    ledger.send("a")
    ledger.settle("c1", "ACK", "filter:a = 1")
    assert "Queue q has no attribute of AMPS" in ledger.error("c1")


# ---- a subscription is changed in place ----------------------------------------------------------


def test_A_67_the_backlog_shrinks_and_leases_stay() -> None:
    ledger = opened("leasing='sublet' max-per-subscription-backlog='10'")
    ledger.send("abcdefghijkl")
    ledger.subscribe("c1", "max-backlog:10")
    frames = ledger.messages("c1")
    assert len(frames) == 10
    ledger.subscribe("c1", "max-backlog:5", "replace:true")
    for frame in frames[:5]:
        ledger.write("c1", "ACK", f"id:{frame.header('ack')}")
        assert ledger.got("c1") == ""
    assert ledger.delivering() == 5
    ledger.write("c1", "ACK", f"id:{frames[5].header('ack')}")
    assert ledger.got("c1") == "k"


def test_A_67_the_backlog_grows() -> None:
    ledger = opened()
    ledger.send("abc")
    ledger.subscribe("c1")
    assert ledger.got("c1") == "a"
    ledger.subscribe("c1", MANY, "replace:true")
    assert ledger.got("c1") == "bc"


def test_A_67_without_a_backlog_it_is_one_again() -> None:
    ledger = opened()
    ledger.subscribe("c1", MANY)
    ledger.subscribe("c1", "replace:true")
    ledger.send("ab")
    assert ledger.got("c1") == "a"


@pytest.mark.parametrize("groups", ["", "group-type='STANDARD'", "group-type='SHARED_GROUPS'"])
def test_A_67_another_selector(groups: str) -> None:
    """It sees what it passed over before, and not what it wanted before."""
    ledger = opened(f"{SUBLET} {groups}")
    ids(ledger, "1212")
    ledger.subscribe("c1", MANY, "selector:number = '1'")
    assert ledger.got("c1") == "11"
    ledger.subscribe("c1", MANY, "selector:number = '2'", "replace:true")
    assert ledger.got("c1") == "22"
    ids(ledger, "12")
    assert ledger.got("c1") == "2"
    ledger.subscribe("c1", MANY, "replace:true")
    assert ledger.got("c1") == "1"


@pytest.mark.parametrize("kind", ["STANDARD", "SHARED_GROUPS"])
def test_A_67_its_groups_stay_with_it(kind: str) -> None:
    ledger = opened(f"{SUBLET} group-type='{kind}' fairness-model='round-robin'")
    ledger.subscribe("c1", MANY, "selector:number = '1'")
    ledger.subscribe("c2", MANY)
    ledger.send("a", "JMSXGroupID:g", "number:1")
    assert ledger.got("c1") == "a"
    ledger.send("b", "JMSXGroupID:g", "number:2")
    assert (ledger.got("c1"), ledger.got("c2")) == ("", "")
    ledger.subscribe("c1", MANY, "replace:true")
    assert (ledger.got("c1"), ledger.got("c2")) == ("b", "")


def test_A_67_on_a_plain_queue() -> None:
    ledger = Ledger("")
    ids(ledger, "12")
    ledger.subscribe("c1", "selector:number = '2'")
    assert ledger.got("c1") == "2"
    ledger.subscribe("c1", "replace:true")
    assert ledger.got("c1") == "1"


def test_A_67_proportional_counts_the_new_backlog() -> None:
    ledger = opened("fairness-model='proportional' max-per-subscription-backlog='10'")
    ledger.subscribe("c1", "max-backlog:10")
    ledger.subscribe("c2", "max-backlog:4")
    ledger.send("aab")
    assert (ledger.got("c1"), ledger.got("c2")) == ("ab", "a")
    ledger.subscribe("c1", "max-backlog:2", "replace:true")
    ledger.send("c")
    assert (ledger.got("c1"), ledger.got("c2")) == ("", "c")


def test_A_67_a_new_id_is_a_new_subscription() -> None:
    ledger = opened()
    ledger.send("a")
    ledger.subscribe("c1", "replace:true")
    assert ledger.got("c1") == "a"


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
    ledger = opened()
    ledger.subscribe("c1", *first)
    ledger.subscribe("c1", *second)
    assert text.lower() in ledger.error("c1").lower()


def test_A_67_neither_the_queue_nor_the_way_of_acknowledging_changes() -> None:
    ledger = opened()
    ledger.subscribe("c1")
    ledger.subscribe("c1", "replace:true", to="dead")
    assert "destination was /queue/q and cannot become /queue/dead" in ledger.error("c1")
    ledger.subscribe("c2")
    ledger.subscribe("c2", "replace:true", ack="client")
    assert "ack was client-individual and cannot become client" in ledger.error("c2")
    ledger.write("c3", "SUBSCRIBE", "id:1", "destination:/topic/t", FLAT)
    ledger.write("c3", "SUBSCRIBE", "id:1", "destination:/topic/t", FLAT, "replace:true")
    assert "has a queue of its own" in ledger.error("c3")
