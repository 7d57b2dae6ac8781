"""Dashboards about the server: clients, paging and disk, latency, internals, pipeline."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from monitoring.dashboards.panels import (
    OF_ADDRESS,
    RATE,
    AnyPanel,
    B,
    figure,
    lines,
    quantiles,
    rows,
    screen,
    spread,
    top,
)

_HALF: Final = 12


def _of_process(expression: str) -> str:
    """A series of the process, which has no broker in its labels, with that of its instance."""
    return f"({expression}) * on (instance) group_left (broker) artemis_active{{{B}}}"


def _rate(name: str, by: str, matchers: str = "") -> str:
    return f"sum by ({by}) (rate({name}{{{B}{matchers}}}{RATE}))"


def clients() -> Dashboard:
    """Connections, logins, frames, and who is slow."""
    connections = [
        lines("Connections by state", {"{{state}}": f"sum by (state) (artemis_connections{{{B}}})"}),
        lines(
            "Connections opened and closed per second",
            {
                "opened {{broker}}": f"rate(artemis_connections_opened_total{{{B}}}{RATE})",
                "closed {{broker}}": f"rate(artemis_connections_closed_total{{{B}}}{RATE})",
            },
        ),
        lines(
            "Senders that wait for room",
            {"{{broker}}": f"rate(artemis_blocked_seconds_total{{{B}}}{RATE})"},
            text="Seconds waited per second: how many wait on average.",
        ),
        top(
            "Queues with slow consumers",
            {"Slow": f"artemis_slow_consumers{{{B}}}", "Consumers": f"artemis_consumer_count{{{B}}}"},
            span=_HALF,
        ),
    ]
    logins = [
        lines("Logins per second", {"{{result}}": _rate("artemis_authentication_count", "result")}),
        lines("Logins refused per second", {"{{reason}}": _rate("artemis_login_refusals_total", "reason")}),
        lines("Permission checks per second", {"{{result}}": _rate("artemis_authorization_count", "result")}),
        rows(
            "Certificates",
            {"Expires in": f"artemis_tls_certificate_expiry_timestamp_seconds{{{B}}} - time()"},
            {"Expires in": "s"},
            text="Only acceptors with TLS have one.",
            span=_HALF,
        ),
    ]
    traffic = [
        lines("Frames in", {"{{command}}": _rate("artemis_frames_total", "command", ',direction="in"')}),
        lines("Frames out", {"{{command}}": _rate("artemis_frames_total", "command", ',direction="out"')}),
        lines("Bytes", {"{{direction}}": _rate("artemis_bytes_total", "direction")}, "Bps"),
        lines("Memory held for clients", {"{{kind}}": f"sum by (kind) (artemis_held_bytes{{{B}}}) > 0"}, "bytes"),
    ]
    return screen(
        "artemis-clients",
        "clients",
        "Connections, logins and frames.",
        [("Connections", connections), ("Logins", logins), ("Traffic", traffic)],
    )


def _paging() -> list[AnyPanel]:
    """What is in pages, and how much memory is left."""
    return [
        lines("Pages", {"{{broker}}": f"sum by (broker) (artemis_number_of_pages{{{B}}})"}),
        lines(
            "Memory of all addresses",
            {
                "used {{broker}}": f"artemis_address_memory_usage{{{B}}}",
                "left {{broker}}": f"artemis_memory_headroom_bytes{{{B}}}",
            },
            "bytes",
        ),
        top("Addresses by pages", {"Pages": f"artemis_number_of_pages{{{B}}}"}, by=OF_ADDRESS, span=_HALF),
        top("Queues by paged messages", {"In pages": f"artemis_paged_messages{{{B}}}"}, span=_HALF),
        top(
            "Addresses by limit",
            {"% of limit": f"artemis_limit_percent{{{B}}}", "Bytes": f"artemis_address_size{{{B}}}"},
            {"% of limit": "percent", "Bytes": "bytes"},
            by=OF_ADDRESS,
        ),
    ]


def storage() -> Dashboard:
    """What is in pages, what the journal takes, and how much room is left."""
    disk = [
        lines("Room on the disk", {"{{broker}}": f"artemis_disk_headroom_bytes{{{B}}}"}, "bytes"),
        lines("Used share of the disk", {"{{broker}}": f"artemis_disk_store_usage{{{B}}}"}, "percentunit"),
        figure("Held back by a full disk", f"sum(artemis_disk_full{{{B}}})", bad_from=1, span=6),
        figure("Without room", f"sum(artemis_disk_without_room{{{B}}})", bad_from=1, span=6),
        figure("Reserve", f"sum(artemis_disk_reserve_bytes{{{B}}})", "bytes", span=6),
        figure("Of it in use", f"sum(artemis_disk_reserve_taken_bytes{{{B}}})", "bytes", bad_from=1, span=6),
    ]
    journal = [
        lines(
            "Journal",
            {
                "bytes {{broker}}": f"artemis_journal_bytes{{{B}}}",
                "alive {{broker}}": f"artemis_journal_live_bytes{{{B}}}",
            },
            "bytes",
        ),
        lines("Journal files", {"{{broker}}": f"artemis_journal_files{{{B}}}"}),
        lines(
            "Large bodies",
            {
                "in files {{broker}}": f"artemis_large_message_bytes{{{B}}}",
                "not written yet {{broker}}": f"artemis_large_message_unwritten_bytes{{{B}}}",
            },
            "bytes",
        ),
        lines(
            "Damage found at the start",
            {
                "places {{broker}}": f"artemis_journal_damaged_places{{{B}}}",
                "records {{broker}}": f"artemis_journal_lost_records{{{B}}}",
            },
        ),
    ]
    return screen(
        "artemis-storage",
        "paging and disk",
        "Pages, journal, and the room that is left.",
        [("Paging", _paging()), ("Disk", disk), ("Journal", journal)],
    )


def latency() -> Dashboard:
    """How long messages, syncs and turns take."""
    delivery = "From the arrival of a message to its delivery, of one message a turn. Points are single messages."
    return screen(
        "artemis-latency",
        "latency",
        "How long messages, syncs and turns take.",
        [
            (
                "Messages",
                [
                    quantiles("Send to deliver", "artemis_delivery_delay_seconds", text=delivery, exemplars=True),
                    spread("Send to deliver, spread", "artemis_delivery_delay_seconds", delivery),
                ],
            ),
            (
                "Disk",
                [
                    quantiles(
                        "Sync",
                        "artemis_journal_sync_duration_seconds",
                        text="Writing and syncing one batch. A receipt of a durable message waits for it.",
                    ),
                    lines(
                        "Group commit",
                        {
                            "records per sync {{broker}}": f"rate(artemis_journal_records{{{B}}}{RATE})"
                            f" / (rate(artemis_journal_syncs{{{B}}}{RATE}) > 0)",
                            "syncs/s {{broker}}": f"rate(artemis_journal_syncs{{{B}}}{RATE})",
                        },
                        is_log=True,
                    ),
                ],
            ),
            (
                "Turns",
                [
                    quantiles("Turn", "artemis_turn_duration_seconds", text="Nothing else runs during a turn."),
                    lines(
                        "Longest turn since the start",
                        {"{{broker}}": f"artemis_turn_duration_seconds_max{{{B}}}"},
                        "s",
                    ),
                ],
            ),
        ],
    )


def internals() -> Dashboard:
    """The process: processor, memory, descriptors, turns."""
    process = [
        lines("Processor", {"{{broker}}": _of_process("rate(process_cpu_seconds_total[$__rate_interval])")}),
        lines("Memory", {"{{broker}}": _of_process("process_resident_memory_bytes")}, "bytes"),
        lines(
            "File descriptors",
            {
                "open {{broker}}": _of_process("process_open_fds"),
                "for STOMP {{broker}}": f"artemis_descriptors_stomp_max{{{B}}}",
                "at most {{broker}}": f"artemis_descriptors_max{{{B}}}",
            },
            is_log=True,
        ),
        lines(
            "Memory held for clients",
            {
                "held {{broker}}": f"sum by (broker) (artemis_held_bytes{{{B}}})",
                "at most {{broker}}": f"artemis_held_bytes_max{{{B}}}",
            },
            "bytes",
            is_log=True,
        ),
    ]
    turns = [
        lines("Turns per second", {"{{broker}}": f"rate(artemis_turn_duration_seconds_count{{{B}}}{RATE})"}),
        lines(
            "Share of time spent in turns",
            {"{{broker}}": f"rate(artemis_turn_duration_seconds_sum{{{B}}}{RATE})"},
            "percentunit",
        ),
        lines("Scrape", {"{{broker}}": f"artemis_scrape_duration_seconds{{{B}}}"}, "s"),
        lines("Series", {"{{broker}}": _of_process("scrape_samples_scraped")}),
    ]
    faults = [
        figure("Connection faults", f"sum(artemis_connection_faults_total{{{B}}}) or vector(0)", bad_from=1, span=6),
        figure("Acceptors paused", f"sum(artemis_acceptors_paused{{{B}}})", bad_from=1, span=6),
        figure("Requests refused for memory", f"sum(artemis_held_refusals_total{{{B}}})", bad_from=1, span=6),
        figure("Steps of the clock", f"sum(artemis_clock_steps_total{{{B}}})", bad_from=1, span=6),
        rows(
            "Versions",
            {"Brokers": f"count by (version, python, compiled) (artemis_build_info{{{B}}})"},
            {},
        ),
    ]
    return screen(
        "artemis-internals",
        "internals",
        "The process, its turns, and what must not happen.",
        [("Process", process), ("Turns", turns), ("Faults", faults)],
    )


def pipeline() -> Dashboard:
    """The retained log and its readers."""
    readers = [
        lines("Bytes not read yet", {"{{cursor}}": f"artemis_log_cursor_lag_bytes{{{B}}}"}, "bytes"),
        lines(
            "Records not read yet",
            {
                "{{cursor}}": f"artemis_journal_records{{{B}}}"
                f" - on (broker) group_right () artemis_log_cursor_lsn{{{B}}}"
            },
        ),
        lines("Records read per second", {"{{cursor}}": f"rate(artemis_log_cursor_lsn{{{B}}}{RATE})"}),
        lines("Not moved for", {"{{cursor}}": f"artemis_log_cursor_idle_seconds{{{B}}}"}, "s"),
    ]
    log = [
        lines("Retained log", {"{{broker}}": f"artemis_log_retained_bytes{{{B}}}"}, "bytes"),
        lines("Retained files", {"{{broker}}": f"artemis_log_retained_files{{{B}}}"}),
        lines("Records per second", {"{{broker}}": f"rate(artemis_journal_records{{{B}}}{RATE})"}),
        figure("Cursors that hold files", f"sum(artemis_log_cursor_holds{{{B}}})", span=6),
        figure("Files lost to a full disk", f"sum(artemis_log_overrun_files{{{B}}})", bad_from=1, span=6),
    ]
    return screen(
        "artemis-pipeline",
        "pipeline",
        "The log that readers such as Spark follow. It needs journal-retention-directory.",
        [("Readers", readers), ("Log", log)],
    )
