"""Every metric of an address or a queue: its name, its source, its help text.

Artemis registers all of its meters as gauges, including counts, so none of them ends in ``_total``; dashboards made for
Artemis use exactly these names. Metrics that Artemis does not have get new names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from artemis_py.core.addresses.address import Address
    from artemis_py.core.queue.queue import Queue
    from artemis_py.metrics.queues import Look
    from artemis_py.metrics.views import LogCursorView, TlsView

Owner = TypeVar("Owner")


class Gauge(NamedTuple, Generic[Owner]):
    """``read`` is called with the address or queue on a scrape; ``help`` has no quote and no backslash."""

    name: str
    read: Callable[[Owner], int]
    help: str


def durable(read: Callable[[Queue], int]) -> Callable[[Queue], int]:
    """Only the durable part: durable messages of a durable queue; other queues have none."""
    return lambda queue: read(queue) if queue.durable else 0


LARGE_GAUGES: Final = (
    ("artemis_large_messages", "bodies", "Large bodies in files of their own, including those being received"),
    ("artemis_large_message_bytes", "bytes", "Bytes of these bodies"),
    ("artemis_large_message_unwritten_bytes", "unwritten_bytes", "Bytes of these bodies not yet written to disk"),
    (
        "artemis_large_messages_without_room",
        "refused",
        ("Large bodies refused since the start because the disk had no room"),
    ),
)
"""Name, the store's count, help."""

RESOURCE_GAUGES: Final = (
    (
        "artemis_disk_reserve_bytes",
        "reserve_bytes",
        ("Bytes reserved on the disks for writes that must succeed when they are full"),
    ),
    ("artemis_disk_reserve_taken_bytes", "reserve_taken_bytes", "Bytes of the reserve in use or not obtained"),
    ("artemis_disk_without_room", "is_short", "1 from the time a file did not fit until the reserve is whole again"),
    ("artemis_descriptors_max", "descriptors_max", "File descriptors the process may have"),
    (
        "artemis_descriptors_stomp_max",
        "stomp_descriptors_max",
        ("Descriptors that STOMP may use; the rest are kept for HTTP and storage"),
    ),
    ("artemis_acceptors_paused", "paused", "Acceptors that accept no connections now for lack of descriptors"),
    ("artemis_acceptor_pauses", "pauses", "Times an acceptor stopped accepting since the start"),
)
"""Name, the server's count, help."""

LOG_GAUGES: Final = (
    ("artemis_log_retained_files", "retained_files", "Files in the retention directory"),
    ("artemis_log_retained_bytes", "retained_bytes", "Bytes of these files"),
    (
        "artemis_log_overrun_files",
        "overrun_files",
        "Files removed since the start because the disk was full, although a cursor held them",
    ),
    ("artemis_log_overrun_bytes", "overrun_bytes", "Bytes of these files"),
)
"""Name, the log's count, help."""

TLS_GAUGES: Final[tuple[tuple[str, Callable[[TlsView], float], str], ...]] = (
    (
        "artemis_tls_certificate_expiry_timestamp_seconds",
        lambda it: it.expires_s,
        "When the acceptor's certificate expires, in seconds since 1970",
    ),
    (
        "artemis_tls_files_stale",
        lambda it: float(it.is_stale),
        "1 while a changed key or trust store cannot be used (sslAutoReload)",
    ),
)
"""Name, the acceptor's value, help."""

BRIDGE_GAUGES: Final = (
    ("artemis_bridge_started", "started", "1 while the bridge is to be connected"),
    ("artemis_bridge_connections", "connections", "Connections of the bridge to the other broker"),
    (
        "artemis_bridge_messages_pending_acknowledgement",
        "pending",
        "Messages on the way to the other broker, which it has not confirmed",
    ),
)
BRIDGE_COUNTERS: Final = (
    ("artemis_bridge_messages_acknowledged", "acknowledged", "Messages that the other broker has confirmed"),
    ("artemis_bridge_messages_refused", "refused", "Times that it has refused a message"),
    ("artemis_bridge_messages_looped", "looped", "Times that a message came back that the bridge had forwarded"),
)
"""Name, the bridge's count, help."""

CURSOR_GAUGES: Final[tuple[Gauge[LogCursorView], ...]] = (
    Gauge("artemis_log_cursor_lsn", lambda it: it.cursor.lsn, "The cursor has read everything up to this lsn"),
    Gauge(
        "artemis_log_cursor_lag_bytes",
        lambda it: it.lag_bytes,
        ("Approximate bytes of the log not yet read by the cursor"),
    ),
    Gauge("artemis_log_cursor_holds", lambda it: int(it.holds), "1 while the cursor holds retained files back"),
    Gauge("artemis_log_cursor_idle_seconds", lambda it: it.idle_ms // 1000, "Seconds since the cursor was moved"),
)

ADDRESS_GAUGES: Final[tuple[Gauge[Address], ...]] = (
    Gauge(
        "artemis_routed_message_count", lambda it: it.routed_message_count, ("Messages routed to at least one binding")
    ),
    Gauge(
        "artemis_unrouted_message_count",
        lambda it: it.unrouted_message_count,
        "Messages that no queue took, here or behind a divert",
    ),
    Gauge(
        "artemis_messages_dropped",
        lambda it: it.dropped_message_count,
        "Messages that a full address with policy DROP discarded",
    ),
    Gauge("artemis_address_size", lambda it: it.size_bytes, "Estimated memory of the address' messages in bytes"),
    Gauge("artemis_number_of_pages", lambda it: it.number_of_pages, "Page files of the address"),
    Gauge("artemis_limit_percent", lambda it: it.limit_percent, "Percent of the address' limit in use"),
)

_PRESENT: Final[tuple[Gauge[Queue], ...]] = (
    Gauge(
        "artemis_message_count",
        lambda queue: queue.message_count,
        "Messages in the queue: ready, scheduled, in delivery and paged",
    ),
    Gauge(
        "artemis_durable_message_count",
        durable(lambda queue: queue.contents.counters.durable_count),
        "Durable messages in the queue",
    ),
    Gauge(
        "artemis_persistent_size",
        lambda queue: queue.contents.counters.size_bytes,
        "Encoded bytes of the messages in the queue",
    ),
    Gauge(
        "artemis_durable_persistent_size",
        durable(lambda queue: queue.contents.counters.durable_size_bytes),
        "Encoded bytes of the durable messages in the queue",
    ),
)

_DELIVERING: Final[tuple[Gauge[Queue], ...]] = (
    Gauge(
        "artemis_delivering_message_count",
        lambda queue: queue.contents.delivering_count,
        "Messages sent to consumers and not yet settled",
    ),
    Gauge(
        "artemis_delivering_durable_message_count",
        durable(lambda queue: queue.contents.counters.held_durable_count),
        "Durable messages sent to consumers and not yet settled",
    ),
    Gauge(
        "artemis_delivering_persistent_size",
        lambda queue: queue.contents.counters.held_size_bytes,
        "Encoded bytes of the messages sent to consumers and not yet settled",
    ),
    Gauge(
        "artemis_delivering_durable_persistent_size",
        durable(lambda queue: queue.contents.counters.held_durable_size_bytes),
        "Encoded bytes of the durable messages sent to consumers and not yet settled",
    ),
)

_SCHEDULED: Final[tuple[Gauge[Queue], ...]] = (
    Gauge(
        "artemis_scheduled_message_count",
        lambda queue: len(queue.contents.scheduled),
        "Scheduled messages",
    ),
    Gauge(
        "artemis_scheduled_durable_message_count",
        durable(lambda queue: queue.contents.counters.scheduled_durable_count),
        "Durable scheduled messages",
    ),
    Gauge(
        "artemis_scheduled_persistent_size",
        lambda queue: queue.contents.counters.scheduled_size_bytes,
        "Encoded bytes of the scheduled messages",
    ),
    Gauge(
        "artemis_scheduled_durable_persistent_size",
        durable(lambda queue: queue.contents.counters.scheduled_durable_size_bytes),
        "Encoded bytes of the durable scheduled messages",
    ),
)

_COUNTERS: Final[tuple[Gauge[Queue], ...]] = (
    Gauge(
        "artemis_messages_added",
        lambda queue: queue.contents.counters.added,
        "Messages added since the queue was created, including those a ring dropped at once",
    ),
    Gauge(
        "artemis_messages_acknowledged",
        lambda queue: queue.contents.counters.acknowledged,
        "Messages acknowledged since the queue was created",
    ),
    Gauge(
        "artemis_messages_killed",
        lambda queue: queue.contents.counters.killed,
        "Messages removed after too many delivery attempts or by purge",
    ),
    Gauge(
        "artemis_messages_expired",
        lambda queue: queue.contents.counters.expired,
        "Messages that expired",
    ),
    Gauge(
        "artemis_messages_replaced",
        lambda queue: queue.contents.counters.replaced,
        "Messages dropped by a ring or replaced by a newer last value",
    ),
    Gauge(
        "artemis_paged_messages",
        lambda queue: queue.contents.paged.count,
        "Messages of the queue in pages and not in memory",
    ),
    Gauge(
        "artemis_queue_alerts",
        lambda queue: 0 if queue.alerts is None else queue.alerts.alerts.raised_count,
        "Alerts raised since the start for breached thresholds of depth, size and age",
    ),
    Gauge(
        "artemis_queue_flow_stopped",
        lambda queue: int(queue.flow.stopped),
        "1 while senders wait for the queue's depth to fall",
    ),
    Gauge(
        "artemis_queue_keeps_messages",
        lambda queue: int(queue.keeps_messages),
        "1 for rings and non-destructive queues, whose messages wait for nobody",
    ),
    Gauge(
        "artemis_leased_messages",
        lambda queue: 0 if queue.contents.leases is None else len(queue.contents.leases),
        "Messages that consumers hold under a lease",
    ),
    Gauge(
        "artemis_leases_ended",
        lambda queue: 0 if queue.contents.leases is None else queue.contents.leases.ended_count,
        "Leases that ended since the start because a consumer held a message for too long",
    ),
    Gauge(
        "artemis_consumer_count",
        lambda queue: queue.consumer_count,
        "Consumers of the queue",
    ),
)

QUEUE_GAUGES: Final[tuple[Gauge[Queue], ...]] = _PRESENT + _DELIVERING + _SCHEDULED + _COUNTERS

LOOK_GAUGES: Final[tuple[Gauge[Look], ...]] = (
    Gauge(
        "artemis_oldest_message_age_seconds",
        lambda look: look.age_s,
        "Age of the oldest message that is ready or in delivery; 0 without one",
    ),
    Gauge(
        "artemis_oldest_delivering_message_age_seconds",
        lambda look: look.delivering_age_s,
        "Age of the oldest message sent to a consumer and not yet settled; 0 without one",
    ),
    Gauge(
        "artemis_slow_consumers",
        lambda look: look.slow_count,
        "Consumers without room or window while messages are ready: their clients do not read or acknowledge",
    ),
    Gauge(
        "artemis_consumers_at_backlog",
        lambda look: look.full_count,
        "Consumers that hold as many messages as their backlog allows",
    ),
)
"""What a look at the queue finds."""

ALIAS_GAUGES: Final[tuple[Gauge[Queue], ...]] = (
    Gauge("broker_queue_message_count", lambda queue: queue.message_count, "As artemis_message_count"),
    Gauge("broker_queue_consumer_count", lambda queue: queue.consumer_count, "As artemis_consumer_count"),
    Gauge(
        "broker_queue_delivering_count",
        lambda queue: queue.contents.delivering_count,
        "As artemis_delivering_message_count",
    ),
    Gauge(
        "broker_queue_persistent_size", lambda queue: queue.contents.counters.size_bytes, "As artemis_persistent_size"
    ),
)
"""The names of the ArkMQ operator's broker service, which dashboards made for it query. They have one label more, the
routing type.
"""
