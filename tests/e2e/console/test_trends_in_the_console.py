"""The console says where to look: the queue that grows, by name, with curves of the time before it was opened; and what
repeats itself is one line.
"""

from __future__ import annotations

import json
import time

import pytest

from tests.e2e.console.screen import Screen
from tests.kit.browser import why_no_browser
from tests.kit.client import connected
from tests.kit.meanwhile import meanwhile
from tests.kit.process import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))]


def test_a_queue_that_grows_is_named_and_its_past_is_there(screen: Screen) -> None:
    with (
        connected(screen.broker.port) as client,
        meanwhile(lambda: client.ask("SEND", {"destination": "/queue/jobs"}, b"more"), pause_s=0.1),
    ):
        screen.open("/")
        screen.sees("jobs has messages and no consumer", "Need attention", "growing", "never drained")
        screen.browser.go("about:blank")
        eventually(
            "an older curve",
            lambda: len(screen.broker.ask("GET", "/api/queues/jobs/history").json["data"]),
            lambda count: count > 2,
        )
        begun_ms = 1000 * time.time()
        screen.open("/queues/jobs")
        screen.sees("Why does it grow?", "come in and 0/s are acknowledged")
        screen.sees("Drained\nnever")
        before = f"(document.querySelector('.chart')?.points ?? []).filter((one) => one.at < {begun_ms})"
        screen.until("a curve of what was before", f"return {before}.some((one) => one.messagesAdded > 1)")
        screen.go("/queues?show=Need%20attention")
        screen.until("its depth", "return /L/.test(document.querySelector('.spark .fill')?.getAttribute('d'))")
        assert [row[0] for row in screen.rows("Queues")] == ["jobs"]
        for width in (1280, 390):
            screen.browser.size(width, 900, "light")
            screen.until("another width", f"return innerWidth === {width}")
            assert screen.clipped == []
        screen.browser.size(1440, 900, "light")
        assert screen.complaints() == []


def test_what_repeats_itself_is_one_event(screen: Screen) -> None:
    screen.open("/events")
    screen.sees("Repeated events are one line", "Live")
    with (
        connected(screen.broker.port) as client,
        meanwhile(lambda: client.ask("SEND", {"destination": "/queue/ring"}, b"one more"), pause_s=0.05),
    ):
        screen.sees("times since")
    (row,) = screen.run(
        "return [...document.querySelectorAll('.stop')].map((it) => it.innerText)"
        ".filter((it) => it.includes('Messages dropped'))"
    )
    assert "queue ring" in row
    module = "import(document.querySelector('script[src$=\"main.js\"]').src.replace('main', 'events'))"
    events = [
        {"type": "MESSAGES_DROPPED", "queue": "a", "at": 1, "id": "1", "count": 5},
        {"type": "MESSAGES_DROPPED", "queue": "b", "at": 2, "id": "2"},
        {"type": "CONSUMER_CREATED", "queue": "a", "at": 3, "id": "3"},
        {"type": "MESSAGES_DROPPED", "queue": "a", "at": 4, "id": "4"},
        {"type": "CONSUMER_CREATED", "queue": "a", "at": 5, "id": "5"},
        {"type": "MESSAGES_DROPPED", "queue": "a", "at": 6, "id": "6", "count": 2},
    ]
    rows = screen.run(
        f"return {module}.then((it) => {json.dumps(events)}.reduce((all, one) => it.gathered(all, one, 3), []))"
    )
    assert [(row["at"], row.get("times"), row.get("count"), row.get("since")) for row in rows] == [
        (6, 3, 8, 1), (5, None, None, None), (3, None, None, None),
    ]  # fmt: skip
    repeated = json.dumps([{**events[1], "at": 7}, {**events[1], "at": 8}, {**events[1], "at": 9, "count": 2}])
    (row,) = screen.run(f"return {module}.then((it) => {repeated}.reduce((all, one) => it.gathered(all, one, 3), []))")
    assert (row["times"], row["count"]) == (3, 4), "those without a count are one each"
