"""Where a scenario plays: the broker, the clients on it, and what the steps remember."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.kit.client import Closed
from tests.kit.frames import ServerFrame
from tests.oracle.brokers import BrokerUnderTest
from tests.oracle.client import WAIT_S, Client


@dataclass
class ScenarioRun:
    """One run of one scenario."""

    broker: BrokerUnderTest
    wait_s: float = WAIT_S
    """How long a step waits for what should come."""
    waits: bool = True
    """Does time have to pass? Not where answers were recorded."""
    clients: dict[str, Client] = field(default_factory=dict)
    delivered: dict[tuple[Client, str], ServerFrame] = field(default_factory=dict)
    """What clients have taken, by body: an ACK names a message by it."""
    sent_ms: tuple[int, int] = (0, 0)
    """When the last SEND left and when it was answered."""

    def client(self, who: str) -> Client:
        """A client by name."""
        assert who in self.clients, f"{who} has not connected"
        return self.clients[who]

    def open(self, who: str, acceptor: str) -> Client:
        """A new connection under a name; an older one of that name stays open, but cannot be addressed any more."""
        client = self.broker.open(acceptor, self.wait_s)
        if who in self.clients:
            self.clients[f"{who} before {len(self.clients)}"] = self.clients[who]
        self.clients[who] = client
        return client


def prove_alive(client: Client) -> None:
    """A round trip that changes nothing: what the broker had to send before is here afterwards."""
    for command in ("BEGIN", "ABORT"):
        client.ask(command, {"transaction": "round trip"})


def is_closed(client: Client) -> bool:
    """Waits for the end of a connection, or for proof that it goes on."""
    try:
        prove_alive(client)
    except (Closed, ConnectionError):
        return True
    return False
