"""Random clients: whatever they do, no message is lost, doubled or miscounted, and nothing is left in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artemis_py.config.settings import BrokerConfig
from tests.kit.conservation import check
from tests.kit.frames import ServerFrame
from tests.kit.in_process import InProcessBroker, configuration
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


class Clients:
    """Clients that do what they are told, when it makes sense, and count what came of it."""

    def __init__(self, config: BrokerConfig) -> None:
        self.world = InProcessBroker(config)
        self.serial = 0
        self.names: dict[str, str] = {}
        self.held: dict[str, list[ServerFrame]] = {}
        self.open: dict[str, list[str]] = {}
        self.transactions: set[str] = set()
        for name in NAMES:
            self.connect(name)

    def next(self) -> int:
        self.serial += 1
        return self.serial

    def connect(self, name: str) -> None:
        self.names[name] = f"{name}{self.next()}"
        self.held[name] = []
        self.open[name] = []
        self.transactions.discard(name)
        self.frame(name, "CONNECT", ["accept-version:1.1", "host:x"])

    def frame(self, name: str, command: str, headers: list[str], body: str = "") -> None:
        text = "\n".join([command, *headers]) + f"\n\n{body}\0"
        self.world.client(self.names[name]).send(text.encode())

    def send(self, name: str, address: str, headers: list[str], within: bool) -> None:
        soon = str(self.world.now_ms + 150)
        lines = [f"destination:{address}", *(header.replace("{soon}", soon) for header in headers)]
        self.frame(name, "SEND", lines + self.transaction(name, within), f"m{self.next()}")

    def transaction(self, name: str, within: bool) -> list[str]:
        if not within:
            return []
        if name not in self.transactions:
            self.transactions.add(name)
            self.frame(name, "BEGIN", ["transaction:t"])
        return ["transaction:t"]

    def subscribe(self, name: str, queue: str, mode: str, extra: list[str]) -> None:
        id = str(self.next())
        self.open[name].append(id)
        destination = "both\\c\\ccopy" if queue == "copy" else queue
        self.frame(name, "SUBSCRIBE", [f"id:{id}", f"destination:{destination}", f"ack:{mode}", *extra])

    def settle(self, name: str, command: str, index: int, within: bool) -> None:
        held = self.held[name]
        if held:
            message = held.pop(index % len(held))
            lines = [f"message-id:{message.header('message-id')}", f"subscription:{message.header('subscription')}"]
            self.frame(name, command, lines + self.transaction(name, within))

    def unsubscribe(self, name: str, index: int) -> None:
        ids = self.open[name]
        if ids:
            self.frame(name, "UNSUBSCRIBE", [f"id:{ids.pop(index % len(ids))}"])

    def finish(self, name: str, command: str) -> None:
        if name in self.transactions:
            self.transactions.discard(name)
            self.frame(name, command, ["transaction:t"])

    def leave(self, name: str, politely: bool) -> None:
        if politely:
            self.frame(name, "DISCONNECT", [])
        self.world.client(self.names[name]).drop()
        self.connect(name)

    def advance(self, duration_ms: int) -> None:
        self.gather(False)
        self.world.advance(duration_ms)

    def gather(self, together: bool) -> None:
        self.world.together = together
        self.world.settle()

    def look(self) -> None:
        """Take in what arrived; ERROR frames are answers to what no longer made sense."""
        for name in NAMES:
            frames = self.world.client(self.names[name]).collect()
            self.held[name] += [frame for frame in frames if frame.command == "MESSAGE"]
            frames.clear()


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
    for verb, *arguments in steps:
        carry_out: Callable[..., None] = getattr(clients, str(verb))
        carry_out(*arguments)
        if not clients.world.together:
            check(clients.world)
            clients.look()
    clients.gather(False)
    for name in NAMES:
        clients.world.client(clients.names[name]).drop()
    check(clients.world)
    clients.world.advance(1000)
    clients.connect("a")
    for queue in (*QUEUES, "dead"):
        clients.subscribe("a", queue, "auto", [])
    clients.world.settle()
    check(clients.world)
    for queue in (*QUEUES, "dead"):
        assert clients.world.queue(queue).message_count == 0
        assert clients.world.queue(queue).contents.counters.size_bytes == 0
    assert clients.world.broker.memory_bytes == 0
