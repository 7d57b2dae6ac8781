"""One browser for all tests of the console, and brokers to look at."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.e2e.console.screen import Screen
from tests.kit.browser import Browser, chromium
from tests.kit.process import BrokerProcess, configuration, for_the_module, running

ADDRESSES = """
      <address name="orders"><anycast><queue name="orders"/></anycast></address>
      <address name="ring"><anycast><queue name="ring" ring-size="2"/></anycast></address>
      <address name="jobs"><anycast><queue name="jobs"/></anycast></address>
      <address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
      <address name="html"><anycast><queue name="&lt;img src=x onerror='document.title=1'&gt;">
        <filter string="x = '('"/></queue></anycast></address>
"""

SETTINGS = """
      <address-setting match="failing">
        <dead-letter-address>DLQ</dead-letter-address><max-delivery-attempts>1</max-delivery-attempts>
        <auto-delete-queues>false</auto-delete-queues>
      </address-setting>
"""


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("browser")) as window:
        window.size(1440, 900, "light")
        yield window


broker = for_the_module(partial(running, configuration(addresses=ADDRESSES, settings=SETTINGS)))


@pytest.fixture
def screen(browser: Browser, broker: BrokerProcess) -> Screen:
    browser.go("about:blank")  # the broker of the page before may be gone, and the page complain of that
    browser.complaints()
    browser.size(1440, 900, "light")
    return Screen(browser, broker)
