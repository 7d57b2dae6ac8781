"""The page of schedules in a real Chromium: what is sent regularly, when next, and how it ends."""

from __future__ import annotations

import pytest

from tests.e2e.console.screen import Screen
from tests.kit.browser import why_no_browser
from tests.kit.client import connected

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))]


def test_schedules_are_listed_and_cancelled(screen: Screen) -> None:
    """In the order of their dates; a cancel asks for the number, and leaves the others."""
    with connected(screen.broker.port) as client:
        hourly = {"AMQ_SCHEDULED_PERIOD": 3_600_000, "AMQ_SCHEDULED_REPEAT": 4}
        client.ask("SEND", {"destination": "/queue/orders", "AMQ_SCHEDULED_CRON": "0 6 1 1 *"}, b"yearly")
        client.ask("SEND", {"destination": "/queue/jobs", **hourly}, b"hourly")
    screen.open("/schedules")
    screen.sees("2 schedules")
    first, second = screen.rows("Schedules")
    assert (first[1], first[2], second[1], second[2]) == ("jobs", "every 1\u202fh, 4 more times", "orders", "0 6 1 1 *")
    assert second[0].endswith("-01-01 06:00")
    assert screen.clipped == []
    screen.press("Cancel", ".row-body")
    screen.sees("This destroys schedule ", "but not what it has sent. It cannot be undone.")
    assert screen.run("return document.getElementById('action-run').disabled"), "nothing is typed yet"
    screen.types("#action-name", first[4])
    screen.press("Cancel", "dialog")
    screen.sees("1 schedule\n")
    assert [row[1] for row in screen.rows("Schedules")] == ["orders"]
    (left,) = screen.broker.ask("GET", "/api/schedules").json["data"]
    assert left["cron"] == "0 6 1 1 *"
    screen.run("document.querySelector('dialog')?.close()")
    screen.broker.ask("DELETE", f"/api/schedules/{left['schedule']}")
    screen.open("/schedules")
    screen.sees("No schedules")
    assert screen.complaints() == []
