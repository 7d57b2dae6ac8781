"""The broker.xml that comes with the project does what its comments say."""

from __future__ import annotations

import os
import stat
import time
from functools import partial

import pytest

from artemis_py.security.users.accounts import NEW_PASSWORD
from tests.kit.client import connected, refused
from tests.kit.process import BrokerProcess, for_the_module, running
from tests.kit.sources import ROOT

pytestmark = pytest.mark.e2e


PASSWORD = "chosen, not made up"
LOGIN = {"login": "admin", "passcode": PASSWORD}


SHIPPED = (ROOT / "broker.xml").read_text("utf-8")
CHOICES = {"STOMP_PORT": "0", "HTTP_PORT": "0", "BROKER_NAME": "mine", NEW_PASSWORD: PASSWORD}
"""What it lets the environment choose."""


broker = for_the_module(partial(running, SHIPPED, environment={**os.environ, **CHOICES}, anew=True))


def test_the_environment_names_the_broker(broker: BrokerProcess) -> None:
    assert "broker mine is ready" in broker.said
    assert broker.metric("artemis_active", broker="mine") == 1


def test_nothing_in_it_is_without_effect(broker: BrokerProcess) -> None:
    assert "warning" not in broker.said
    assert "note" not in broker.said


def test_the_first_user_is_made_with_the_password_of_the_environment(broker: BrokerProcess) -> None:
    assert f"first user: admin, with the password in {NEW_PASSWORD}" in broker.said
    assert PASSWORD not in broker.said
    for name, begins in (("users", "admin = ENC(100000:"), ("roles", "amq = admin\n")):
        file = broker.log.parent / f"artemis-{name}.properties"
        assert file.read_text().startswith(begins)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("login", [{}, {"login": "admin"}, {"login": "admin", "passcode": "wrong"}])
def test_nobody_else_gets_in(broker: BrokerProcess, login: dict[str, str]) -> None:
    assert "Security Error occurred" in refused(broker.port, **login)


def test_large_orders_are_copied_for_whoever_watches(broker: BrokerProcess) -> None:
    with connected(broker.port, **LOGIN) as client, connected(broker.port, **LOGIN) as watcher:
        watcher.subscribe("/topic/orders.large", ack="auto")
        for amount in (999, 1000, 25000):
            client.ask("SEND", {"destination": "/queue/orders", "amount": amount})
        assert [watcher.message().header("amount") for _ in range(2)] == ["1000", "25000"]
        client.subscribe("/queue/orders", ack="auto")
        assert [client.message().header("amount") for _ in range(3)] == ["999", "1000", "25000"]
        watcher.nothing_waits()


def test_news_is_archived_and_sorted(broker: BrokerProcess) -> None:
    with connected(broker.port, **LOGIN) as client:
        for section in ("sport", "weather"):
            client.ask("SEND", {"destination": "/topic/news", "section": section})
        client.subscribe("news::news.sport".replace(":", "\\c"), ack="auto")
        assert client.message().header("section") == "sport"
        client.subscribe("news::news.archive".replace(":", "\\c"), id="2", ack="auto")
        assert [client.message().header("section") for _ in range(2)] == ["sport", "weather"]
        client.nothing_waits()


def test_the_ticker_keeps_the_last_hundred(broker: BrokerProcess) -> None:
    with connected(broker.port, **LOGIN) as client:
        for price in range(130):
            client.send("SEND", {"destination": "/topic/ticker", "price": price})
        client.nothing_waits()
        broker.await_count("ticker.last100", 100)
        client.subscribe("ticker::ticker.last100".replace(":", "\\c"), ack="auto")
        assert [client.message().header("price") for _ in range(100)] == [str(price) for price in range(30, 130)]


def test_a_refused_message_comes_again_after_a_while(broker: BrokerProcess) -> None:
    with connected(broker.port, **LOGIN) as client:
        client.ask("SEND", {"destination": "/queue/refused"}, b"bad")
        client.subscribe("/queue/refused")
        message = client.message()
        refused_at = time.monotonic()
        client.ask("NACK", {"id": message.header("ack")})
        again = client.message()
        assert time.monotonic() - refused_at > 0.4
        assert again.header("redelivered") == "true"
        client.acknowledge(again)
