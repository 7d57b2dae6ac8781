"""What is seen in each table and plot of each job, in a sentence or two: for somebody who was sent the page alone."""

from __future__ import annotations

from typing import Final

TABLES: Final[dict[tuple[str, str], str]] = {
    ("archive", "brokers"): (
        "Each broker's log up to which number it was archived before and is now, and what came to it."
    ),
    ("capacity", "addresses"): (
        "What the messages of each address took: their sizes with what the broker keeps beside each, the most there "
        "was at once, and what would lie there after the outage."
    ),
    ("capacity", "queues"): (
        "What came to each queue, how fast its consumers work when they have enough to do, and how long they would "
        "need for what an outage leaves."
    ),
    ("capacity", "advice"): "Settings with which each address would have held its traffic, and a quarter more.",
    ("dead-letters", "groups"): (
        "Messages that were given up, put together by cause, queue, sender, names of headers and kind of body; the "
        "largest group first."
    ),
    ("dead-letters", "examples"): "The first and the last message of each group, by its place in the table above.",
    ("fairness", "queues"): (
        "Jain's index is 1 where all consumers got the same, and 1/n where one of n got everything. A starved "
        "interval is one in which others of the queue were served, and a consumer was not."
    ),
    ("fairness", "consumers"): (
        "What each consumer was given and acknowledged, its part of the queue's messages, and how long it held them: "
        "half of the messages no longer than p50, 99 of 100 no longer than p99."
    ),
    ("latency", "queues"): (
        "wait: from publish to delivery; hold: from delivery to acknowledgement; total: both. Half of the messages "
        "took no longer than p50, 95 of 100 no longer than p95, 99 of 100 no longer than p99."
    ),
    ("losses", "losses"): (
        "What queues removed, or addresses refused, by cause and sender. A message of which a copy is in another "
        "address is kept there, not lost. Half of the messages were no older than age p50."
    ),
    ("replay", "selection"): "How many messages go from which address to which.",
    ("replay", "examples"): "The oldest messages of the selection.",
    ("throughput", "addresses"): (
        "Sizes are of header blocks and bodies. The rate is over all seconds from the first message to the last; the "
        "peak is the busiest second."
    ),
    ("throughput", "queues"): (
        "What was delivered and acknowledged. The rate is over all seconds from the first message to the last; the "
        "peak is the busiest second."
    ),
    ("trace", "events"): "Everything that the log tells of the message and its copies, in order.",
}
"""By job and name of the table."""

PLOTS: Final[dict[str, str]] = {
    "capacity": "How many messages each queue held at most.",
    "dead-letters": "Why messages were given up, and how many.",
    "fairness": (
        "How many messages each consumer was given: queue, and consumer. Of many, the first in the table of consumers."
    ),
    "latency": "Of the messages that began in an interval, 99 of 100 took no longer than this.",
    "losses": "How many messages queues removed or addresses refused, by cause.",
    "throughput": "Messages per second, on average over an interval.",
}
"""By job."""
