"""Where a scenario plays: the broker, the clients on it, and what the steps remember."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from tests.oracle.brokers import BrokerUnderTest
from tests.oracle.client import WAIT_S, Client, Ended


def wall_ms() -> int:
    """The time of day in epoch milliseconds, as both brokers read it on this machine."""
    return int(time.time() * 1000)


clock: Callable[[], int] = wall_ms
"""What ``now_ms`` reads: what was recorded has its own time (``recording.py``)."""


def now_ms() -> int:
    """The date of the scenario that is played, in epoch milliseconds."""
    return clock()


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

    def __enter__(self) -> ScenarioRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self.clients.values():
            client.close()

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

    def nothing_comes(self, client: Client) -> None:
        """Fails when a MESSAGE is there, or comes before the broker has had its chance."""
        if not self.broker.quiet_s:
            prove_alive(client)
        frame = client.message(self.broker.quiet_s)
        assert frame is None, f"nothing should come: {frame}"


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
