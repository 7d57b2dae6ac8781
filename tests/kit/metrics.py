"""What the metrics tell of a broker in the process, which serves nobody."""

from __future__ import annotations

from pathlib import Path

from artemis_py.core.broker import Broker
from artemis_py.metrics import MetricsExporter
from artemis_py.server.stats import TURN_BUCKET_BOUNDS_S, ServerStats
from tests.kit.core import NOW_MS, broker_of


def exporter_of(
    broker: Broker | None = None,
    stats: ServerStats | None = None,
    *,
    now_ms: int = NOW_MS,
    global_max_size_bytes: int = -1,
    store_directory: Path | None = None,
    disk_headroom: int | None = None,
) -> MetricsExporter:
    """Without a broker it is one without queues; without ``stats`` nothing was ever connected."""
    return MetricsExporter(
        broker or broker_of(),
        stats or ServerStats(),
        turn_bounds_s=TURN_BUCKET_BOUNDS_S,
        global_max_size_bytes=global_max_size_bytes,
        store_directory=store_directory,
        disk_headroom=lambda: disk_headroom,
        clock_ms=lambda: now_ms,
    )
