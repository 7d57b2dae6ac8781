"""A broker without a server, as operations see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from artemis_py.config.settings import AcceptorConfig, BridgeConfig
from artemis_py.core.broker import Broker
from artemis_py.histogram import Histogram
from artemis_py.management.managed import Awaited, Connected, Managed


@dataclass
class FakeHealth:
    """A server that is well, unless a test says otherwise."""

    turns: int = 100
    turn_ns_max: int = 1_000_000
    turn_bounds_s: Sequence[float] = (0.001, 0.01, 0.1)
    turn_buckets: Sequence[int] = (100, 0, 0, 0)
    sync_times: Histogram | None = None
    durable_lsn: int = 1 << 60
    is_busy: bool = False
    headroom: int | None = None
    waiting: list[tuple[Awaited, int]] = field(default_factory=list)

    def headroom_bytes(self) -> int | None:
        return self.headroom

    def blocked_ns(self) -> int:
        return 0

    def client_of(self, owner: object) -> Connected | None:
        return cast("Connected", owner) if isinstance(owner, FakeClient) else None

    def awaited(self) -> Iterable[tuple[Awaited, int]]:
        return self.waiting

    def awaited_by(self, number: int) -> Awaited | None:
        return next((thing for thing, _ in self.waiting), None)


@dataclass
class FakeClient:
    """A client that is connected."""

    number: int = 7
    address: str = "10.0.0.7:5000"
    client_id: str | None = None
    user: str | None = None
    version: str = "1.2"
    state: str = "open"
    subscription_count: int = 1
    held_bytes: int = 0
    acceptor: AcceptorConfig = field(default_factory=partial(AcceptorConfig, name="stomp", host="127.0.0.1", port=0))


@dataclass
class FakeBridge:
    """A bridge, in whatever state."""

    config: BridgeConfig
    state: str = "stopped"
    reason: str = ""
    is_started: bool = True
    connected_count: int = 0
    peer: str = ""
    next_ms: int = 0
    unconfirmed_count: int = 0
    forwarded_count: int = 0
    refused_count: int = 0
    looped_count: int = 0
    forwarded_ms: int = 0
    may_go_on: bool = True

    @property
    def name(self) -> str:
        return self.config.name

    def start(self) -> None:
        self.is_started = True

    def stop(self, now_ms: int) -> None:
        self.is_started = False


def managed_by(broker: Broker, now_ms: Callable[[], int], **others: Any) -> Managed:
    """A broker to which nobody is connected, which stores nothing and is well, unless ``others`` say so."""
    nobody: dict[str, Any] = {
        "clients": list, "client_count": lambda: 0, "uptime_ms": lambda: 0, "client": lambda _: None,
        "acceptors": list, "stored": None, "health": FakeHealth(), "begin": lambda _: None,
    }  # fmt: skip
    return Managed(broker, "b", now_ms=now_ms, **{**nobody, **others})
