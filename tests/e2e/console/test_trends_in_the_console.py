"""The console says where to look: the queue that grows, by name, with curves of the time before it was opened."""

from __future__ import annotations

import json
import threading
import time
import urllib.request

import pytest

from tests.e2e.console.screen import Screen
from tests.kit.browser import why_no_browser
from tests.kit.client import StompSocket
from tests.kit.process import WAIT_S, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))]


def _send(port: int, over: threading.Event) -> None:
    with StompSocket(port) as client:
        client.connect()
        while not over.wait(0.1):
            client.ask("SEND", {"destination": "/queue/jobs"}, b"more")


def _moments(screen: Screen) -> list[dict[str, int]]:
    with urllib.request.urlopen(f"{screen.url}/api/queues/jobs/history", timeout=WAIT_S) as answer:
        return list(json.load(answer)["data"])


def test_a_queue_that_grows_is_named_and_its_past_is_there(screen: Screen) -> None:
    over = threading.Event()
    sender = threading.Thread(target=_send, args=(screen.broker.port, over))
    sender.start()
    try:
        screen.open("/")
        screen.sees("jobs has messages and no consumer", "Need a look", "growing", "never drained")
        eventually("an older curve", lambda: _moments(screen), lambda moments: len(moments) > 2, WAIT_S)
        begun_ms = 1000 * time.time()
        screen.open("/queues/jobs")
        screen.sees("Why does it grow?", "come in and 0/s are acknowledged")
        screen.sees("Drained\nnever")
        before = f"(document.querySelector('.chart')?.points ?? []).filter((one) => one.at < {begun_ms})"
        screen.until("a curve of what was before", f"return {before}.some((one) => one.messagesAdded > 1)")
        screen.go("/queues?show=Need%20a%20look")
        screen.until("its depth", "return /L/.test(document.querySelector('.spark .fill')?.getAttribute('d'))")
        assert [row[0] for row in screen.rows("Queues")] == ["jobs"]
        assert screen.complaints() == []
    finally:
        over.set()
        sender.join()
