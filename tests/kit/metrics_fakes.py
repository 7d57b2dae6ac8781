"""A broker and a server made of plain attributes, for the tests of the metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from artemis_py.core.broker import Broker
from artemis_py.core.clock import Clock
from artemis_py.core.consumer import Consumer
from artemis_py.core.events import Events
from artemis_py.core.memory import Holdings, Memory
from artemis_py.core.queue.messages import Counters, DeletedQueueCounters
from artemis_py.core.queue_reference import Alerts
from artemis_py.histogram import Histogram
from artemis_py.message import Account
from artemis_py.metrics import MetricsExporter
from artemis_py.metrics.views import LogCursorView, TlsView
from artemis_py.record_log import MemoryLog
from artemis_py.security.rights import Checks

NOW_MS = 1_000_000_000_000
BOUNDS_S = (0.001, 0.01, 0.1)


@dataclass
class FakeSettings:
    """The setting that the metrics read."""

    enable_metrics: bool = True


@dataclass(eq=False)
class FakeAddress:
    """An address with counters that somebody sets."""

    name: str
    settings: FakeSettings = field(default_factory=FakeSettings)
    routed_message_count: int = 0
    unrouted_message_count: int = 0
    dropped_message_count: int = 0
    size_bytes: int = 0
    number_of_pages: int = 0
    limit_percent: int = 0


@dataclass(eq=False)
class FakePages:
    """What a queue has in pages."""

    count: int = 0


@dataclass(eq=False)
class FakeOrder:
    """What is ready on a queue."""

    count: int = 0
    first_ms: int = 0

    def oldest_ms(self) -> int:
        return self.first_ms


@dataclass(eq=False)
class FakeDistribution:
    """The consumers of a queue."""

    consumers: list[Consumer] = field(default_factory=list)


@dataclass(eq=False)
class FakeBindings:
    """What a broker has counted of queues that are gone."""

    departed: DeletedQueueCounters = field(default_factory=DeletedQueueCounters)


@dataclass(eq=False)
class FakeContents:
    """The contents of a queue, with the core's own tally."""

    delivering_count: int = 0
    leases: None = None
    order: FakeOrder = field(default_factory=lambda: FakeOrder())
    paged: FakePages = field(default_factory=FakePages)
    scheduled: dict[int, object] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)

    def oldest_ms(self) -> int:
        """When the oldest ready message arrived."""
        return self.order.oldest_ms()


@dataclass(eq=False)
class FakeFlow:
    """Whether senders wait."""

    stopped: bool = False


@dataclass(eq=False)
class FakeAlertWatch:
    """A queue's alerts."""

    alerts: Alerts


@dataclass(eq=False)
class FakeQueue:
    """A queue with counters that somebody sets."""

    name: str
    address: FakeAddress
    durable: bool = True
    message_count: int = 0
    consumer_count: int = 0
    keeps_messages: bool = False
    routing_type: str = "ANYCAST"
    distribution: FakeDistribution = field(default_factory=lambda: FakeDistribution())
    contents: FakeContents = field(default_factory=FakeContents)
    flow: FakeFlow = field(default_factory=FakeFlow)
    alerts: FakeAlertWatch | None = None


@dataclass(eq=False)
class FakeCopyMaker:
    """What a broker counts of copies."""

    looped_message_count: int = 0


@dataclass(eq=False)
class FakeBroker:
    """A broker of such addresses and queues."""

    name: str = "test-broker"
    started: bool = True
    memory: Memory = field(default_factory=Memory)
    memory_bytes: int = 0
    copy_maker: FakeCopyMaker = field(default_factory=FakeCopyMaker)
    events: Events = field(default_factory=Events)
    clock: Clock = field(default_factory=Clock)
    holdings: Holdings = field(default_factory=lambda: Holdings(Account()))
    log: MemoryLog = field(default_factory=MemoryLog)
    bindings: FakeBindings = field(default_factory=FakeBindings)
    addresses: dict[str, FakeAddress] = field(default_factory=dict)
    queues: dict[str, FakeQueue] = field(default_factory=dict)

    def add(self, address_name: str, *queue_names: str) -> list[FakeQueue]:
        """Adds an address with queues; returns the queues."""
        address = self.addresses.setdefault(address_name, FakeAddress(address_name))
        queues = [FakeQueue(name, address) for name in queue_names]
        self.queues.update((queue.name, queue) for queue in queues)
        return queues


@dataclass(eq=False)
class FakeServer:
    """The counters of a server that has just started."""

    connections_open: int = 0
    connections_total: int = 0
    sessions_open: int = 0
    sessions_total: int = 0
    large: dict[str, int] = field(default_factory=dict)
    frames_in: dict[str, int] = field(default_factory=dict)
    frames_out: dict[str, int] = field(default_factory=dict)
    bytes_in: int = 0
    bytes_out: int = 0
    turn_ns_sum: int = 0
    turn_ns_max: int = 0
    turn_buckets: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    connection_faults: dict[str, int] = field(default_factory=dict)
    clock_steps: dict[str, int] = field(default_factory=dict)
    permission_checks: Checks = field(default_factory=Checks)
    states: dict[str, int] = field(default_factory=dict)
    log: dict[str, int] = field(default_factory=dict)
    journal: dict[str, int] = field(default_factory=dict)
    cursors: list[LogCursorView] = field(default_factory=list)
    tls: list[TlsView] = field(default_factory=list)
    bridges: dict[str, dict[str, int]] = field(default_factory=dict)
    authenticated: dict[str, int] = field(default_factory=lambda: {"failure": 0, "success": 0})
    refused_logins: dict[str, int] = field(default_factory=dict)
    logins: dict[str, int] = field(default_factory=dict)
    delays: Histogram = field(default_factory=lambda: Histogram([1, 10], 1_000))
    sync_times: Histogram | None = None
    waited_ns: int = 0
    blocked_by_reason: dict[str, int] = field(default_factory=dict)

    def blocked_ns(self) -> int:
        return self.waited_ns

    def blocked_senders(self) -> Mapping[str, int]:
        return self.blocked_by_reason

    def authentication_counts(self) -> Mapping[str, int]:
        return self.authenticated

    def login_refusals(self) -> Mapping[str, int]:
        return self.refused_logins

    def login_counts(self) -> Mapping[str, int]:
        return self.logins

    def log_counts(self) -> Mapping[str, int]:
        return self.log

    def log_cursors(self) -> Sequence[LogCursorView]:
        return self.cursors

    def configuration_figures(self) -> None:
        return None

    def tls_acceptors(self) -> Sequence[TlsView]:
        return self.tls

    def bridge_counts(self) -> Mapping[str, Mapping[str, int]]:
        return self.bridges

    def resource_counts(self) -> Mapping[str, int]:
        return {}

    def journal_counts(self) -> Mapping[str, int]:
        return self.journal

    def large_counts(self) -> Mapping[str, int]:
        return self.large

    def connections_by_state(self) -> Mapping[str, int]:
        """The states as they were set."""
        return self.states


def exporter_of(
    broker: FakeBroker,
    server: FakeServer | None = None,
    *,
    global_max_size_bytes: int = -1,
    store_directory: Path | None = None,
    disk_headroom: int | None = None,
) -> MetricsExporter:
    """An exporter of these two."""
    return MetricsExporter(
        cast(Broker, broker),
        server or FakeServer(),
        turn_bounds_s=BOUNDS_S,
        global_max_size_bytes=global_max_size_bytes,
        store_directory=store_directory,
        disk_headroom=lambda: disk_headroom,
        clock_ms=lambda: NOW_MS,
    )
