"""The families of the broker, of its queues, and of how well messages flow, for prometheus-client: they count nothing
and read everything on a scrape.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from artemis_py.core.events import MEANINGS
from artemis_py.histogram import Histogram
from artemis_py.metrics.catalogue import (
    ADDRESS_GAUGES,
    ALIAS_GAUGES,
    BRIDGE_COUNTERS,
    BRIDGE_GAUGES,
    CURSOR_GAUGES,
    LARGE_GAUGES,
    LOG_GAUGES,
    LOOK_GAUGES,
    QUEUE_GAUGES,
    RESOURCE_GAUGES,
    TLS_GAUGES,
)
from artemis_py.metrics.exposition import shown_addresses, shown_queues
from artemis_py.metrics.queues import Totals, look_at
from artemis_py.metrics.views import ServerView
from artemis_py.version import IS_COMPILED, VERSION

if TYPE_CHECKING:
    from artemis_py.core.broker import Broker

NS_PER_SECOND: Final = 1_000_000_000


class BrokerCollector(Collector):
    """The families of the broker as a whole, its connections and its turns."""

    def __init__(
        self,
        broker: Broker,
        server: ServerView,
        *,
        turn_bounds_s: Sequence[float],
        global_max_size_bytes: int,
        disk_usage: Callable[[], float],
        scrape_seconds: Callable[[], float],
    ) -> None:
        self._broker = broker
        self._server = server
        self._turn_bounds_s = turn_bounds_s
        self._global_max_size_bytes = global_max_size_bytes
        self._disk_usage = disk_usage
        self._scrape_seconds = scrape_seconds

    def describe(self) -> Iterable[Metric]:
        """Returns nothing: no other collector has these names, and registration need not read the broker."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Artemis' broker gauges, then our own families."""
        yield from self._artemis_gauges()
        yield from self._authentication()
        yield from self._connections()
        yield from self._holdings()
        yield from self._traffic()
        yield self._events()
        yield from self._turns()
        yield from self._clock()
        for name, value in self._server.journal_counts().items():
            yield self._gauge(f"artemis_journal_{name}", f"Journal: {name.replace('_', ' ')}", value)
        counts = self._server.large_counts()
        for name, key, text in LARGE_GAUGES:
            yield self._gauge(name, text, counts.get(key, 0))
        yield self._gauge("artemis_disk_full", "1 while disk-full-policy applies", int(self._broker.memory.disk_full))
        counts = self._server.resource_counts()
        for name, key, text in RESOURCE_GAUGES:
            yield self._gauge(name, text, counts.get(key, 0))
        yield from self._configuration()
        yield from self._tls()
        yield from self._bridges()
        yield from self._log()
        yield self._build()
        yield self._gauge("artemis_scrape_duration_seconds", "Duration of the previous scrape", self._scrape_seconds())

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        family = GaugeMetricFamily(name, text, labels=["broker"])
        family.add_metric([self._broker.name], value)
        return family

    def _artemis_gauges(self) -> Iterable[Metric]:
        broker, server, gauge = self._broker, self._server, self._gauge
        yield gauge("artemis_active", "1 while the broker is started", float(broker.started))
        yield gauge("artemis_replica_sync", "1 while a backup is in sync; always 0, there is no backup", 0)
        yield gauge("artemis_connection_count", "Connections open now", server.connections_open)
        yield gauge("artemis_total_connection_count", "Connections since the start", server.connections_total)
        yield gauge("artemis_session_count", "Sessions open now", server.sessions_open)
        yield gauge("artemis_total_session_count", "Sessions since the start", server.sessions_total)
        yield gauge("artemis_addresses", "Addresses that exist now, limited by max-addresses", len(broker.addresses))
        yield gauge("artemis_queues", "Queues that exist now, limited by max-queues", len(broker.queues))
        yield gauge("artemis_address_memory_usage", "Estimated memory of all addresses in bytes", broker.memory_bytes)
        yield gauge(
            "artemis_messages_looped",
            "Copies dropped because they were forwarded in a loop",
            broker.copy_maker.looped_message_count,
        )
        limit = self._global_max_size_bytes
        percent = broker.memory_bytes * 100 // limit if limit > 0 else 0
        yield gauge(
            "artemis_address_memory_usage_percentage",
            ("Memory of all addresses in percent of global-max-size; 0 without a limit"),
            percent,
        )
        yield gauge(
            "artemis_disk_store_usage", "Used share of the disk that stores messages, 0 to 1", self._disk_usage()
        )

    def _authentication(self) -> Iterable[Metric]:
        checks = self._server.permission_checks
        authorized = {"failure": checks.failure, "success": checks.success}
        for name, text, counts in (
            ("artemis_authentication_count", "Attempts to log in, by result", self._server.authentication_counts()),
            ("artemis_authorization_count", "Permission checks, by result", authorized),
        ):
            family = GaugeMetricFamily(name, text, labels=["broker", "result"])
            for result, count in counts.items():
                family.add_metric([self._broker.name, result], count)
            yield family
        text = "Logins refused, and connections closed before a login or because it ended, by reason"
        refusals = CounterMetricFamily("artemis_login_refusals", text, labels=["broker", "reason"])
        for reason, count in self._server.login_refusals().items():
            refusals.add_metric([self._broker.name, reason], count)
        yield refusals
        counts = self._server.login_counts()
        verified = CounterMetricFamily(
            "artemis_logins_verified",
            "Logins that an authenticator verified; others were remembered",
            labels=["broker"],
        )
        verified.add_metric([self._broker.name], counts.get("verified", 0))
        yield verified
        yield self._gauge("artemis_logins_waiting", "Logins not decided yet", counts.get("waiting", 0))
        text = "Files of users, roles, certificates and keys that are wrong as they are, and not in force"
        yield self._gauge("artemis_login_files_stale", text, counts.get("stale", 0))

    def _connections(self) -> Iterable[Metric]:
        family = GaugeMetricFamily("artemis_connections", "Connections open now, by state", labels=["broker", "state"])
        for state, count in self._server.connections_by_state().items():
            family.add_metric([self._broker.name, state], count)
        yield family
        faults = CounterMetricFamily(
            "artemis_connection_faults", "Steps of connections that failed", labels=["broker", "step"]
        )
        for step, count in self._server.connection_faults.items():
            faults.add_metric([self._broker.name, step], count)
        yield faults

    def _clock(self) -> Iterable[Metric]:
        text = "Times the wall clock was set by a second or more"
        steps = CounterMetricFamily("artemis_clock_steps", text, labels=["broker", "direction"])
        for direction, count in self._server.clock_steps.items():
            steps.add_metric([self._broker.name, direction], count)
        yield steps
        yield self._gauge(
            "artemis_clock_shift_seconds",
            "How far the wall clock was set since the start; negative: back",
            self._broker.clock.shift_ms / 1000,
        )

    def _holdings(self) -> Iterable[Metric]:
        name, holdings = self._broker.name, self._broker.holdings
        kinds = GaugeMetricFamily("artemis_held_bytes", "Memory held for clients, by kind", labels=["broker", "kind"])
        for kind, size_bytes in holdings.by_kind().items():
            kinds.add_metric([name, kind], size_bytes)
        yield kinds
        yield self._gauge(
            "artemis_held_bytes_max",
            ("Limit on the memory held for clients (global-max-held-size)"),
            holdings.bytes_max,
        )
        for metric, text, count in (
            ("artemis_held_refusals", "Requests refused at this limit", holdings.refused_count),
            ("artemis_held_cut_offs", "Connections closed at this limit", holdings.cut_off_count),
        ):
            family = CounterMetricFamily(metric, text, labels=["broker"])
            family.add_metric([name], count)
            yield family

    def _traffic(self) -> Iterable[Metric]:
        name, server = self._broker.name, self._server
        frames = CounterMetricFamily("artemis_frames", "STOMP frames", labels=["broker", "command", "direction"])
        directions: tuple[tuple[str, Mapping[str, int]], ...] = (("in", server.frames_in), ("out", server.frames_out))
        for direction, counts in directions:
            for command, count in counts.items():
                frames.add_metric([name, command, direction], count)
        yield frames
        sizes = CounterMetricFamily("artemis_bytes", "Bytes on the sockets of clients", labels=["broker", "direction"])
        sizes.add_metric([name, "in"], server.bytes_in)
        sizes.add_metric([name, "out"], server.bytes_out)
        yield sizes

    def _events(self) -> Metric:
        family = CounterMetricFamily("artemis_queue_events", "Events of queues, by code", labels=["broker", "event"])
        for code in MEANINGS:
            family.add_metric([self._broker.name, code], self._broker.events.counts.get(code, 0))
        return family

    def _tls(self) -> Iterable[Metric]:
        broker, acceptors = self._broker.name, self._server.tls_acceptors()
        if not acceptors:
            return
        for name, read, text in TLS_GAUGES:
            gauge = GaugeMetricFamily(name, text, labels=["acceptor", "broker"])
            for acceptor in acceptors:
                gauge.add_metric([acceptor.name, broker], read(acceptor))
            yield gauge
        reloads = CounterMetricFamily(
            "artemis_tls_reloads", "Times that changed key or trust stores were loaded", labels=["acceptor", "broker"]
        )
        handshakes = CounterMetricFamily(
            "artemis_tls_handshakes", "TLS handshakes, by result", labels=["acceptor", "broker", "result"]
        )
        for acceptor in acceptors:
            reloads.add_metric([acceptor.name, broker], acceptor.reloads)
            for result, count in acceptor.counts.items():
                handshakes.add_metric([acceptor.name, broker, result], count)
        yield reloads
        yield handshakes

    def _bridges(self) -> Iterable[Metric]:
        broker, bridges = self._broker.name, self._server.bridge_counts()
        if not bridges:
            return
        for kind, rows in ((GaugeMetricFamily, BRIDGE_GAUGES), (CounterMetricFamily, BRIDGE_COUNTERS)):
            for name, key, text in rows:
                family = kind(name, text, labels=["bridge", "broker"])
                for bridge, counts in bridges.items():
                    family.add_metric([bridge, broker], counts[key])
                yield family

    def _configuration(self) -> Iterable[Metric]:
        found, broker = self._server.configuration_figures(), self._broker.name
        if found is None:
            return
        for name, text, value in (
            ("last_reload_successful", "1 while the configuration file as it is now is in force", int(found.is_valid)),
            (
                "last_reload_success_timestamp_seconds",
                "When the configuration in force was read, in seconds since 1970",
                found.read_ms / 1000,
            ),
            ("pending_restart", "Changes in the file that only a restart brings into force", len(found.pending)),
        ):
            yield self._gauge(f"artemis_config_{name}", text, value)
        reloads = CounterMetricFamily(
            "artemis_config_reloads", "Times that the configuration was read again, by result",
            labels=["broker", "result"],
        )  # fmt: skip
        for result, count in found.counts.items():
            reloads.add_metric([broker, result], count)
        yield reloads

    def _log(self) -> Iterable[Metric]:
        counts = self._server.log_counts()
        for name, key, text in LOG_GAUGES:
            yield self._gauge(name, text, counts.get(key, 0))
        views = self._server.log_cursors()
        for gauge in CURSOR_GAUGES:
            family = GaugeMetricFamily(gauge.name, gauge.help, labels=["broker", "cursor"])
            for view in views:
                family.add_metric([self._broker.name, view.cursor.name], gauge.read(view))
            yield family

    def _turns(self) -> Iterable[Metric]:
        server = self._server
        bounds = [*map(str, self._turn_bounds_s), "+Inf"]
        turns = HistogramMetricFamily(
            "artemis_turn_duration_seconds", "Duration of the server's turns", labels=["broker"]
        )
        turns.add_metric(
            [self._broker.name],
            buckets=list(zip(bounds, map(float, accumulate(server.turn_buckets)), strict=True)),
            sum_value=server.turn_ns_sum / NS_PER_SECOND,
        )
        yield turns
        longest = server.turn_ns_max / NS_PER_SECOND
        yield self._gauge("artemis_turn_duration_seconds_max", "The longest turn since the start", longest)

    def _build(self) -> Metric:
        family = GaugeMetricFamily(
            "artemis_build_info", "Build information; always 1", labels=["broker", "compiled", "python", "version"]
        )
        compiled = str(IS_COMPILED).lower()
        family.add_metric([self._broker.name, compiled, platform.python_version(), VERSION], 1)
        return family


# ---- addresses and queues --------------------------------------------------------------------------------------------


class QueueCollector(Collector):
    """The address and queue families as objects of prometheus-client, for readers of the registry.

    A scrape over HTTP takes the same numbers from ``exposition``, which is faster.
    """

    def __init__(self, broker: Broker, clock_ms: Callable[[], int]) -> None:
        self._broker = broker
        self._clock_ms = clock_ms

    def describe(self) -> Iterable[Metric]:
        """The families without samples, so that registration reads nothing."""
        names = [(gauge.name, gauge.help) for gauge in ADDRESS_GAUGES]
        names += [(gauge.name, gauge.help) for gauge in QUEUE_GAUGES]
        names += [(gauge.name, gauge.help) for gauge in LOOK_GAUGES]
        names += [(gauge.name, gauge.help) for gauge in ALIAS_GAUGES]
        return [GaugeMetricFamily(name, text) for name, text in names]

    def collect(self) -> Iterable[Metric]:
        """One family per gauge, one sample per address or queue that is shown."""
        broker = self._broker.name
        for of_address in ADDRESS_GAUGES:
            family = GaugeMetricFamily(of_address.name, of_address.help, labels=["address", "broker"])
            for address in shown_addresses(self._broker):
                family.add_metric([address.name, broker], of_address.read(address))
            yield family
        for of_queue in QUEUE_GAUGES:
            family = GaugeMetricFamily(of_queue.name, of_queue.help, labels=["address", "broker", "queue"])
            for queue in shown_queues(self._broker):
                family.add_metric([queue.address.name, broker, queue.name], of_queue.read(queue))
            yield family
        queues = shown_queues(self._broker)
        looks = list(chain.from_iterable(look_at(queues, self._clock_ms())))
        for of_look in LOOK_GAUGES:
            family = GaugeMetricFamily(of_look.name, of_look.help, labels=["address", "broker", "queue"])
            for look in looks:
                family.add_metric([look.queue.address.name, broker, look.queue.name], of_look.read(look))
            yield family
        for alias in ALIAS_GAUGES:
            family = GaugeMetricFamily(alias.name, alias.help, labels=["address", "broker", "queue", "routing_type"])
            for queue in queues:
                labels = [queue.address.name, broker, queue.name, queue.routing_type.lower()]
                family.add_metric(labels, alias.read(queue))
            yield family


# ---- flow ------------------------------------------------------------------------------------------------------------


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
                server.blocked_ns() / NS_PER_SECOND,
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
