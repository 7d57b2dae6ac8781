"""Dashboards about messages: overview, queues, one queue, losses."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from monitoring.dashboards.panels import OF_ADDRESS, RATE, AnyPanel, B, figure, lines, queue_variable, rows, screen, top

_ACKED: Final = f"rate(artemis_messages_acknowledged{{{B}}}{RATE})"
_DRAIN: Final = f"artemis_message_count{{{B}}} / (rate(artemis_messages_acknowledged{{{B}}}[5m]) > 0)"
SEVERITIES: Final = ("critical", "warning", "info")
"""Of alerts, the worst first."""
_UNITS: Final = {
    "Oldest": "s",
    "Time to drain": "s",
    "In/s": "short",
    "Acked/s": "short",
    "Dropped/s": "short",
    "Bytes": "bytes",
}
_DEAD: Final = "(?i).*(dlq|dead|expiry).*"
_ALIVE: Final = f'{B},queue!~"{_DEAD}"'
_Q: Final = f'{B},queue="$queue"'


def _sum_of_rates(name: str) -> str:
    return f"sum(rate({name}{{{B}}}{RATE}))"


def _alerts() -> AnyPanel:
    """What fires now, the worst first, and for how long its condition has held."""
    firing = 'ALERTS{alertname=~"Artemis.*",alertstate="firing"}'
    active = f'(time() - ALERTS_FOR_STATE{{alertname=~"Artemis.*"}}) and ignoring (alertstate) {firing}'
    for rank, severity in enumerate(SEVERITIES, 1):
        active = f'label_replace({active}, "rank", "{rank}", "severity", "{severity}")'
    return rows(
        "Alerts",
        {"Active for": active},
        {"Active for": "s"},
        text="What each means, and what to do: docs/monitoring.md",
        widths={"Alert": 260},
        rank="rank",
        hidden=(),  # a broker that cannot be scraped has only the label of its instance
    )


def overview() -> Dashboard:
    """Is it taking messages, is anything blocked, lost or stuck, how much room is left."""
    started = f"time() - process_start_time_seconds * on (instance) group_left (broker) artemis_active{{{B}}}"
    is_up = [
        figure("Active brokers", f"sum(artemis_active{{{B}}})"),
        figure("Version", f"count by (version) (artemis_build_info{{{B}}})", legend="{{version}}"),
        figure("Up for", f"min({started})", "s"),
        figure("Connections", f"sum(artemis_connection_count{{{B}}})"),
        figure("Queues", f"sum(artemis_queues{{{B}}})"),
        figure("Messages", f"sum(artemis_total_pending_message_count{{{B}}})"),
        figure("In/s", _sum_of_rates("artemis_total_produced_message_count_total")),
        figure("Acknowledged/s", _sum_of_rates("artemis_total_consumed_message_count_total")),
    ]
    blocked = f'sum(artemis_connections{{{B},state="%s"}})'
    losses = [
        figure("Blocked senders", blocked % "blocked", bad_from=1),
        figure("Stalled clients", blocked % "stalled", bad_from=1),
        figure("Ring drops/s", _sum_of_rates("artemis_messages_replaced"), bad_from=1),
        figure("Address drops/s", _sum_of_rates("artemis_messages_dropped"), bad_from=0.001),
        figure("Killed/s", _sum_of_rates("artemis_messages_killed"), bad_from=0.001),
        figure("Expired/s", _sum_of_rates("artemis_messages_expired"), bad_from=1),
        figure("Unrouted/s", _sum_of_rates("artemis_unrouted_message_count"), bad_from=1),
        figure("Full addresses", f"count(artemis_limit_percent{{{B}}} >= 80) or vector(0)", bad_from=1),
    ]
    stuck = top(
        "Queues with messages and no acknowledgement for five minutes",
        {
            "Messages": f"artemis_message_count{{{_ALIVE}}}"
            f" and increase(artemis_messages_acknowledged{{{_ALIVE}}}[5m]) == 0",
            "Oldest": f"artemis_oldest_message_age_seconds{{{B}}}",
            "Consumers": f"artemis_consumer_count{{{B}}}",
            "In delivery": f"artemis_delivering_message_count{{{B}}}",
        },
        _UNITS,
        text="Without consumers, or with consumers that do not acknowledge. The 20 deepest; queues of dead and expired"
        " messages are left out.",
    )
    room = [
        lines(
            "Room on the disk until senders are held back",
            {"{{broker}}": f"artemis_disk_headroom_bytes{{{B}}}"},
            "bytes",
            span=8,
        ),
        lines(
            "Room in memory until global-max-size",
            {"{{broker}}": f"artemis_memory_headroom_bytes{{{B}}}"},
            "bytes",
            span=8,
        ),
        lines("Senders that wait", {"{{broker}}": f"rate(artemis_blocked_seconds_total{{{B}}}{RATE})"}, span=8),
    ]
    flow = [
        lines(
            "Messages per second",
            {
                "in {{broker}}": f"rate(artemis_total_produced_message_count_total{{{B}}}{RATE})",
                "acknowledged {{broker}}": f"rate(artemis_total_consumed_message_count_total{{{B}}}{RATE})",
            },
        ),
        lines("Messages", {"{{broker}}": f"artemis_total_pending_message_count{{{B}}}"}),
    ]
    return screen(
        "artemis-overview",
        "overview",
        "Is the broker taking messages, and is anything blocked, lost or stuck?",
        [
            ("Is it up and taking messages?", is_up),
            ("Is anything blocked or lost?", [*losses, _alerts()]),
            ("Is anything stuck?", [stuck]),
            ("How much flows, and how much room is left?", [*flow, *room]),
        ],
    )


def queues() -> Dashboard:
    """The queues that matter most, in tables of twenty."""
    columns = {
        "Messages": f"artemis_message_count{{{B}}}",
        "Oldest": f"artemis_oldest_message_age_seconds{{{B}}}",
        "Consumers": f"artemis_consumer_count{{{B}}}",
        "In delivery": f"artemis_delivering_message_count{{{B}}}",
        "In/s": f"rate(artemis_messages_added{{{B}}}{RATE})",
        "Acked/s": _ACKED,
        "Time to drain": _DRAIN,
    }

    def led_by(header: str) -> dict[str, str]:
        return {header: columns[header], **columns}

    half = 12
    return screen(
        "artemis-queues",
        "queues",
        "The twenty queues with most messages, oldest messages, traffic or bytes.",
        [
            ("Deepest", [top("Queues with most messages", columns, _UNITS)]),
            ("Oldest", [top("Queues with the oldest messages", led_by("Oldest"), _UNITS)]),
            ("Busiest", [top("Queues with most traffic", led_by("In/s"), _UNITS)]),
            (
                "Largest and slowest",
                [
                    top("Queues with most bytes", {"Bytes": f"artemis_persistent_size{{{B}}}"}, _UNITS, span=half),
                    top("Queues with slow consumers", {"Slow": f"artemis_slow_consumers{{{B}}}"}, span=half),
                    top(
                        "Queues without consumers",
                        {"Messages": f"artemis_message_count{{{B}}} and artemis_consumer_count{{{B}}} == 0"},
                        span=half,
                    ),
                    lines("Queues and addresses", {
                        "queues {{broker}}": f"artemis_queues{{{B}}}",
                        "addresses {{broker}}": f"artemis_addresses{{{B}}}",
                    }),
                ],
            ),
        ],
    )  # fmt: skip


def _leases() -> list[AnyPanel]:
    """What consumers of a queue hold, and what they held for too long."""
    return [
        lines(
            "Leased messages, and consumers at their backlog",
            {
                "leased": f"artemis_leased_messages{{{_Q}}}",
                "consumers at their backlog": f"artemis_consumers_at_backlog{{{_Q}}}",
            },
            text="A consumer at its backlog gets nothing until it acknowledges: docs/queues.md",
        ),
        lines(
            "Leases that ended per second",
            {"ended": f"rate(artemis_leases_ended{{{_Q}}}{RATE})"},
            text="Consumers held these messages for too long, and others get them.",
        ),
    ]


def one_queue() -> Dashboard:
    """Everything about one queue."""
    depth = lines(
        "Messages",
        {
            "all": f"artemis_message_count{{{_Q}}}",
            "in delivery": f"artemis_delivering_message_count{{{_Q}}}",
            "scheduled": f"artemis_scheduled_message_count{{{_Q}}}",
            "in pages": f"artemis_paged_messages{{{_Q}}}",
        },
    )
    rates = lines(
        "Messages per second",
        {
            "in": f"rate(artemis_messages_added{{{_Q}}}{RATE})",
            "acknowledged": f"rate(artemis_messages_acknowledged{{{_Q}}}{RATE})",
            "dropped or replaced": f"rate(artemis_messages_replaced{{{_Q}}}{RATE})",
            "expired": f"rate(artemis_messages_expired{{{_Q}}}{RATE})",
            "killed": f"rate(artemis_messages_killed{{{_Q}}}{RATE})",
        },
    )
    ages = lines(
        "Age of the oldest message",
        {
            "all": f"artemis_oldest_message_age_seconds{{{_Q}}}",
            "in delivery": f"artemis_oldest_delivering_message_age_seconds{{{_Q}}}",
        },
        "s",
    )
    drain = f"artemis_message_count{{{_Q}}} / (rate(artemis_messages_acknowledged{{{_Q}}}{RATE}) > 0)"
    return screen(
        "artemis-queue",
        "one queue",
        "Everything about one queue.",
        [
            ("Messages", [depth, rates]),
            (
                "Waiting",
                [
                    ages,
                    lines(
                        "Time to drain",
                        {"at the present rate": f"{drain} or artemis_message_count{{{_Q}}} * 0"},
                        "s",
                        text="Messages divided by those acknowledged per second; 0 while nobody acknowledges.",
                    ),
                ],
            ),
            (
                "Consumers and size",
                [
                    lines(
                        "Consumers",
                        {
                            "all": f"artemis_consumer_count{{{_Q}}}",
                            "slow": f"artemis_slow_consumers{{{_Q}}}",
                            "senders wait": f"artemis_queue_flow_stopped{{{_Q}}}",
                        },
                    ),
                    lines(
                        "Bytes",
                        {
                            "all": f"artemis_persistent_size{{{_Q}}}",
                            "in delivery": f"artemis_delivering_persistent_size{{{_Q}}}",
                            "durable": f"artemis_durable_persistent_size{{{_Q}}}",
                        },
                        "bytes",
                    ),
                ],
            ),
            ("Leases and backlogs", _leases()),
        ],
        [queue_variable()],
        page="queues/${queue:percentencode}",
    )


def losses() -> Dashboard:
    """What rings, full addresses, expiry and failed deliveries took."""
    reasons = {
        "ring or last value": _sum_of_rates("artemis_messages_replaced"),
        "full address": _sum_of_rates("artemis_messages_dropped"),
        "expired": _sum_of_rates("artemis_messages_expired"),
        "killed": _sum_of_rates("artemis_messages_killed"),
        "unrouted": _sum_of_rates("artemis_unrouted_message_count"),
        "in a loop": _sum_of_rates("artemis_messages_looped"),
    }
    dead = f'{B},queue=~"{_DEAD}"'
    half = 12
    return screen(
        "artemis-losses",
        "ring, drops, dead letters",
        "Messages that left a queue other than by an acknowledgement.",
        [
            (
                "How many",
                [
                    lines("Messages lost per second, by reason", reasons),
                    lines(
                        "Events of queues per second, by code",
                        {"{{event}}": f"sum by (event) (rate(artemis_queue_events_total{{{B}}}{RATE})) > 0"},
                                        text="The codes of the operational log: docs/queues.md",
                    ),
                ],
            ),
            (
                "Where",
                [
                    top(
                        "Rings",
                        {
                            "Dropped/s": f"rate(artemis_messages_replaced{{{B}}}{RATE})",
                            "Messages": f"artemis_message_count{{{B}}}",
                            "Consumers": f"artemis_consumer_count{{{B}}}",
                        },
                        span=half,
                    ),
                    top("Killed", {"Killed": f"artemis_messages_killed{{{B}}}"}, span=half),
                    top("Dropped by full addresses", {"Dropped": f"artemis_messages_dropped{{{B}}}"}, by=OF_ADDRESS,
                        span=half),
                    top("Unrouted", {"Unrouted": f"artemis_unrouted_message_count{{{B}}}"}, by=OF_ADDRESS, span=half),
                ],
            ),
            (
                "Dead letters",
                [
                    top(
                        "Queues of dead and expired messages",
                        {
                            "Messages": f"artemis_message_count{{{dead}}}",
                            "Oldest": f"artemis_oldest_message_age_seconds{{{dead}}}",
                        },
                        _UNITS,
                        span=half,
                    ),
                    top("Expired", {"Expired": f"artemis_messages_expired{{{B}}}"}, span=half),
                ],
            ),
        ],
    )  # fmt: skip
