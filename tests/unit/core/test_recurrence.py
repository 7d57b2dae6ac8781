"""Dates of messages that are sent again and again, and what their headers may say."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from artemis_py.core.recurrence import (
    JOB,
    SCHEDULED,
    RecurrenceError,
    fall_due,
    next_of_cron,
    recurrence_of,
    waiting_head,
)
from artemis_py.message import Head, encode_headers

HOUR_MS = 3_600_000


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("cron", "after", "then"),
    [
        ("* * * * *", "2026-01-31T23:59:00", "2026-02-01T00:00:00"),
        ("0 9 * * MON-FRI", "2026-11-27T09:00:00", "2026-11-30T09:00:00"),
        ("*/15 8-17 * * *", "2026-11-27T17:45:01", "2026-11-28T08:00:00"),
        ("30 4 1,15 * 5", "2026-11-02T00:00:00", "2026-11-06T04:30:00"),
        ("0 0 29 2 *", "2026-01-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 0 L * *", "2026-02-01T00:00:00", "2026-02-28T00:00:00"),
    ],
)
def test_dates_of_cron(cron: str, after: str, then: str) -> None:
    assert next_of_cron(cron, at(after)) == at(then)


def test_they_are_those_of_the_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    assert next_of_cron("0 9 * * *", at("2026-07-01T00:00:00")) == at("2026-07-01T07:00:00")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize(("cron", "hours"), [("30 2 * * *", 24), ("30 * * * *", 1)])
def test_dates_keep_their_distance_when_clocks_change(
    zone: str, cron: str, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a night in which an hour comes twice, what is due each hour is due once in it."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    now_ms = begin_ms = at("2026-01-01T00:00:00")
    dates = []
    while now_ms < begin_ms + 366 * 24 * HOUR_MS:
        now_ms = next_of_cron(cron, now_ms)
        dates.append(now_ms)
    distances_ms = [after - before for before, after in pairwise(dates)]
    assert min(distances_ms) >= max(hours - 1, 0.5) * HOUR_MS
    assert max(distances_ms) <= (hours + 1) * HOUR_MS
    assert abs(len(dates) - 366 * 24 / hours) < 3


def test_a_date_in_the_hour_that_comes_again_is_not_due_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    again_ms = at("2026-10-25T01:15:00")  # 02:15, for the second time
    assert next_of_cron("*/30 * * * *", again_ms) == at("2026-10-25T02:00:00")


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"AMQ_SCHEDULED_CRON": "every day"}, "AMQ_SCHEDULED_CRON is not understood"),
        ({"AMQ_SCHEDULED_CRON": "0 0 30 2 *"}, "AMQ_SCHEDULED_CRON is not understood"),
        ({"AMQ_SCHEDULED_CRON": "0 0 0 * * *"}, "5 fields are needed, and it has 6"),
        ({"AMQ_SCHEDULED_PERIOD": "x"}, "AMQ_SCHEDULED_PERIOD is not a number: 'x'"),
        ({"AMQ_SCHEDULED_PERIOD": "99"}, "is 99 ms; allowed: 100 ms or more"),
        ({"AMQ_SCHEDULED_PERIOD": "-5"}, "is -5 ms; allowed: 100 ms or more"),
        ({"AMQ_SCHEDULED_REPEAT": "3"}, "AMQ_SCHEDULED_REPEAT needs AMQ_SCHEDULED_PERIOD"),
        ({"AMQ_SCHEDULED_REPEAT": "-2", "AMQ_SCHEDULED_PERIOD": "1000"}, "or -1: until it is cancelled"),
    ],
)
def test_what_is_refused(headers: dict[str, str], words: str) -> None:
    with pytest.raises(RecurrenceError, match=words):
        recurrence_of(headers)


@pytest.mark.parametrize("headers", [{}, {"AMQ_SCHEDULED_CRON": " "}, {"AMQ_SCHEDULED_REPEAT": "0"}])
def test_what_is_sent_once(headers: dict[str, str]) -> None:
    assert recurrence_of(headers) is None


def waiting(due_ms: int, **headers: str) -> Head:
    block = encode_headers([("destination", "/queue/q"), *headers.items(), ("mine", "1")])
    return waiting_head(Head(block, "q", 7, True, routing_type="ANYCAST"), "q", "$schedules", due_ms)


def test_what_is_sent_has_the_headers_of_its_sender_and_the_name_of_its_schedule() -> None:
    head = waiting(1000, AMQ_SCHEDULED_CRON="* * * * *", _AMQ_DUPL_ID="once")
    due = fall_due(head, 5, 1000)
    assert due.head.properties == {"destination": "/queue/q", "mine": "1", JOB: "5"}
    assert (due.address, due.queue, due.head.routing_type, due.head.priority) == ("q", None, "ANYCAST", 7)
    assert due.again is not None
    assert due.again.due_ms == 60_000
    later = fall_due(due.again.head, 9, 60_000)
    assert later.head.properties[JOB] == "5"


def test_what_a_consumer_sends_on_is_a_schedule_of_its_own() -> None:
    head = waiting(1000, AMQ_SCHEDULED_CRON="* * * * *", scheduledJobId="77")
    due = fall_due(head, 5, 1000)
    assert due.head.properties[JOB] == "5"


def test_clients_cannot_forge_it() -> None:
    from artemis_py.stomp.wire.dialect import passes_through

    assert not passes_through(SCHEDULED)
