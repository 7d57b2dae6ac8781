"""Each page of the console in a real Chromium: what it shows, and that the browser has nothing to complain of."""

from __future__ import annotations

from typing import Final

import pytest

from tests.e2e.console.screen import Screen
from tests.kit.browser import why_no_browser
from tests.kit.client import StompSocket

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))]

HTML_NAME: Final = "<img src=x onerror='document.title=1'>"
PAGES: Final = {
    "/": ("Accepting messages.", "Messages per second", "Largest queues", "Usage"),
    "/queues": ("Queues", "orders", "jobs", "5 queues"),
    "/queues/orders": ("orders", "anycast", "No consumers", "Why is nothing delivered?", "Attributes", "any number"),
    "/queues/none": ("there is no queue 'none'",),
    "/addresses": ("Addresses", "5 addresses"),
    "/addresses/orders": ("orders", "Routed", "Attributes"),
    "/connections": ("No connections", "Close connections from …", "Close connections of …"),
    "/connections/7": ("Disconnected",),
    "/consumers": ("No consumers",),
    "/log": ("No log", "persistence-enabled"),
    "/events": ("Events", "Newest first"),
    "/dead": ("Dead letters", "No dead letters"),
    "/life": ("Enter the number of a message",),
    "/life/x": ("x is no message number", "3-1234"),
    "/life/1": ("there is no log to read", "persistence-enabled"),
    "/users": ("No users in files",),
    "/users/ann": ("Not in a file",),
    "/settings": ("Enter an address",),
    "/settings/orders": ("Settings of orders", "max-delivery-attempts", "Permissions"),
    "/configuration": ("Configuration", "is valid"),
    "/list/sessions": ("Sessions",),
    "/list/acceptors": ("Acceptors", "stomp", "http"),
    "/operations": ("queue pause", "POST /api/queues/{queue}/pause"),
    "/schedules": ("Schedules", "No schedules", "AMQ_SCHEDULED_CRON"),
    "/brokers": ("Brokers", "allowedOrigins=", "active", "Add a broker"),
    "/nowhere": ("There is no page /nowhere",),
}
ALLOWED: Final = ("status of 404", "status of 409")
"""What a browser notes of answers that a page asks for and handles."""


def _unexpected(screen: Screen) -> list[str]:
    return [text for text in screen.complaints() if not any(known in text for known in ALLOWED)]


@pytest.mark.parametrize("place", PAGES)
def test_a_page(screen: Screen, place: str) -> None:
    """It shows what it should, in full, and is no wider than the window, light on a screen and dark on a phone."""
    for width, scheme in ((1280, "light"), (390, "dark")):
        screen.browser.size(width, 900, scheme)
        if width == 1280:
            screen.open(place)
        screen.until("the width", f"return innerWidth === {width}")
        screen.sees(*PAGES[place])
        assert screen.run("return document.documentElement.scrollWidth <= innerWidth"), "it is wider than the window"
        assert screen.clipped == []
        assert "`" not in screen.text
        assert _unexpected(screen) == []
    screen.browser.size(1440, 900, "light")


def test_a_name_that_is_markup_is_text(screen: Screen) -> None:
    screen.open("/queues")
    screen.sees(HTML_NAME)
    screen.types("#filter", "<img")
    screen.sees("1 queue\n")
    screen.press(HTML_NAME)
    screen.sees("Why is nothing delivered?", "x = '('")
    assert screen.run("return document.querySelector('h1').innerText") == HTML_NAME
    assert screen.run("return document.querySelectorAll('img').length") == 1, "only the console's own icon is a picture"
    assert _unexpected(screen) == []


def test_markup_cannot_be_made_of_text(screen: Screen) -> None:
    """The page's own policy refuses it, whatever a future page does."""
    screen.open("/")
    screen.sees("Accepting messages.")
    tried = screen.run(
        "try { document.body.innerHTML = '<b>x</b>'; return 'made' } catch (error) { return error.name }"
    )
    assert tried == "TypeError"
    screen.complaints()


def test_clients_and_what_they_hold(screen: Screen) -> None:
    with StompSocket(screen.broker.port) as client:
        client.connect(client_id="desk", login="ann")
        client.subscribe("/queue/jobs", selector="x = '1'")
        client.ask("SEND", {"destination": "/queue/jobs", "x": "1"}, b"<script>document.title = 1</script>")
        client.message()
        screen.open("/connections")
        screen.sees("desk")
        screen.press("1" if "1" in [row[0] for row in screen.rows("Connections")] else screen.rows("Connections")[0][0])
        screen.sees("Subscriptions", "jobs", "x = '1'")
        screen.go("/list/producers")
        screen.sees("Msg sent", "jobs")
        assert screen.rows("Producers")[0][0] == "jobs", "its address, as the title of the column says"
        screen.go("/queues/jobs")
        screen.sees("desk", "held")
        assert _unexpected(screen) == []
    screen.sees("No consumers")
