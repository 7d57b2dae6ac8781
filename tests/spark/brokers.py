"""Brokers with a journal for the tests of the sink, and what is on their queues."""

from __future__ import annotations

from functools import partial

from tests.kit.client import connected
from tests.kit.frames import ServerFrame
from tests.kit.process import BrokerProcess, storing
from tests.spark.live import live_broker

SETTINGS = """\
      <address-setting match="#"><default-address-routing-type>ANYCAST</default-address-routing-type>
        <default-queue-routing-type>ANYCAST</default-queue-routing-type>
        <auto-delete-queues>false</auto-delete-queues><auto-delete-addresses>false</auto-delete-addresses>
      </address-setting>
      <address-setting match="fails.#">
        <max-size-messages>5</max-size-messages><address-full-policy>FAIL</address-full-policy>
      </address-setting>
      <address-setting match="blocks.#">
        <max-size-messages>5</max-size-messages><address-full-policy>BLOCK</address-full-policy>
        <auto-delete-queues>false</auto-delete-queues>
      </address-setting>
"""


journalled_broker = partial(storing, settings=SETTINGS)
"""A broker with a journal, from its readiness to its end."""
crashing_broker = partial(live_broker, limits=None, settings=SETTINGS, addresses="")
"""A broker with a journal that is killed and started again, each time on the same port."""


def url_of(broker: BrokerProcess) -> str:
    """Its STOMP acceptor, as the sink's option."""
    return f"tcp://127.0.0.1:{broker.port}"


def added(broker: BrokerProcess, queue: str) -> int:
    """How many messages ever came to the queue."""
    return int(broker.metric("artemis_messages_added", queue=queue))


def drained(broker: BrokerProcess, queue: str, count: int, **login: str) -> list[ServerFrame]:
    """Takes exactly this many messages from the queue, and sees that no more is there."""
    broker.await_count(queue, count)
    with connected(broker.port, **login) as client:
        client.subscribe(queue, ack="auto", subscription_type="ANYCAST")
        messages = [client.message() for _ in range(count)]
        client.nothing_waits()
        client.ask("UNSUBSCRIBE", {"id": "1"})
    return messages


def bodies(messages: list[ServerFrame]) -> list[str]:
    """Their texts."""
    return [message.body.decode() for message in messages]
