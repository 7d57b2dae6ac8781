"""What only reads ends with the right to it: a browser gets an ERROR. Who consumes goes on, as in Artemis."""

from __future__ import annotations

from collections.abc import Set
from unittest.mock import Mock

import pytest

from artemis_py.server.client_socket import LINGER_MS
from artemis_py.server.security import RightsCheck
from tests.kit.documents import load_core
from tests.kit.permitted import Person, SecuredBroker, denied, setting

SHOP = '<addresses><address name="orders"><anycast><queue name="orders"/></anycast></address></addresses>'
READS = setting("#", send="boss", consume="clerk,boss", browse="clerk,boss")
READS_NO_MORE = setting("#", send="boss", consume="boss", browse="boss")
CHANGED = "The login of this connection has changed: connect again to read on"


class Shop(SecuredBroker):
    """A broker whose rights and users change."""

    def __init__(self) -> None:
        super().__init__(READS, core=SHOP)
        stats, isolation = self.stats, self.turns.isolation
        self.asked: list[Set[str]] = []
        at_once = Mock(side_effect=list)  # carries out all steps
        self.answers = RightsCheck(self.asked.append, stats.connections, isolation, at_once)
        self.clerk, self.boss = self.login("cl", "clerk"), self.login("b", "boss")

    def withdraw(self) -> None:
        """From clerks."""
        self.authorizer.use(load_core(f"<security-settings>{READS_NO_MORE}</security-settings>"))
        self.answers.begin()
        self.settle()


def error_of(person: Person) -> str | None:
    (error,) = [frame for frame in person.client.collect() if frame.command == "ERROR"]
    return (error.header("message") or "").replace("\\c", ":")


@pytest.mark.parametrize("destination", ["orders", "orders::orders", "/queue/orders"])
def test_a_browser_ends_with_the_right_to_browse(destination: str) -> None:
    shop = Shop()
    assert shop.clerk.subscribe(destination, browser="true") is None
    assert shop.boss.subscribe(destination, browser="true") is None
    shop.withdraw()
    assert error_of(shop.clerk) == denied("cl", "BROWSE", "orders", "orders")
    assert shop.clerk.client.is_closed
    assert shop.queue("orders").consumer_count == 1
    assert shop.boss.send("orders") is None
    assert not shop.boss.client.is_closed
    assert shop.asked == [frozenset()]


def test_a_browser_ends_when_its_login_has_changed() -> None:
    shop = Shop()
    assert shop.clerk.subscribe("orders", browser="true") is None
    assert shop.boss.subscribe("orders", browser="true") is None
    shop.answers.begin({"cl"})
    shop.settle()
    assert error_of(shop.clerk) == CHANGED
    assert shop.clerk.client.is_closed
    assert not shop.boss.client.is_closed
    assert shop.asked == [{"cl"}]


def test_who_consumes_goes_on_and_begins_to_read_nothing() -> None:
    shop = Shop()
    assert shop.clerk.subscribe("orders") is None
    shop.answers.begin({"cl"})
    shop.settle()
    assert shop.boss.send("orders") is None
    assert [frame.body for frame in shop.clerk.messages()] == [b"x"]
    assert shop.clerk.subscribe("orders", id="2") is None
    assert shop.clerk.subscribe("orders", id="3", browser="true") == CHANGED
    assert shop.clerk.subscribe("orders", id="4", bookmark="0") == CHANGED
    shop.withdraw()
    assert not shop.clerk.client.is_closed


SIZES = pytest.mark.parametrize("size", [40_000, 120_000], ids=["in memory", "in files"])


@SIZES
def test_a_browser_that_lags_gets_to_the_error(size: int) -> None:
    """What is on its way stays whole."""
    shop = Shop()
    body, count = "x" * size, 12
    for _ in range(count):
        shop.boss.send("orders", body)
    client = shop.clerk.client
    client.stall()
    client.send(b"SUBSCRIBE\ndestination:orders\nid:1\nbrowser:true\n\n\0")
    assert client.connection.weight.output_bytes > 0
    shop.withdraw()
    shop.advance(LINGER_MS - 1)
    assert not client.transport.lost
    client.read_again()
    frames = client.collect()
    assert [frame.command for frame in frames] == ["MESSAGE"] * (len(frames) - 1) + ["ERROR"]
    assert 0 < len(frames) - 1 < count
    assert {len(frame.body) for frame in frames[:-1]} == {len(body)}


@SIZES
def test_a_client_that_goes_on_reading_is_waited_for(size: int) -> None:
    shop = Shop()
    for _ in range(12):
        shop.boss.send("orders", "x" * size)
    client, transport = shop.clerk.client, shop.clerk.client.transport
    client.stall()
    client.send(b"SUBSCRIBE\ndestination:orders\nid:1\nbrowser:true\n\n\0")
    shop.withdraw()
    for _ in range(3):
        transport.read(1000)
        shop.advance(LINGER_MS)
        assert not transport.lost
    shop.advance(LINGER_MS)
    assert transport.lost
