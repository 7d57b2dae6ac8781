"""The life of a message from the events of a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from artemis_py.message import (
    COPIED,
    COPIED_QUEUE,
    COPIED_REASON,
    UNKNOWN,
)
from artemis_py.storage.format.log_events import (
    Attempted,
    Changed,
    Consumer,
    Delivered,
    Event,
    PageOpened,
    Published,
    Purged,
    Recalled,
    Repeated,
    ScheduledDue,
    Session,
    Settled,
    Started,
)
from artemis_py.tracing.lives import LIVES_MAX, Lives
from tests.unit.tracing.told import at, published

NUMBER = 7


QUEUE = Changed(*at(1), "queue", {"id": 1, "name": "orders"})
SENDER = Session(*at(2), 50, "10.0.0.1:5", "anna", "shop", "STOMP 1.2")
READER = Session(*at(3), 51, "10.0.0.2:6", "", "", "STOMP 1.2")
CONSUMER = Consumer(*at(4), 60, 51, 1, "", "", "client", "", 3)


def told(*events: Event, ids: Sequence[int] = (NUMBER,), lives: Lives | None = None) -> list[tuple[str, str]]:
    lives = lives or Lives(set(ids))
    return [(one.what, one.who) for event in events for one in lives.take(event)]


def test_a_whole_life() -> None:
    lives = Lives({NUMBER})
    events = [
        QUEUE, SENDER, READER, CONSUMER,
        published(5, NUMBER), published(6, 8),
        Delivered(*at(7), 1, (7, 8), 60),
        Attempted(*at(8), 1, 7, 1, 3008, 60, "nacked"),
        ScheduledDue(*at(9), 1, (7,)),
        Delivered(*at(10), 1, (7,), 60),
        Settled(*at(11), 1, "acked", (7,), 60),
    ]  # fmt: skip
    found = [moment for event in events for moment in lives.take(event)]
    assert [(one.what, one.who) for one in found] == [
        ("arrived", "10.0.0.1:5 (client-id shop, user anna)"),
        ("delivered", "consumer 3 of 10.0.0.2:6"),
        ("failed", "consumer 3 of 10.0.0.2:6"),
        ("due", ""),
        ("delivered", "consumer 3 of 10.0.0.2:6"),
        ("acknowledged", "consumer 3 of 10.0.0.2:6"),
    ]
    assert found[0].text == "sent to a, on orders, 19 bytes, priority 4"
    assert found[2].text == "delivery 1 failed: NACK; the next waits 2 s"
    assert {one.message_id for one in found} == {NUMBER}
    assert lives.still_there() == []


@pytest.mark.parametrize("provenance", [UNKNOWN, COPIED, COPIED + COPIED_QUEUE + COPIED_REASON])
def test_its_copies_are_followed(provenance: int) -> None:
    lives = Lives({NUMBER})
    copy: dict[str, Any] = {"_AMQ_ORIG_MESSAGE_ID": "7", "_AMQ_ORIG_QUEUE": "orders", "reason": "max_deliveries"}
    of_copy: dict[str, Any] = {"_AMQ_ORIG_MESSAGE_ID": "9", "_AMQ_ORIG_ADDRESS": "DLA"}
    found = told(
        QUEUE, published(5, NUMBER), Settled(*at(6), 1, "dead", (7,)),
        published(7, 9, (2,), provenance=provenance, **copy),
        published(8, 10, (1,), provenance=provenance, **of_copy), published(9, 11, (1,), _AMQ_ORIG_MESSAGE_ID="12"),
        published(9, 13, (1,), **copy), lives=lives,
    )  # fmt: skip
    assert [what for what, _ in found] == ["arrived", "dead", "copied", "copied"]
    assert lives.ids == {7, 9, 10}
    assert [(one.message_id, one.queue) for one in lives.still_there()] == [(9, "#2"), (10, "orders")]


def test_the_broker_knows_the_names_of_queues_that_the_log_does_not_name() -> None:
    lives = Lives({NUMBER}, name_of=lambda number: "late" if number == 2 else "")
    (arrived,) = lives.take(published(5, NUMBER, (2, 3)))
    assert "on late, #3" in arrived.text


def test_each_end() -> None:
    for reason, what in (("expired", "expired"), ("superseded", "replaced"), ("purged", "purged"), ("new", "new")):
        assert told(published(5, NUMBER), Settled(*at(6), 1, reason, (7,)))[1] == (what, "")
    assert [what for what, _ in told(published(5, NUMBER), Changed(*at(6), "queue-deleted", {"id": 1}))] == [
        "arrived",
        "deleted",
    ]


def test_a_consumer_that_leaves_and_a_restart() -> None:
    left = Consumer(*at(8), 60, 51, 1, "", "", "client", "lost")
    assert told(CONSUMER, published(5, NUMBER), Delivered(*at(6), 1, (7,), 60), left)[-1][0] == "returned"
    start = Started(*at(80), "b", 79)
    assert told(CONSUMER, published(5, NUMBER), Delivered(*at(6), 1, (7,), 60), start)[-1][0] == "returned"


def test_what_the_log_tells_late() -> None:
    repeated = Repeated(*at(90), Published(*at(90), published(5, 7, (1,)).kept, 0))
    assert told(repeated, Settled(*at(91), 1, "acked", (7,)))[0][0] == "known"
    assert told(published(5, NUMBER), repeated) == told(published(5, NUMBER))
    assert [what for what, _ in told(published(5, NUMBER), Recalled(*at(9), published(5, 7, (3,)).kept))] == [
        "arrived",
        "recalled",
    ]


def test_a_page_that_goes() -> None:
    opened = PageOpened(*at(4), 1, 1, 10, "a")
    purged = Purged(*at(9), 1, 1, 1, (), "purged", 1, 10)
    assert told(opened, published(5, NUMBER, place=12), purged)[-1][0] == "purged"
    kept_there = Purged(*at(9), 1, 1, 1, (12,), "purged", 1, 10)
    assert [what for what, _ in told(opened, published(5, NUMBER, place=12), kept_there)] == ["arrived"]


def test_what_needs_no_decoding() -> None:
    lives = Lives({7})
    assert lives.wants((7).to_bytes(8, "little"))
    assert not lives.wants((8).to_bytes(8, "little"))
    assert lives.wants((8).to_bytes(8, "little") + b"\n_AMQ_ORIG_MESSAGE_ID:7\n")
    assert lives.may_be_among(None)
    assert lives.may_be_among([(1, 2), (6, 9)])
    assert not lives.may_be_among([(1, 6), (8, 9)])


def test_found_by_headers_and_only_so_many() -> None:
    lives = Lives(set(), lambda message: message.lookup("x") == "1")
    assert told(published(5, NUMBER, x="1"), published(6, 8, x="2"), lives=lives) == [("arrived", "")]
    for number in range(LIVES_MAX + 4):
        lives.take(published(100 + number, 100 + number, x="1"))
    assert lives.left_out == 5
