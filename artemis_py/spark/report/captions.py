"""Captions of one or two sentences for each table and plot of each job, so that a page explains itself."""

from __future__ import annotations

from typing import Final

TABLES: Final[dict[tuple[str, str], str]] = {
    ("archive", "brokers"): (
        "For each broker's log: the lsn to which it was archived before and is archived now, and what was added."
    ),
    ("capacity", "addresses"): (
        "What the messages of each address needed: their sizes including the broker's overhead, the most at one "
        "time, and how much would be there after the outage."
    ),
    ("capacity", "queues"): (
        "What arrived in each queue, how fast its consumers work under load, and how long they would need to drain "
        "the backlog of an outage."
    ),
    ("capacity", "advice"): "Settings with which each address would have held its traffic plus a quarter.",
    ("dead-letters", "groups"): (
        "Messages that were given up, grouped by cause, queue, sender, header names and kind of body; the largest "
        "group first."
    ),
    ("dead-letters", "examples"): "The first and last message of each group, in the order of the table above.",
    ("fairness", "queues"): (
        "Jain's index is 1 when all consumers got the same, and 1/n when one of n got everything. In a starved "
        "interval a consumer got nothing while others of its queue did."
    ),
    ("fairness", "consumers"): (
        "What each consumer got and acknowledged, its share of the queue's messages, and how long it held them: half "
        "of the messages no longer than p50, 99 of 100 no longer than p99."
    ),
    ("latency", "queues"): (
        "wait: from publish to delivery; hold: from delivery to acknowledgement; total: both. Half of the messages "
        "took no longer than p50, 95 of 100 no longer than p95, 99 of 100 no longer than p99."
    ),
    ("losses", "losses"): (
        "What queues removed or addresses refused, by cause and sender. A message with a copy in another address is "
        "not lost. Half of the messages were no older than age p50."
    ),
    ("replay", "selection"): "How many messages go from which address to which.",
    ("replay", "examples"): "The oldest messages of the selection.",
    ("throughput", "addresses"): (
        "Sizes include header blocks and bodies. The rate is the average from the first message to the last; the "
        "peak is the busiest second."
    ),
    ("throughput", "queues"): (
        "What was delivered and acknowledged. The rate is the average from the first message to the last; the peak "
        "is the busiest second."
    ),
    ("trace", "events"): "Everything that the log has about the message and its copies, in order.",
}
"""By job and table name."""

PLOTS: Final[dict[str, str]] = {
    "capacity": "The most messages that each queue held.",
    "dead-letters": "Why messages were given up, and how many.",
    "fairness": (
        "How many messages each consumer got, by queue and consumer. If there are many, only the first of the table "
        "of consumers."
    ),
    "latency": "99 of 100 messages that started in an interval took no longer than this.",
    "losses": "How many messages queues removed or addresses refused, by cause.",
    "throughput": "Messages per second, on average over an interval.",
}
"""By job."""
