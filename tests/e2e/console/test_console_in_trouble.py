"""The console where users log in, while the broker is away, and with very many queues."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.e2e.console.screen import Screen
from tests.kit.browser import Browser, why_no_browser
from tests.kit.client import StompSocket
from tests.kit.process import WAIT_S, BrokerProcess, anycast, configuration, eventually, for_the_module, running
from tests.kit.secured import secured_broker

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))]

QUEUES = [f"q{number:05}" for number in range(10_000)]


secured = for_the_module(secured_broker)


def test_a_wrong_login_and_a_right_one(browser: Browser, secured: BrokerProcess) -> None:
    screen = Screen(browser, secured)
    screen.open("/queues")
    screen.sees("This broker requires a login.", "Log in to secured")
    screen.log_in("ann", "wrong")
    screen.sees("invalid")
    screen.log_in("ann")
    screen.sees("2 queues", "Log out")
    assert (
        screen.run("return document.cookie + JSON.stringify(sessionStorage) + JSON.stringify(localStorage)") == "{}{}"
    )
    screen.open("/queues")
    screen.sees("This broker requires a login.")


def test_a_login_that_is_kept(browser: Browser, secured: BrokerProcess) -> None:
    screen = Screen(browser, secured)
    screen.open("/queues")
    screen.log_in("ann", keep=True)
    screen.sees("2 queues")
    screen.open("/")
    screen.sees("Accepting messages.", "Log out")
    screen.press("Log out")
    screen.sees("This broker requires a login.")


def test_what_is_not_allowed_is_said(browser: Browser, secured: BrokerProcess) -> None:
    """Bob may look and change nothing."""
    screen = Screen(browser, secured)
    screen.open("/queues/jobs")
    screen.log_in("bob")
    screen.act("Pause")
    screen.press("Pause", "dialog")
    screen.sees("mops.queue.jobs.pause", "To grant it, ", '<permission type="edit" roles=')
    line = screen.run("return document.querySelector('dialog .problem code').innerText")
    assert "to grant it" not in line
    assert line.endswith(("/>", "</security-setting>"))


def test_the_broker_goes_and_comes_back(browser: Browser, tmp_path: Path) -> None:
    text = configuration()
    with running(text, tmp_path) as first:
        screen = Screen(browser, first)
        screen.open("/")
        screen.sees("Accepting messages.", "Live")
        port = first.ports["http"]
    screen.sees("The broker does not answer.", "No answer, retrying")
    with running(text.replace("127.0.0.1:0?protocols=HTTP", f"127.0.0.1:{port}?protocols=HTTP"), tmp_path):
        screen.sees("The broker answers again.", "Accepting messages.", "Live")
    browser.complaints()


def test_why_it_accepts_no_messages(screen: Screen) -> None:
    screen.open("/")
    screen.sees("Accepting messages.")
    screen.run(
        "const real = window.fetch; window.fetch = (path, more) => path === '/health/ready' ? Promise.resolve("
        "new Response(JSON.stringify({status: 'DOWN', reason: 'the disk is full'}), {status: 503})) : real(path, more)"
    )
    screen.sees("Accepting no messages: the disk is full.")


def test_one_stream_tells_what_changes(screen: Screen) -> None:
    """Nothing is asked again; a change comes by itself."""
    screen.open("/queues?sort=name")
    screen.sees("orders")
    screen.run("performance.clearResourceTimings()")
    with StompSocket(screen.broker.port) as client:
        client.connect()
        for count in (1, 2):
            client.ask("SEND", {"destination": "/queue/orders"}, b"x")
            seen = f"row.innerText.split('\\n').filter(Boolean)[2] === '{count}'"
            row = "[...document.querySelectorAll('.row-body')].find((row) => row.innerText.startsWith('orders'))"
            screen.until(f"{count} messages", f"const row = {row}; return row !== undefined && {seen}")
    asked = screen.run("return performance.getEntriesByType('resource').map((it) => it.name)")
    assert [name for name in asked if "/api/queues" in name] == []


crowded = for_the_module(partial(running, configuration(addresses="".join(map(anycast, QUEUES)))))


def test_ten_thousand_queues(browser: Browser, crowded: BrokerProcess) -> None:
    """Few of them are drawn; the last is as near as the first."""
    screen = Screen(browser, crowded)
    browser.complaints()
    screen.open("/queues?sort=name")
    screen.sees("q00000", "10\u202f000 queues")
    assert len(screen.rows("Queues")) < 100
    screen.run("const it = document.querySelector('.rows'); it.scrollTop = it.scrollHeight")
    screen.sees("q09999")
    screen.run("document.querySelector('.rows').scrollTop = 38 * 5000")
    screen.sees("q05000")
    assert len(screen.rows("Queues")) < 100
    screen.types("#filter", "q0777")
    screen.sees("10 queues")
    wanted = [f"q0777{digit}" for digit in range(10)]
    eventually("the rows", lambda: [row[0] for row in screen.rows("Queues")], lambda names: names == wanted, WAIT_S)
    screen.run("[...document.querySelectorAll('.sort')].find((it) => it.innerText.includes('Name')).click()")
    screen.until("the other order", "return document.querySelector('.row-body')?.innerText.startsWith('q07779')")
    assert browser.complaints() == []
