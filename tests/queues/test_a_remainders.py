"""What the RECEIPT of an ACK with bookmarks tells (row A-39, rows.py): which of them are on the queue all the same, and
how many messages nobody has.
"""

from __future__ import annotations

import pytest

from tests.queues.durable_bench import DurableBench, bookmarks

pytestmark = pytest.mark.wire

SUBLET = "leasing='sublet' max-per-subscription-backlog='9'"
STRICT = "leasing='strict' max-per-subscription-backlog='9'"
PAGING = "<max-size-messages>2</max-size-messages><address-full-policy>PAGE</address-full-policy>"
MANY = "max-backlog:9"


def held(bench: DurableBench, bodies: str) -> list[str]:
    """The bookmarks of messages that a consumer holds."""
    bench.send(bodies)
    bench.subscribe("c1", MANY)
    return bookmarks(bench.messages("c1"))


def told(bench: DurableBench, name: str) -> tuple[str | None, str | None]:
    """What the RECEIPT of the last ACK says: the bookmarks that are still there, and how many messages nobody has."""
    (frame,) = bench.frames(name)
    assert frame.command == "RECEIPT"
    return frame.header("kept"), frame.header("ready")


def test_A_39_the_receipt_tells_what_is_left() -> None:
    bench = DurableBench(SUBLET)
    bench.send("abcd")
    bench.subscribe("c1", "max-backlog:2")
    (first, _) = bookmarks(bench.messages("c1"))
    bench.settle("c2", "ACK", "bookmarks:0", "receipt:r")
    assert told(bench, "c2") == ("", "2")
    bench.settle("c2", "ACK", f"bookmarks:{first},{10**9}", "receipt:r")
    assert told(bench, "c2") == ("", "2")  # the third is on its way to the holder when the turn ends
    bench.settle("c2", "ACK", "bookmarks:0", "receipt:r")
    assert told(bench, "c2") == ("", "1")


def test_A_39_A_41_the_receipt_tells_what_others_need_not_give() -> None:
    bench = DurableBench(STRICT)
    first, second, third = held(bench, "abc")
    bench.settle("c2", "ACK", f"bookmarks:{third},{first}", "receipt:r")
    assert told(bench, "c2") == (f"{third},{first}", "0")
    bench.settle("c1", "ACK", f"bookmarks:{first}")
    bench.lose("c1")
    bench.settle("c2", "ACK", f"bookmarks:{third},{first}", "receipt:r")
    assert told(bench, "c2") == ("", "1")
    bench.settle("c2", "ACK", f"bookmarks:{second}", "receipt:r")
    assert told(bench, "c2") == ("", "0")


def test_A_39_the_receipt_tells_what_a_transaction_has() -> None:
    bench = DurableBench(SUBLET)
    (mark,) = held(bench, "a")
    bench.write("c1", "BEGIN", "transaction:t")
    bench.settle("c1", "ACK", f"bookmarks:{mark}", "transaction:t", "receipt:r")
    assert told(bench, "c1") == (None, None)
    bench.settle("c2", "ACK", f"bookmarks:{mark}", "receipt:r")
    assert told(bench, "c2") == (mark, "0")
    bench.write("c1", "COMMIT", "transaction:t")
    bench.settle("c2", "ACK", f"bookmarks:{mark}", "receipt:r")
    assert told(bench, "c2") == ("", "0")


def test_A_39_A_66_the_receipt_tells_what_waits_for_its_page() -> None:
    bench = DurableBench(SUBLET, settings=PAGING, retained=True)
    marks = held(bench, "abcdef")
    bench = bench.again()
    bench.settle("c1", "ACK", f"bookmarks:{marks[0]},{marks[4]}", "receipt:r")
    assert told(bench, "c1") == (marks[4], "5")
    bench.subscribe("c1", MANY)
    assert bench.got("c1") == "bcdf"
    bench.settle("c1", "ACK", f"bookmarks:{marks[0]},{marks[4]}", "receipt:r")
    assert told(bench, "c1") == ("", "0")


@pytest.mark.parametrize("frame", [("NACK",), ("ACK", "options:cancel")])
def test_A_39_A_42_of_a_cancel_it_tells_nothing(frame: tuple[str, ...]) -> None:
    bench = DurableBench(SUBLET)
    (mark,) = held(bench, "a")
    command, *options = frame
    bench.settle("c2", command, f"bookmarks:{mark}", *options, "receipt:r")
    assert told(bench, "c2") == (None, None)
