"""Scenarios 4 and 11: durable messages, each awaited before the next; the cost of one message compared with one
sync.
"""

from __future__ import annotations

from artemis_py.perf.durable import PERSISTENT
from artemis_py.perf.scenario import Run
from artemis_py.perf.sync import SyncProducers
from artemis_py.perf.syncs import fdatasync_ns, median_us


class DurableSyncProducers(SyncProducers):
    """All wait at once, so a broker may make many messages durable with one sync."""

    id = "11"
    title = "100 producers, window 1, receipts, durable"
    extra_headers = PERSISTENT


class DurableSync(SyncProducers):
    """One producer. The disk is measured before and after, in the directory that ``--directory`` names."""

    id = "4"
    title = "1 producer, window 1, receipts, durable"
    headline = "sync_ratio"
    producers = 1
    extra_headers = PERSISTENT

    def run(self, run: Run) -> dict[str, float]:
        """The time to a receipt, compared with one fdatasync."""
        took_ns = fdatasync_ns(run.options.directory)
        metrics = super().run(run)
        took_ns += fdatasync_ns(run.options.directory)
        metrics["fdatasync_us"] = median_us(took_ns)
        metrics["sync_ratio"] = metrics["p50_us"] / metrics["fdatasync_us"]
        return metrics
