"""What the overview says is wrong, and where its words lead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.bridged_pair import bridge_xml
from tests.e2e.console.screen import Screen
from tests.e2e.management.told import Told
from tests.kit.browser import Browser, why_no_browser
from tests.kit.client import connected
from tests.kit.ports import free_port
from tests.kit.process import LOOPBACK, SWEPT, anycast, configuration, running

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))]


def test_a_bridge_without_a_peer_and_a_configuration_that_is_refused(browser: Browser, tmp_path: Path) -> None:
    peer = f"tcp://{LOOPBACK}:{free_port()}"
    text = configuration(core=SWEPT + bridge_xml(None, peer, name="to-hq"), addresses=anycast("orders"))
    with running(text, tmp_path) as broker:
        screen = Screen(browser, broker)
        screen.open("/")
        screen.sees("to-hq is a bridge without a connection", "nothing listens there")
        screen.press("to-hq", "#health")
        screen.sees("messagesPendingAcknowledgement", "Start")
        (tmp_path / "broker.xml").write_text(text.replace("<name>e2e", "<name></nam>"), "utf-8")
        screen.go("/")
        link = "document.querySelector('.warning a')"
        screen.until("what is wrong", f"return {link}?.innerText.startsWith('The configuration is refused')")
        screen.run(f"{link}.click()")
        screen.sees("has errors", "broker.xml:4")


def test_long_words_are_shown_in_full(browser: Browser, tmp_path: Path) -> None:
    """The longest state, and a bridge with the reason why it has no connection, also on a phone."""
    peer = f"tcp://{LOOPBACK}:{free_port()}"
    core = SWEPT + bridge_xml(None, peer, name="orders-to-berlin-west")
    names = ("svc.00.q0000", "svc.00.q0001")
    addresses = anycast("orders") + "".join(anycast(name, 'consumers-before-dispatch="2"') for name in names)
    with running(configuration(core=core, addresses=addresses), tmp_path) as broker, connected(broker.port) as client:
        screen = Screen(browser, broker)
        client.subscribe(f"/queue/{names[0]}")  # of the other, two words do not fit side by side
        for name in names:
            Told(broker).send(f"/queue/{name}", ["one"])
        for place, words in {"/queues": "consumers before dispatch", "/list/bridges": "orders-to-berlin-west"}.items():
            screen.open(place)
            for width in (1280, 390):
                screen.browser.size(width, 900, "light")
                screen.until("another width", f"return innerWidth === {width}")
                screen.sees(words)
                assert screen.clipped == []
                cells = "[...document.querySelectorAll('.row-body .cell')]"
                cut = f"{cells}.filter((it) => it.scrollWidth > it.clientWidth + 1).map((it) => it.innerText)"
                assert screen.run(f"return {cut}") == []
        screen.browser.size(1440, 900, "light")
