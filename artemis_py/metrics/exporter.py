"""One exporter per broker: registries, collectors and the response to a scrape."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from artemis_py.metrics.exposition import render_gauges
from artemis_py.metrics.queues import QueueTotals
from artemis_py.metrics.views import ServerView

if TYPE_CHECKING:
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from artemis_py.core.broker import Broker


def wall_clock_ms() -> int:
    """The date in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def _unlimited() -> None:
    return None


class MetricsExporter:
    """Answers scrapes of one broker.

    prometheus-client is imported on first use, because it would slow down the broker's start too much; ``prepare`` does
    that ahead of time, in any thread. The exporter counts nothing itself and keeps only the duration of the last
    scrape.

    ``turn_bounds_s`` are the upper bounds of ``server.turn_buckets`` in seconds. ``global_max_size_bytes`` is the limit
    of all addresses, -1 for none. ``store_directory`` is where messages are stored, None when in memory only.
    ``disk_headroom`` says how many bytes it may still take before senders are held back, None: it does not matter.
    """

    def __init__(
        self,
        broker: Broker,
        server: ServerView,
        *,
        turn_bounds_s: Sequence[float],
        global_max_size_bytes: int = -1,
        store_directory: Path | None = None,
        disk_headroom: Callable[[], int | None] = _unlimited,
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._broker = broker
        self._server = server
        self._turn_bounds_s = turn_bounds_s
        self._global_max_size_bytes = global_max_size_bytes
        self._store_directory = store_directory
        self._disk_headroom = disk_headroom
        self._clock_ms = clock_ms
        self._census = QueueTotals(broker)
        self._scrape_seconds = 0.0
        self._registries: tuple[CollectorRegistry, CollectorRegistry] | None = None

    def prepare(self) -> None:
        """Imports prometheus-client and builds the registries, so that the first scrape does not wait for it."""
        self._ensure_registries()

    @property
    def registry(self) -> CollectorRegistry:
        """The registry with every family, for readers other than ``/metrics``."""
        return self._ensure_registries()[0]

    def scrape(self, accept: str = "") -> tuple[str, Iterator[bytes]]:
        """Returns the content type that suits an ``Accept`` header, and the text in pieces.

        The reader may do other work between two pieces. The values are those of the moment when a piece is taken.
        """
        from prometheus_client.exposition import choose_encoder

        try:
            encode, content_type = choose_encoder(accept)
        except TypeError:  # prometheus-client compares a version that is no number
            encode, content_type = choose_encoder("")
        broker_registry = self._ensure_registries()[1]

        def pieces() -> Iterator[bytes]:
            busy_ns = 0
            started_ns = time.perf_counter_ns()
            for text in chain(self._census.count(), render_gauges(self._broker, self._clock_ms())):
                piece = (text or "").encode()
                busy_ns += time.perf_counter_ns() - started_ns
                yield piece
                started_ns = time.perf_counter_ns()
            # Last, because in OpenMetrics the encoder ends the text.
            piece = encode(broker_registry)
            self._scrape_seconds = (busy_ns + time.perf_counter_ns() - started_ns) / 1e9
            yield piece

        return content_type, pieces()

    def _ensure_registries(self) -> tuple[CollectorRegistry, CollectorRegistry]:
        """Registries with everything, and with everything but the address and queue families."""
        if self._registries is None:
            from prometheus_client import CollectorRegistry, ProcessCollector

            from artemis_py.metrics.collector import BrokerCollector, FlowCollector, QueueCollector

            small = CollectorRegistry()
            small.register(
                BrokerCollector(
                    self._broker,
                    self._server,
                    turn_bounds_s=self._turn_bounds_s,
                    global_max_size_bytes=self._global_max_size_bytes,
                    disk_usage=self._disk_usage,
                    scrape_seconds=lambda: self._scrape_seconds,
                )
            )
            small.register(
                FlowCollector(
                    self._broker,
                    self._server,
                    totals=self._census.take,
                    disk_headroom=self._disk_headroom,
                    memory_max_bytes=self._global_max_size_bytes,
                )
            )
            ProcessCollector(registry=small)
            everything = CollectorRegistry()
            everything.register(QueueCollector(self._broker, self._clock_ms))
            everything.register(small)
            self._registries = (everything, small)
        return self._registries

    def _disk_usage(self) -> float:
        if self._store_directory is None:
            return 0.0
        try:
            disk = os.statvfs(self._store_directory)
        except OSError:
            return 0.0
        # What only root may still use counts as used: the broker cannot have it.
        return 1 - disk.f_bavail / disk.f_blocks if disk.f_blocks else 0.0
