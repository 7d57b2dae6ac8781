"""A broker without a server, as operations see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

from artemis_py.config.settings import AcceptorConfig
from artemis_py.core.broker import Broker
from artemis_py.management.managed import Managed


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


def managed_by(broker: Broker, now_ms: Callable[[], int], **others: Any) -> Managed:
    """A broker to which nobody is connected, which stores nothing and is well, unless ``others`` say so."""
    well: SimpleNamespace = SimpleNamespace(
        turns=100,
        turn_ns_max=1_000_000,
        turn_bounds_s=(0.001, 0.01, 0.1),
        turn_buckets=(100, 0, 0, 0),
        sync_times=None,
        durable_lsn=1 << 60,
        is_busy=False,
        waiting=[],
        headroom_bytes=lambda: None,
        blocked_ns=lambda: 0,
        client_of=lambda owner: owner if isinstance(owner, FakeClient) else None,
        awaited=lambda: well.waiting,
        awaited_by=lambda _: next((thing for thing, _ in well.waiting), None),
    )
    nobody: dict[str, Any] = {
        "clients": list, "client_count": lambda: 0, "uptime_ms": lambda: 0, "client": lambda _: None,
        "acceptors": list, "stored": None, "health": well, "begin": lambda _: None,
    }  # fmt: skip
    return Managed(broker, "b", now_ms=now_ms, **{**nobody, **others})
