"""What the RECEIPT of an ACK with bookmarks tells (row A-39, rows.py): which of them are on the queue all the same, and
how many messages nobody has.
"""

from __future__ import annotations

import pytest

from tests.kit.bench import FLAT
from tests.kit.crash.retained import Archive
from tests.kit.life import Life
from tests.kit.replays import QUEUE, bookmarks
from tests.queues.test_a_acknowledging import MANY, STRICT, SUBLET, held

pytestmark = pytest.mark.wire

PAGING = "<max-size-messages>2</max-size-messages><address-full-policy>PAGE</address-full-policy>"


def told(bench: Life, name: str) -> tuple[str | None, str | None]:
    """What the RECEIPT of the last ACK says: the bookmarks that are still there, and how many messages nobody has."""
    (frame,) = bench.frames(name)
    assert frame.command == "RECEIPT"
    return frame.header("kept"), frame.header("ready")


def test_A_39_the_receipt_tells_what_is_left() -> None:
    bench = Life(SUBLET)
    bench.send_all("abcd")
    bench.subscribe("c1", FLAT, "max-backlog:2")
    (first, _) = bookmarks(bench.messages("c1"))
    bench.write("c2", "ACK", QUEUE, "bookmarks:0", "receipt:r")
    assert told(bench, "c2") == ("", "2")
    bench.write("c2", "ACK", QUEUE, f"bookmarks:{first},{10**9}", "receipt:r")
    assert told(bench, "c2") == ("", "2")  # the third is on its way to the holder when the turn ends
    bench.write("c2", "ACK", QUEUE, "bookmarks:0", "receipt:r")
    assert told(bench, "c2") == ("", "1")


def test_A_39_A_41_the_receipt_tells_what_others_need_not_give() -> None:
    bench = Life(STRICT)
    first, second, third = bookmarks(held(bench, "abc"))
    bench.write("c2", "ACK", QUEUE, f"bookmarks:{third},{first}", "receipt:r")
    assert told(bench, "c2") == (f"{third},{first}", "0")
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{first}")
    bench.lose("c1")
    bench.write("c2", "ACK", QUEUE, f"bookmarks:{third},{first}", "receipt:r")
    assert told(bench, "c2") == ("", "1")
    bench.write("c2", "ACK", QUEUE, f"bookmarks:{second}", "receipt:r")
    assert told(bench, "c2") == ("", "0")


def test_A_39_the_receipt_tells_what_a_transaction_has() -> None:
    bench = Life(SUBLET)
    (mark,) = bookmarks(held(bench, "a"))
    bench.write("c1", "BEGIN", "transaction:t")
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{mark}", "transaction:t", "receipt:r")
    assert told(bench, "c1") == (None, None)
    bench.write("c2", "ACK", QUEUE, f"bookmarks:{mark}", "receipt:r")
    assert told(bench, "c2") == (str(mark), "0")
    bench.write("c1", "COMMIT", "transaction:t")
    bench.write("c2", "ACK", QUEUE, f"bookmarks:{mark}", "receipt:r")
    assert told(bench, "c2") == ("", "0")


def test_A_39_A_66_the_receipt_tells_what_waits_for_its_page() -> None:
    bench = Life(SUBLET, settings=PAGING, archive=Archive())
    marks = bookmarks(held(bench, "abcdef"))
    bench = bench.again()
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{marks[0]},{marks[4]}", "receipt:r")
    assert told(bench, "c1") == (str(marks[4]), "5")
    bench.subscribe("c1", FLAT, MANY)
    assert bench.got("c1") == list("bcdf")
    bench.write("c1", "ACK", QUEUE, f"bookmarks:{marks[0]},{marks[4]}", "receipt:r")
    assert told(bench, "c1") == ("", "0")


@pytest.mark.parametrize("frame", [("NACK",), ("ACK", "options:cancel")])
def test_A_39_A_42_of_a_cancel_it_tells_nothing(frame: tuple[str, ...]) -> None:
    bench = Life(SUBLET)
    (mark,) = bookmarks(held(bench, "a"))
    command, *options = frame
    bench.write("c2", command, QUEUE, f"bookmarks:{mark}", *options, "receipt:r")
    assert told(bench, "c2") == (None, None)
