"""Artemis' own console, brought along in an instance, in a real Chromium: log in, list, create, purge and delete."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.browser import Browser, chromium, why_no_browser
from tests.e2e.broker_process import LOOPBACK, WAIT_S, BrokerProcess, eventually
from tests.e2e.secured import basic
from tests.e2e.stomp_socket import StompSocket
from tests.oracle.artemis_broker import artemis_home

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
DRAW_S: Final = 60.0
_BROKER: Final = """\
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <name>shop</name>
  <persistence-enabled>false</persistence-enabled>
  <security-settings>
    <security-setting match="#">
      <permission type="send" roles="amq"/><permission type="consume" roles="amq"/>
      <permission type="createAddress" roles="amq"/><permission type="createDurableQueue" roles="amq"/>
    </security-setting>
    <security-setting match="mops.#">
      <permission type="view" roles="amq"/><permission type="edit" roles="amq"/>
    </security-setting>
  </security-settings>
  <acceptors><acceptor name="stomp">tcp://127.0.0.1:0?protocols=STOMP</acceptor></acceptors>
  <addresses><address name="orders"><anycast><queue name="orders"/></anycast></address></addresses>
</core></configuration>
"""
_BOOTSTRAP: Final = """\
<broker xmlns="http://activemq.apache.org/schema">
  <jaas-security domain="activemq"/><server configuration="file:{folder}/etc/broker.xml"/>
  <web path="web"><binding name="artemis" uri="http://127.0.0.1:0"><app name="console" url="console" war="{war}"/>
  </binding></web>
</broker>
"""
_LOGIN: Final = """\
activemq {
   org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required
       org.apache.activemq.jaas.properties.user="artemis-users.properties"
       org.apache.activemq.jaas.properties.role="artemis-roles.properties";
};
"""
_TOOLS: Final = """\
const set = (element, text) => {
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), 'value').set.call(element, text);
    element.dispatchEvent(new Event('input', {bubbles: true}));
};
const all = (what, where) => [...(where || document).querySelectorAll(what)];
const named = (text, what, where) => all(what || 'button, [role=menuitem]', where).filter(
    one => one.innerText.trim() === text);
const row = text => all('tr').find(one => one.innerText.split(/\\s+/).includes(text));
"""


class Console:
    """The console in a browser, and the broker behind it."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._url = url

    def run(self, script: str) -> Any:
        """What a script returns that has a few tools."""
        return self._browser.run(_TOOLS + script)

    def wait(self, what: str, condition: str) -> None:
        """Until a condition of JavaScript is true."""
        eventually(what, lambda: bool(self.run(f"return {condition}")), bool, DRAW_S)

    def click(self, text: str, where: str = "document") -> None:
        """The last button of this name that can be used."""
        usable = f"named({json.dumps(text)}, null, {where}).filter(one => !one.disabled)"
        self.wait(f"the button {text}", f"{usable}.length > 0")
        self.run(f"{usable}.pop().click()")

    def open(self) -> None:
        """Shows the page."""
        self._browser.go(f"{self._url}/console/")

    def log_in(self, user: str, password: str) -> None:
        """With the form."""
        self.wait("the form", "all('input').length > 1")
        self.run(f"set(all('input')[0], {json.dumps(user)}); set(all('input')[1], {json.dumps(password)})")
        self.click("Log in")

    def choose(self, tab: str, name: str, action: str) -> None:
        """An action in the menu of the row that has a name."""
        self.click(tab)
        place = f"row({json.dumps(name)})"
        self.wait(f"{name} in {tab}", f"{place} && all('[aria-label=\"Kebab toggle\"]', {place}).length > 0")
        self.run(f"all('[aria-label=\"Kebab toggle\"]', {place})[0].click()")
        self.click(action)

    def queue(self, name: str) -> dict[str, Any] | None:
        """What the broker tells of a queue."""
        asked = urllib.request.Request(f"{self._url}/api/queues/{name}", headers={"Authorization": basic("ann")})
        try:
            with urllib.request.urlopen(asked, timeout=WAIT_S) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError:
            return None


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """An instance as Artemis makes it, which names a console."""
    home = artemis_home()
    if home is None or not (home / "web" / "console.war").exists():
        pytest.skip("no console.war: neither ARTEMIS_HOME nor apache-artemis-* in .cache, or no Java")
    etc = tmp_path / "shop" / "etc"
    etc.mkdir(parents=True)
    files = {
        "broker.xml": _BROKER,
        "bootstrap.xml": _BOOTSTRAP.format(folder=etc.parent, war=home / "web" / "console.war"),
        "login.config": _LOGIN,
        "artemis-users.properties": "ann = ann's secret\n",
        "artemis-roles.properties": "amq = ann\n",
    }
    for name, text in files.items():
        (etc / name).write_text(text)
    one = BrokerProcess(["run", str(etc.parent)], tmp_path / "broker.log")
    try:
        one.await_ready()
        yield one
        assert one.stop() == 0, one.said
        assert "Traceback" not in one.said
    finally:
        one.kill()


def test_what_an_operator_does_with_the_console(broker: BrokerProcess, tmp_path: Path) -> None:
    why = why_no_browser()
    if why is not None:
        pytest.skip(why)
    client = StompSocket(broker.port)
    client.connect(login="ann", passcode="ann's secret")
    for _ in range(3):
        client.ask("SEND", {"destination": "orders"}, b"x")
    with chromium(tmp_path) as browser:
        console = Console(browser, f"http://{LOOPBACK}:{broker.ports['web']}")
        console.open()
        console.log_in("ann", "wrong")
        console.wait("a refusal", "document.body.innerText.includes('Invalid login')")
        console.log_in("ann", "ann's secret")
        console.wait("the first page", "document.body.innerText.includes('Broker Info')")
        assert console.run("return document.cookie") == ""

        console.choose("Addresses", "orders", "Create Queue")
        console.wait("the dialog", "all('#queue-name').length > 0")
        console.run("set(all('#queue-name')[0], 'more'); all('#ANYCAST').forEach(one => one.click())")
        console.click("Create Queue")
        eventually("the queue is there", lambda: console.queue("more"), lambda found: found is not None)
        console.run("named('Cancel').concat(named('Close')).forEach(one => one.click())")

        console.choose("Queues", "orders", "Purge")
        console.click("Confirm")
        eventually("it is empty", lambda: (console.queue("orders") or {}).get("messageCount"), lambda count: count == 0)

        console.choose("Queues", "more", "Delete")
        console.click("Confirm")
        eventually("the queue is gone", lambda: console.queue("more"), lambda found: found is None)
    client.close()
