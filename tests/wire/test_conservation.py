"""Random clients: whatever they do, no message is lost, doubled or miscounted, and nothing is left in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artemis_py.config.settings import BrokerConfig
from tests.kit.conservation import check
from tests.kit.frames import ServerFrame
from tests.kit.in_process import Client, InProcessBroker, configuration
from tests.wire.bodies import files_of

pytestmark = [pytest.mark.wire, pytest.mark.model]

CORE = """
<message-expiry-scan-period>100</message-expiry-scan-period>
<address-settings>
  <address-setting match="ring"><default-ring-size>2</default-ring-size></address-setting>
  <address-setting match="tried">
    <max-delivery-attempts>2</max-delivery-attempts><redelivery-delay>50</redelivery-delay>
    <dead-letter-address>dead</dead-letter-address><expiry-address>dead</expiry-address>
  </address-setting>
  <address-setting match="drop">
    <max-size-messages>3</max-size-messages><address-full-policy>DROP</address-full-policy>
  </address-setting>
  <address-setting match="fail">
    <max-size-messages>3</max-size-messages><address-full-policy>FAIL</address-full-policy>
  </address-setting>
</address-settings>
<addresses>
  <address name="ring"><anycast><queue name="ring"/></anycast></address>
  <address name="tried"><anycast><queue name="tried"/></anycast></address>
  <address name="drop"><anycast><queue name="drop"/></anycast></address>
  <address name="fail"><anycast><queue name="fail"/></anycast></address>
  <address name="dead"><anycast><queue name="dead"/></anycast></address>
  <address name="both"><anycast><queue name="both"/></anycast><multicast><queue name="copy"/></multicast></address>
  <address name="alone"><anycast><queue name="alone" exclusive="true"/></anycast></address>
</addresses>
"""
CONFIG = configuration(CORE)
LARGE_CONFIG = configuration(CORE, "stompMinLargeMessageSize=1")
QUEUES = ("ring", "tried", "drop", "fail", "both", "copy", "alone")
ADDRESSES = ("ring", "tried", "drop", "fail", "both", "alone")
NAMES = ("a", "b")
HEADERS: tuple[list[str], ...] = (
    [],
    ["priority:9"],
    ["persistent:true"],
    ["color:red"],
    ["expires:{soon}"],
    ["AMQ_SCHEDULED_DELAY:70"],
    ["priority:0", "expires:{soon}", "persistent:true"],
)
MODES = ("auto", "client", "client-individual")
EXTRAS: tuple[list[str], ...] = (
    [],
    ["consumer-window-size:-1"],
    ["consumer-window-size:0"],
    ["consumer-window-size:250"],
    ["selector:color = 'red'"],
    ["browser:true"],
    ["no-local:true"],
)

clients = st.sampled_from(NAMES)
in_transaction = st.booleans()
operations = st.one_of(
    st.tuples(st.just("send"), clients, st.sampled_from(ADDRESSES), st.sampled_from(HEADERS), in_transaction),
    st.tuples(st.just("send"), clients, st.sampled_from(ADDRESSES), st.sampled_from(HEADERS), in_transaction),
    st.tuples(st.just("subscribe"), clients, st.sampled_from(QUEUES), st.sampled_from(MODES), st.sampled_from(EXTRAS)),
    st.tuples(st.just("settle"), clients, st.sampled_from(["ACK", "NACK"]), st.integers(0, 9), in_transaction),
    st.tuples(st.just("unsubscribe"), clients, st.integers(0, 9)),
    st.tuples(st.just("finish"), clients, st.sampled_from(["COMMIT", "ABORT"])),
    st.tuples(st.just("leave"), clients, st.booleans()),
    st.tuples(st.just("advance"), st.sampled_from([1, 60, 200])),
    st.tuples(st.just("gather"), st.booleans()),
)


@dataclass
class One:
    """A client on one connection, and what it may speak of."""

    client: Client
    held: list[ServerFrame] = field(default_factory=list)
    subscriptions: list[str] = field(default_factory=list)
    in_transaction: bool = False


class Clients:
    """Clients that do what they are told, when it makes sense, and keep what came of it."""

    def __init__(self, config: BrokerConfig) -> None:
        self.world = InProcessBroker(config)
        self.numbers = count(1)
        self.by_name: dict[str, One] = {}
        for name in NAMES:
            self.connect(name)

    def connect(self, name: str) -> None:
        """On a new connection."""
        one = self.by_name[name] = One(self.world.client(f"{name}{next(self.numbers)}"))
        one.client.frame("CONNECT", "accept-version:1.1", "host:x")

    def subscribe(self, name: str, queue: str, mode: str, extra: Sequence[str] = ()) -> None:
        """Under a new id."""
        one, id = self.by_name[name], str(next(self.numbers))
        one.subscriptions.append(id)
        destination = "both\\c\\ccopy" if queue == "copy" else queue
        one.client.frame("SUBSCRIBE", f"id:{id}", f"destination:{destination}", f"ack:{mode}", *extra)

    def within(self, name: str, *headers: str) -> tuple[str, ...]:
        """The headers of a frame that belongs to the client's transaction, which is begun if there is none."""
        one = self.by_name[name]
        if not one.in_transaction:
            one.in_transaction = True
            one.client.frame("BEGIN", "transaction:t")
        return *headers, "transaction:t"

    def carry_out(self, step: tuple[Any, ...]) -> None:
        """One of the operations."""
        one: Any = self.by_name.get(step[1])  # not there for what no client does
        match step:
            case "send", name, address, headers, transacted:
                soon = str(self.world.now_ms + 150)
                lines = [f"destination:{address}", *(header.replace("{soon}", soon) for header in headers)]
                more = self.within(name, *lines) if transacted else lines
                one.client.frame("SEND", *more, body=f"m{next(self.numbers)}")
            case "subscribe", name, queue, mode, extra:
                self.subscribe(name, queue, mode, extra)
            case "settle", name, command, index, transacted if one.held:
                message = one.held.pop(index % len(one.held))
                lines = [f"{header}:{message.header(header)}" for header in ("message-id", "subscription")]
                one.client.frame(command, *(self.within(name, *lines) if transacted else lines))
            case "unsubscribe", _, index if one.subscriptions:
                one.client.frame("UNSUBSCRIBE", f"id:{one.subscriptions.pop(index % len(one.subscriptions))}")
            case "finish", _, command if one.in_transaction:
                one.in_transaction = False
                one.client.frame(command, "transaction:t")
            case "leave", name, politely:
                if politely:
                    one.client.frame("DISCONNECT")
                one.client.drop()
                self.connect(name)
            case "advance", duration_ms:
                self.gather(together=False)
                self.world.advance(duration_ms)
            case "gather", together:
                self.gather(together=together)

    def gather(self, *, together: bool) -> None:
        """From now on; what was gathered is carried out if not."""
        self.world.together = together
        self.world.settle()


@settings(max_examples=max(2 * settings().max_examples, 200), suppress_health_check=list(HealthCheck))
@given(steps=st.lists(operations, min_size=5, max_size=40))
def test_nothing_is_lost_doubled_or_left(steps: list[tuple[object, ...]]) -> None:
    live(Clients(CONFIG), steps)


@settings(max_examples=max(settings().max_examples, 100), suppress_health_check=list(HealthCheck))
@given(steps=st.lists(operations, min_size=5, max_size=40))
def test_nor_any_file_of_a_large_body(steps: list[tuple[object, ...]]) -> None:
    clients = Clients(LARGE_CONFIG)
    live(clients, steps)
    assert files_of(clients.world) == set()


def live(clients: Clients, steps: list[tuple[object, ...]]) -> None:
    """Carry out everything, and read what is left; ERROR frames are answers to what no longer made sense."""
    for step in steps:
        clients.carry_out(step)
        if not clients.world.together:
            check(clients.world)
            for one in clients.by_name.values():
                one.held += [frame for frame in one.client.heard() if frame.command == "MESSAGE"]
    clients.gather(together=False)
    for one in clients.by_name.values():
        one.client.drop()
    check(clients.world)
    clients.world.advance(1000)
    clients.connect("a")
    for queue in (*QUEUES, "dead"):
        clients.subscribe("a", queue, "auto")
    clients.world.settle()
    check(clients.world)
    for queue in (*QUEUES, "dead"):
        assert clients.world.queue(queue).message_count == 0
        assert clients.world.queue(queue).contents.counters.size_bytes == 0
    assert clients.world.broker.memory_bytes == 0
