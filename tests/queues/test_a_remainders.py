"""What the RECEIPT of an ACK with bookmarks tells (row A-39, rows.py): which of them are on the queue all the same, and
how many messages nobody has.
"""

from __future__ import annotations

import pytest

from tests.queues.ledger import Ledger, bookmarks

pytestmark = pytest.mark.wire

SUBLET = "leasing='sublet' max-per-subscription-backlog='9'"
STRICT = "leasing='strict' max-per-subscription-backlog='9'"
PAGING = "<max-size-messages>2</max-size-messages><address-full-policy>PAGE</address-full-policy>"
MANY = "max-backlog:9"


def held(ledger: Ledger, bodies: str) -> list[str]:
    """The bookmarks of messages that a consumer holds."""
    ledger.send(bodies)
    ledger.subscribe("c1", MANY)
    return bookmarks(ledger.messages("c1"))


def told(ledger: Ledger, name: str) -> tuple[str | None, str | None]:
    """What the RECEIPT of the last ACK says: the bookmarks that are still there, and how many messages nobody has."""
    (frame,) = ledger.frames(name)
    assert frame.command == "RECEIPT"
    return frame.header("kept"), frame.header("ready")


def test_A_39_the_receipt_tells_what_is_left() -> None:
    ledger = Ledger(SUBLET)
    ledger.send("abcd")
    ledger.subscribe("c1", "max-backlog:2")
    (first, _) = bookmarks(ledger.messages("c1"))
    ledger.settle("c2", "ACK", "bookmarks:0", "receipt:r")
    assert told(ledger, "c2") == ("", "2")
    ledger.settle("c2", "ACK", f"bookmarks:{first},{10**9}", "receipt:r")
    assert told(ledger, "c2") == ("", "2")  # the third is on its way to the holder when the turn ends
    ledger.settle("c2", "ACK", "bookmarks:0", "receipt:r")
    assert told(ledger, "c2") == ("", "1")


def test_A_39_A_41_the_receipt_tells_what_others_need_not_give() -> None:
    ledger = Ledger(STRICT)
    first, second, third = held(ledger, "abc")
    ledger.settle("c2", "ACK", f"bookmarks:{third},{first}", "receipt:r")
    assert told(ledger, "c2") == (f"{third},{first}", "0")
    ledger.settle("c1", "ACK", f"bookmarks:{first}")
    ledger.lose("c1")
    ledger.settle("c2", "ACK", f"bookmarks:{third},{first}", "receipt:r")
    assert told(ledger, "c2") == ("", "1")
    ledger.settle("c2", "ACK", f"bookmarks:{second}", "receipt:r")
    assert told(ledger, "c2") == ("", "0")


def test_A_39_the_receipt_tells_what_a_transaction_has() -> None:
    ledger = Ledger(SUBLET)
    (mark,) = held(ledger, "a")
    ledger.write("c1", "BEGIN", "transaction:t")
    ledger.settle("c1", "ACK", f"bookmarks:{mark}", "transaction:t", "receipt:r")
    assert told(ledger, "c1") == (None, None)
    ledger.settle("c2", "ACK", f"bookmarks:{mark}", "receipt:r")
    assert told(ledger, "c2") == (mark, "0")
    ledger.write("c1", "COMMIT", "transaction:t")
    ledger.settle("c2", "ACK", f"bookmarks:{mark}", "receipt:r")
    assert told(ledger, "c2") == ("", "0")


def test_A_39_A_66_the_receipt_tells_what_waits_for_its_page() -> None:
    ledger = Ledger(SUBLET, settings=PAGING, retained=True)
    marks = held(ledger, "abcdef")
    ledger = ledger.again()
    ledger.settle("c1", "ACK", f"bookmarks:{marks[0]},{marks[4]}", "receipt:r")
    assert told(ledger, "c1") == (marks[4], "5")
    ledger.subscribe("c1", MANY)
    assert ledger.got("c1") == "bcdf"
    ledger.settle("c1", "ACK", f"bookmarks:{marks[0]},{marks[4]}", "receipt:r")
    assert told(ledger, "c1") == ("", "0")


@pytest.mark.parametrize("frame", [("NACK",), ("ACK", "options:cancel")])
def test_A_39_A_42_of_a_cancel_it_tells_nothing(frame: tuple[str, ...]) -> None:
    ledger = Ledger(SUBLET)
    (mark,) = held(ledger, "a")
    command, *options = frame
    ledger.settle("c2", command, f"bookmarks:{mark}", *options, "receipt:r")
    assert told(ledger, "c2") == (None, None)
