"""Brokers for the tests of this folder: one that most of them share, and any number of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.kit.process import HTTP, STOMP, BrokerProcess, configuration, running

SETTINGS = """\
      <address-setting match="#">
        <dead-letter-address>DLQ</dead-letter-address>
        <redelivery-delay>0</redelivery-delay>
      </address-setting>
      <address-setting match="ring100.#"><default-ring-size>100</default-ring-size></address-setting>
      <address-setting match="blocks.#">
        <max-size-messages>10</max-size-messages>
        <address-full-policy>BLOCK</address-full-policy>
        <auto-delete-queues>false</auto-delete-queues>
      </address-setting>
"""

ACCEPTORS = {
    "stomp": STOMP,
    "http": HTTP,
    "few": STOMP + ";connectionsAllowed=3",
    "hurried": STOMP + ";handshakeTimeout=2000",
    "narrow": STOMP + ";maxUnsentBytes=1048576",
    "small": STOMP + ";maxBodyBytes=1000;maxHeaderLineBytes=200;maxHeaderBytes=2000;maxHeaders=10;maxSubscriptions=2",
}


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """The broker of all tests that leave nothing behind but messages on addresses of their own."""
    with running(configuration(ACCEPTORS, settings=SETTINGS), tmp_path_factory.mktemp("shared-broker")) as broker:
        yield broker
        assert broker.process.poll() is None, broker.said


@pytest.fixture
def start_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], BrokerProcess]]:
    """Starts brokers of configurations given as text; all are ended with the test."""
    with ExitStack() as stack:
        yield lambda text: stack.enter_context(running(text, tmp_path_factory.mktemp("broker")))
