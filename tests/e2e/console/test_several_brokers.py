"""One console of several brokers: what a page of one broker may ask another, and what somebody sees of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from tests.e2e.console.screen import Screen
from tests.e2e.pair import Pair
from tests.kit.browser import Browser, why_no_browser
from tests.kit.client import connected
from tests.kit.http import Reply, ask
from tests.kit.process import HTTP, STOMP, BrokerProcess, configuration, eventually, for_the_module, running
from tests.kit.secured import USERS, basic, secured_broker

pytestmark = pytest.mark.e2e
needs_browser = pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))

LISTED: Final = "https://ops.example"
ADDRESS: Final = '<address name="orders"><anycast><queue name="orders"/></anycast></address>'


own = for_the_module(partial(running, configuration(name="own", addresses=ADDRESS)))
"""The broker that serves the page; other pages may not ask it."""


@pytest.fixture(scope="module")
def other(own: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One that requires a login, and lists the page of ``own``."""
    origins = f"{HTTP};allowedOrigins={own.url},{LISTED}:443"
    with secured_broker(tmp_path_factory.mktemp("other"), http=origins) as broker:
        yield broker


# ---- CORS, from outside ----------------------------------------------------------------------------------------------


def preflight(broker: BrokerProcess, origin: str, path: str = "/api/queues/jobs/pause") -> Reply:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    return broker.ask("OPTIONS", path, **{"Origin": origin, **asked})


def test_a_listed_page_may_ask_with_a_login(other: BrokerProcess) -> None:
    reply = preflight(other, LISTED)
    headers = reply.headers
    assert (reply.status, headers["Access-Control-Allow-Origin"], headers["Vary"]) == (204, LISTED, "Origin")
    assert "POST" in headers["Access-Control-Allow-Methods"]
    assert "Authorization" in headers["Access-Control-Allow-Headers"]
    login = {"Origin": LISTED, "Authorization": basic("ann")}
    reply = other.ask("GET", "/api/queues", **login)
    assert (reply.status, reply.headers["Access-Control-Allow-Origin"]) == (200, LISTED)
    reply = other.ask("GET", "/api/queues", Origin=LISTED)
    assert (reply.status, reply.headers["Access-Control-Allow-Origin"]) == (401, LISTED), "the page can tell why"


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example", "http://ops.example", "https://ops.example:8443", "https://ops.example.evil.example",
        "https://a.ops.example", "null", "*", "",
    ],
)  # fmt: skip
def test_others_may_not(other: BrokerProcess, origin: str) -> None:
    headers = {"Origin": origin, "Authorization": basic("ann")}
    for reply in (
        preflight(other, origin),
        other.ask("GET", "/api/queues", **headers),
        other.ask("POST", "/api/queues/jobs/pause", **headers),
    ):
        assert reply.status == 403, reply.body
        assert "allowedOrigins" in reply.body.decode()
        assert "Access-Control-Allow-Origin" not in reply.headers
        assert reply.headers["Vary"] == "Origin"
    queue = other.ask("GET", "/api/queues/jobs", Authorization=basic("ann"))
    assert queue.json["paused"] is False


def test_no_answer_is_for_any_origin_or_for_remembered_logins(other: BrokerProcess) -> None:
    port = other.ports["http"]
    replies = [
        preflight(other, LISTED),
        preflight(other, LISTED, "/nothing"),
        preflight(other, LISTED, "/api/jolokia"),
        *(ask(port, "GET", path, Origin=LISTED) for path in ("/ui/", "/metrics", "/health", "/nothing")),
        ask(port, "GET", "/api/jolokia/version", Origin=LISTED, Authorization=basic("ann")),
    ]
    for reply in replies:
        assert "Access-Control-Allow-Credentials" not in reply.headers
        assert reply.headers.get_all("Access-Control-Allow-Origin") == [LISTED]
    plain = ask(port, "GET", "/health/live")
    assert plain.headers["Vary"] == "Origin", "a cache must not give this answer to a page"
    assert "Access-Control-Allow-Origin" not in plain.headers


def test_it_is_off_unless_it_is_configured(own: BrokerProcess) -> None:
    assert preflight(own, LISTED).status == 403
    reply = own.ask("GET", "/api/queues")
    assert not {"Vary", "Access-Control-Allow-Origin"} & set(reply.headers)


def test_a_name_that_resolves_to_the_broker_is_still_refused(other: BrokerProcess) -> None:
    """The page may ask and read the refusal; a listed origin is no leave for other names of the broker."""
    headers = {"Host": "rebound.example", "Origin": LISTED, "Authorization": basic("ann")}
    reply = other.ask("GET", "/api/queues", **headers)
    assert (reply.status, "allowedHosts" in reply.body.decode()) == (403, True)
    assert reply.headers["Access-Control-Allow-Origin"] == LISTED


# ---- in a browser ----------------------------------------------------------------------------------------------------


def card_says(screen: Screen, broker: str, *texts: str) -> None:
    for text in texts:
        script = (
            f"return [...document.querySelectorAll('.fleet .card')].some((it) => it.innerText.includes('{broker}')"
            f" && it.innerText.includes({json.dumps(text)}))"
        )
        screen.until(f"{broker}: {text}", script)


def loads_again(screen: Screen, button: str) -> None:
    """Presses a button that has the page load itself again; a script that runs meanwhile is broken off."""
    screen.run("window.isOld = true")
    screen.press(button)

    def is_new() -> bool:
        with suppress(AssertionError):
            return bool(screen.run("return window.isOld === undefined && document.readyState === 'complete'"))
        return False

    eventually("the page again", is_new, bool)


def choose(screen: Screen, url: str) -> None:
    """Picks a broker from the list on top, in one step: the page may draw the list again between two."""
    screen.run(
        f"const it = document.querySelector('.brokers'); it.value = '{url}'; it.dispatchEvent(new Event('change'))"
    )


def add(screen: Screen, url: str) -> None:
    screen.go("/brokers")
    screen.types("#broker-url", url)
    loads_again(screen, "Add a broker")


@pytest.fixture
def screen(browser: Browser, own: BrokerProcess) -> Iterator[Screen]:
    screen = Screen(browser, own)
    screen.open("/brokers")
    screen.run("localStorage.clear(); sessionStorage.clear()")
    screen.open("/brokers")
    screen.sees("Add a broker")
    yield screen
    screen.run("localStorage.clear(); sessionStorage.clear()")
    browser.complaints()


@needs_browser
def test_two_brokers_side_by_side_each_with_its_login(screen: Screen, own: BrokerProcess, other: BrokerProcess) -> None:
    with connected(own.port) as client:
        client.ask("SEND", {"destination": "orders"}, b"x")
    add(screen, other.url)
    card_says(screen, other.url.partition("://")[2], "not logged in", "It requires a login.")
    card_says(screen, own.url, "active", "own")
    screen.press("Log in", ".fleet")
    screen.sees("Log in to 127.0.0.1:", "This broker requires a login.")
    screen.log_in("ann")
    screen.sees("secured")
    card_says(screen, other.url.partition("://")[2], "active", "2 queues")
    screen.go("/queues")
    screen.sees("jobs", "locked", "2 queues")
    assert screen.run("return new URLSearchParams(location.search).get('broker')") == other.url
    screen.go("/queues/jobs")
    screen.act("Pause")
    command, curl = screen.run("return [...document.querySelectorAll('dialog code')].map((it) => it.innerText)")
    assert f"--url {other.url} --user ann" in command
    assert f"-u ann {other.url}/api/queues/jobs/pause" in curl
    screen.press("Pause", "dialog")
    screen.sees("Pause jobs: done.")
    paused = other.ask("GET", "/api/queues/jobs", Authorization=basic("ann"))
    assert paused.json["paused"] is True
    screen.browser.keys("Escape")
    screen.go("/")
    screen.press("own", ".fleet")
    screen.sees("1 queue")
    assert "Log out" not in screen.text, "a login is for one broker"
    screen.go("/queues")
    screen.sees("orders")
    there = f"?broker={quote(other.url, safe='')}#/queues"  # as Back would: that skips pages without a key pressed
    screen.run(f"history.pushState(null, '', '{there}'); dispatchEvent(new PopStateEvent('popstate'))")
    screen.sees("Log out", "secured")
    assert screen.run("return JSON.stringify(sessionStorage) + document.cookie") == "{}"


@needs_browser
def test_a_queue_that_needs_a_look_is_a_link_to_its_broker(screen: Screen, other: BrokerProcess) -> None:
    add(screen, other.url)
    screen.press("Log in", ".fleet")
    screen.log_in("ann")
    with connected(other.port, login="ann", passcode=USERS["ann"]) as client:
        client.ask("SEND", {"destination": "locked"}, b"x")
    screen.go("/brokers")
    card_says(screen, other.url.partition("://")[2], "locked", "no consumer")
    screen.press("own", ".fleet")
    screen.until("the other page", "return !location.search")
    screen.press("locked", ".fleet")
    screen.sees("Why", "locked")
    assert "/queues/locked" in screen.run("return location.href")


@needs_browser
def test_why_a_broker_is_unreachable(browser: Browser, own: BrokerProcess, tmp_path: Path) -> None:
    """One refuses this page, and one does not answer; the configuration names both."""
    nobody = "http://127.0.0.1:9"
    text = configuration({"stomp": STOMP, "http": f"{HTTP};consoleBrokers={own.url},{nobody}"}, name="third")
    with running(text, tmp_path) as third:
        screen = Screen(browser, third)
        screen.open("/")
        card_says(screen, third.url.partition("://")[2], "active", "third")
        card_says(
            screen, own.url.partition("://")[2], "unreachable", "refuses this page", f"allowedOrigins={third.url}"
        )
        card_says(screen, "127.0.0.1:9", "unreachable", "It does not answer.")
        screen.go("/brokers")
        card_says(screen, "127.0.0.1:9", "unreachable")
        assert "Remove from this list" not in screen.text, "the configuration names them"
        choose(screen, nobody)
        screen.sees("It does not answer.", "keeps trying")
        choose(screen, third.url)
        screen.sees("Accepting messages.")
        browser.go("about:blank")
    browser.complaints()


@needs_browser
def test_a_stand_by_says_for_whom_it_waits(browser: Browser, own: BrokerProcess, tmp_path: Path) -> None:
    with Pair(tmp_path, http=f";allowedOrigins={own.url}") as pair:
        pair.start()
        waiting = pair.start("backup")
        screen = Screen(browser, own)
        screen.open("/")
        add(screen, waiting.url)
        card_says(screen, waiting.url.partition("://")[2], "stand-by", "waits for the lock of")
        loads_again(screen, "Remove from this list")
        screen.sees_not("stand-by")
        browser.go("about:blank")
    browser.complaints()


@needs_browser
def test_a_link_adds_no_broker(screen: Screen, other: BrokerProcess) -> None:
    """Somebody's link must not have anybody log in elsewhere."""
    screen.browser.go("about:blank")
    screen.browser.go(f"{screen.broker.url}/ui/?broker=http%3A%2F%2F127.0.0.1%3A9#/queues")
    screen.sees("is not in the list of this console")
    assert screen.run("return document.querySelector('form')") is None
    done = screen.run(f"return fetch('{other.url}/health/live').then(() => 'asked', () => 'refused')")
    assert done == "refused", "the page may ask only brokers of its list"
    assert any("Content Security Policy" in one for one in screen.browser.complaints())
    screen.open("/brokers")
    for wrong in ("ftp://127.0.0.1", "http://"):
        screen.types("#broker-url", wrong)
        screen.press("Add a broker")
        screen.sees("This is no URL of an HTTP acceptor")
    assert screen.run("return localStorage.length") == 0
