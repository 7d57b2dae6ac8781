"""Where a scenario plays: the broker, the clients on it, and what the steps remember."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.oracle.brokers import BrokerUnderTest
from tests.oracle.client import WAIT_S, Client, Ended


@dataclass
class ScenarioRun:
    """One run of one scenario."""

    broker: BrokerUnderTest
    wait_s: float = WAIT_S
    """How long a step waits for what should come."""
    waits: bool = True
    """Does time have to pass? Not where answers were recorded."""
    clients: dict[str, Client] = field(default_factory=dict)
    sent_ms: tuple[int, int] = (0, 0)
    """When the last SEND left and when it was answered."""

    def client(self, who: str) -> Client:
        """A client by name."""
        assert who in self.clients, f"{who} has not connected"
        return self.clients[who]

    def open(self, who: str, acceptor: str, version: str) -> Client:
        """A new connection under a name; an older one of that name stays open, but cannot be addressed any more."""
        client = self.broker.open(acceptor, version, self.wait_s)
        if who in self.clients:
            self.clients[f"{who} before {len(self.clients)}"] = self.clients[who]
        self.clients[who] = client
        return client


def prove_alive(client: Client) -> None:
    """A round trip that changes nothing: what the broker had to send before is here afterwards."""
    for command in ("BEGIN", "ABORT"):
        answer = client.request(command, {"transaction": "round trip"})
        assert answer.command == "RECEIPT", f"the connection is not usable: {answer}"


def is_closed(client: Client) -> bool:
    """Waits for the end of a connection, or for proof that it goes on."""
    try:
        prove_alive(client)
    except (Ended, ConnectionError):
        return True
    return False
