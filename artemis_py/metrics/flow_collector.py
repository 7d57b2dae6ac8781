"""How well messages flow: sums of all queues, senders that wait, room until they must, and delays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from artemis_py.histogram import Histogram
from artemis_py.metrics.queue_totals import Totals
from artemis_py.metrics.views import ServerView

if TYPE_CHECKING:
    from artemis_py.core.broker import Broker

_NS_PER_SECOND: Final = 1_000_000_000


class FlowCollector(Collector):
    """These families of one broker. ``totals`` are the sums of its queues. ``disk_headroom`` is how many bytes the disk
    may take before senders are held back, ``memory_max_bytes`` the limit of all addresses (-1: none).
    """

    def __init__(
        self,
        broker: Broker,
        server: ServerView,
        *,
        totals: Callable[[], Totals],
        disk_headroom: Callable[[], int | None],
        memory_max_bytes: int,
    ) -> None:
        self._broker = broker
        self._server = server
        self._totals = totals
        self._disk_headroom = disk_headroom
        self._memory_max_bytes = memory_max_bytes

    def describe(self) -> Iterable[Metric]:
        """Returns nothing: no other collector has these names, and registration need not read the broker."""
        return []

    def collect(self) -> Iterable[Metric]:
        """All of them; a limit that does not exist has no headroom."""
        server, totals = self._server, self._totals()
        yield self._gauge("artemis_total_pending_message_count", "Messages in all queues", totals.pending)
        for name, text, count in (
            ("artemis_total_produced_message_count", "Messages added to queues since the start", totals.added),
            ("artemis_total_consumed_message_count", "Messages acknowledged since the start", totals.acknowledged),
            ("artemis_connections_opened", "Connections that clients opened", server.connections_total),
            (
                "artemis_connections_closed",
                "Connections that ended",
                server.connections_total - server.connections_open,
            ),
            (
                "artemis_blocked_seconds",
                "How long senders have waited for room, all together",
                server.blocked_ns() / _NS_PER_SECOND,
            ),
        ):
            yield self._counter(name, text, count)
        yield self._blocked()
        disk_bytes = self._disk_headroom()
        if disk_bytes is not None:
            yield self._gauge(
                "artemis_disk_headroom_bytes", "Bytes that may be written until disk-full-policy applies", disk_bytes
            )
        if self._memory_max_bytes > 0:
            yield self._gauge(
                "artemis_memory_headroom_bytes",
                "Bytes that all addresses may still hold until global-max-size is reached",
                max(self._memory_max_bytes - self._broker.memory_bytes, 0),
            )
        yield self._histogram(
            "artemis_delivery_delay_seconds",
            "From the arrival of a message to its first or next delivery, of one message a turn; whole milliseconds",
            server.delays,
        )
        if server.sync_times is not None:
            yield self._histogram(
                "artemis_journal_sync_duration_seconds",
                "How long it took to write and sync a batch of the journal",
                server.sync_times,
            )

    def _blocked(self) -> Metric:
        text = "Connections that wait now, by reason (artemis-py why blocked-connection)"
        family = GaugeMetricFamily("artemis_blocked_senders", text, labels=["broker", "reason"])
        for reason, count in sorted(self._server.blocked_senders().items()):
            family.add_metric([self._broker.name, reason], count)
        return family

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        family = GaugeMetricFamily(name, text, labels=["broker"])
        family.add_metric([self._broker.name], value)
        return family

    def _counter(self, name: str, text: str, value: float) -> Metric:
        family = CounterMetricFamily(name, text, labels=["broker"])
        family.add_metric([self._broker.name], value)
        return family

    def _histogram(self, name: str, text: str, values: Histogram) -> Metric:
        """In OpenMetrics each bucket shows the last message that fell into it."""
        unit = values.unit
        bounds = [*(str(bound / unit) for bound in values.bounds), "+Inf"]
        examples = {
            index: Exemplar({"message_id": str(message_id)}, value / unit, at_ms / 1000)
            for index, (message_id, value, at_ms) in values.examples.items()
        }
        family = HistogramMetricFamily(name, text, labels=["broker"])
        family.add_metric(
            [self._broker.name],
            buckets=[
                (bound, float(count), examples[index]) if index in examples else (bound, float(count))
                for index, (bound, count) in enumerate(zip(bounds, accumulate(values.counts), strict=True))
            ],
            sum_value=values.sum / unit,
        )
        return family
