"""The memory of a waiting message (scenario 7, with how fast a queue fills and drains) and of an idle connection
(scenario 9).
"""

from __future__ import annotations

import resource
import time
from contextlib import ExitStack
from typing import Final

from artemis_py.errors import PerfError, StompError
from artemis_py.perf.link import Link
from artemis_py.perf.process import Usage
from artemis_py.perf.pump import Pump, Receiver, Sender, blocks, body_of, marker_of, numbered, send_frame, send_headers
from artemis_py.perf.scenario import Run, Scenario

MESSAGES: Final = 300_000


class Backlog(Scenario):
    """Fills a queue without a consumer, then drains it.

    Asks for a fresh broker: one that has already used and freed memory shows too small a growth.
    """

    id = "7"
    title = "fill and drain"
    headline = "bytes_per_message"
    fresh = True

    def run(self, run: Run) -> dict[str, float]:
        """Fill and drain rates, resident bytes per queued message (with a known process)."""
        run.need_receipts(self.id)
        count = run.options.messages or MESSAGES
        body = body_of(run.options.size or 100)
        queue = run.queue()
        metrics: dict[str, float] = {"messages": count}
        with Link(run.target) as producer:
            before = None if run.process is None else run.process.usage()
            metrics["fill_per_second"] = count / self._fill(run, producer, queue, body, count)
            if run.process is not None and before is not None:
                metrics |= self._memory(before, run.process.usage(), count)
            producer.goodbye()
        metrics["drain_per_second"] = count / self._drain(run, queue, body, count)
        return metrics

    def _fill(self, run: Run, producer: Link, queue: str, body: bytes, count: int) -> float:
        """Sends ``count`` messages; the receipt of the last proves that the broker accepted them all."""
        started = time.perf_counter()
        if count > 1:
            sender = Sender(producer, blocks(lambda at: send_frame(run.target, queue, numbered(body, at)), count - 1))
            self._pump(run, [sender], [], len(send_frame(run.target, queue, body)))
        producer.confirmed("SEND", send_headers(run.target, queue, body), body)
        return time.perf_counter() - started

    def _drain(self, run: Run, queue: str, body: bytes, count: int) -> float:
        """Subscribes and counts. Without a receipt: some brokers send the whole queue before it."""
        with Link(run.target) as consumer:
            started = time.perf_counter()
            consumer.subscribe(queue, confirm=False)
            receiver = Receiver(consumer, marker_of(body), count)
            self._pump(run, [], [receiver], 1)
            elapsed = time.perf_counter() - started
            surplus = consumer.goodbye()
        if surplus:
            raise PerfError(f"the queue held {surplus:,} more messages than were sent")
        return elapsed

    def _pump(self, run: Run, senders: list[Sender], receivers: list[Receiver], frame_bytes: int) -> None:
        limit_s = run.options.limit_s
        Pump(senders, receivers, frame_bytes=frame_bytes, limit_s=limit_s, progress=run.progress).run()

    def _memory(self, before: Usage, after: Usage, count: int) -> dict[str, float]:
        return {
            "bytes_per_message": (after.resident_bytes - before.resident_bytes) / count,
            "resident_mb": after.resident_bytes / 1_000_000,
            "cpu_s_per_million": (after.cpu_s - before.cpu_s) * 1_000_000 / count,
        }


# ---- idle connections ------------------------------------------------------------------------------------------------


WARM_CONNECTIONS: Final = 10
SPARE_FILES: Final = 64


class Idle(Scenario):
    """Connects one after the other, each waiting for CONNECTED, and holds all of them."""

    id = "9"
    title = "idle connections"
    headline = "kb_per_connection"
    fresh = True

    def run(self, run: Run) -> dict[str, float]:
        """Connections per second, resident kB (1,000 bytes) per connection (with a known process)."""
        count = run.options.connections
        _allow_files(count + WARM_CONNECTIONS + SPARE_FILES)
        with ExitStack() as stack:
            for _ in range(WARM_CONNECTIONS):
                stack.enter_context(Link(run.target))
            before = None if run.process is None else run.process.usage().resident_bytes
            started = time.perf_counter()
            for number in range(count):
                stack.enter_context(_connect(run, number))
            metrics = {"connects_per_second": count / (time.perf_counter() - started)}
            if run.process is not None and before is not None:
                grown = run.process.usage().resident_bytes - before
                metrics["kb_per_connection"] = grown / count / 1000
                metrics |= run.resident_mb()
        return metrics


def _connect(run: Run, number: int) -> Link:
    run.progress.show(lambda: f"{number:,} of {run.options.connections:,} connected")
    try:
        return Link(run.target)
    except (PerfError, StompError) as error:
        raise PerfError(f"connection {number + 1} of {run.options.connections}: {error}") from error


def _allow_files(needed: int) -> None:
    """Raises the limit of open files as far as this process may. Raises PerfError if that is not enough."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise PerfError(
            f"{needed} open files are needed, {hard} are allowed; raise `ulimit -n` or use fewer connections"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
