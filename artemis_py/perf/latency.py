"""Scenario 8: how long a message takes at a modest, steady rate."""

from __future__ import annotations

import select
import time
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.perf.frames import body_of, send_frame
from artemis_py.perf.link import Link, raise_if_error
from artemis_py.perf.result import latency_metrics
from artemis_py.perf.scenario import Run, Scenario
from artemis_py.stomp.client import FrameReader

STAMP_DIGITS: Final = 20
SECONDS: Final = 5.0
NS_PER_S: Final = 1_000_000_000


class Latency(Scenario):
    """One send per message; the body carries the time just before it, the consumer subtracts on arrival.

    Both are one thread with one clock. A sender that is late catches up, and its own lateness is not in the figures.
    """

    id = "8"
    title = "latency at a steady rate"
    headline = "p99_us"

    def run(self, run: Run) -> dict[str, float]:
        """Percentiles over all messages after the warm-up."""
        options = run.options
        count = options.messages or int(options.rate * SECONDS)
        warm = int(options.rate * options.warmup_s)
        queue = run.queue()
        with Link(run.target) as consumer, Link(run.target) as producer:
            consumer.subscribe(queue)
            exchange = Exchange(run, producer, consumer, queue)
            if warm:
                exchange.send(warm)
            metrics: dict[str, float] = {}
            with run.cpu(metrics) as counted:
                elapsed, latencies_ns = exchange.send(count)
                counted(count)
            metrics |= {"messages": count, "messages_per_second": count / elapsed, **latency_metrics(latencies_ns)}
            metrics |= run.resident_mb()
            producer.goodbye()
            surplus = consumer.goodbye()
        if surplus:
            raise PerfError(f"the consumer received {surplus:,} more messages than were sent")
        return metrics


class LatencyTls(Latency):
    """The same, encrypted."""

    id = "8t"
    title = "latency at a steady rate over TLS"
    over_tls = True


class Exchange:
    """Sends at the rate and reads what arrives, by turns."""

    def __init__(self, run: Run, producer: Link, consumer: Link, queue: str) -> None:
        self._run = run
        self._producer = producer
        self._consumer = consumer
        self._reader = FrameReader()
        filler = body_of(max(1, (run.options.size or 100) - STAMP_DIGITS))
        stamp = b"#" * STAMP_DIGITS
        body = stamp + filler
        self._before, self._after = send_frame(run.target, queue, body).split(stamp)

    def send(self, count: int) -> tuple[float, list[int]]:
        """Sends ``count`` messages and waits for all; returns seconds and each latency in ns. Raises PerfError."""
        run = self._run
        period_ns = int(NS_PER_S / run.options.rate)
        stall_ns = int(run.target.stall_s * NS_PER_S)
        source, sink = self._producer.sock, self._consumer.sock
        latencies: list[int] = []
        sent = 0
        started = due = moved = time.monotonic_ns()
        while sent < count or len(latencies) < count:
            now = time.monotonic_ns()
            if sent < count and now >= due:
                self._producer.send(b"%b%020d%b" % (self._before, time.monotonic_ns(), self._after))
                sent += 1
                due += period_ns
            # select() rather than epoll: its timeout is not rounded to milliseconds.
            wait_ns = max(0, due - time.monotonic_ns()) if sent < count else NS_PER_S // 4
            readable, _, _ = select.select([sink, source], [], [], wait_ns / NS_PER_S)
            if sink in readable:
                self._arrived(latencies)
                moved = time.monotonic_ns()
            elif source in readable:
                self._producer.next_frame("anything but silence")
            if now - moved > stall_ns:
                raise PerfError(f"stalled: sent {sent:,}, received {len(latencies):,} of {count:,}")
            run.progress.show(lambda: f"received {len(latencies):,} of {count:,}")
        if len(latencies) != count:
            raise PerfError(f"the consumer received {len(latencies):,} messages instead of {count:,}")
        return (time.monotonic_ns() - started) / NS_PER_S, latencies

    def _arrived(self, latencies: list[int]) -> None:
        data = self._consumer.receive("the last message")
        now = time.monotonic_ns()
        self._reader.feed(data)
        for found in self._reader.frames():
            raise_if_error(found)
            if found.command == "MESSAGE":
                latencies.append(now - int(found.body[:STAMP_DIGITS]))
