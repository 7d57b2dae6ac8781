"""Producers that wait for a receipt before they send the next message (scenarios 12 and 13), also of durable messages,
compared with one sync of the disk (4 and 11).
"""

from __future__ import annotations

import os
import selectors
import tempfile
import time
from contextlib import ExitStack
from typing import ClassVar, Final

from artemis_py.errors import PerfError
from artemis_py.perf.durable import PERSISTENT
from artemis_py.perf.link import Headers, Link, raise_if_error
from artemis_py.perf.pump import BLOCK_NUMBER, Pump, Receiver, body_of, marker_of, numbered, send_headers
from artemis_py.perf.result import latency_metrics, percentile
from artemis_py.perf.scenario import Run, Scenario
from artemis_py.stomp.client import FrameReader, frame

POLL_S: Final = 0.25


class SyncProducers(Scenario):
    """A queue for each producer and no consumer; after the measurement the queues are drained and counted."""

    id = "12"
    title = "100 producers, window 1, receipts"
    link: ClassVar[type[Link]] = Link
    producers: ClassVar[int] = 100
    extra_headers: ClassVar[Headers] = ()

    def run(self, run: Run) -> dict[str, float]:
        """Messages per second over all producers, the time to a receipt, the broker's CPU time and memory."""
        run.need_receipts(self.id)
        body = body_of(run.options.size or 100)
        with ExitStack() as stack:
            windows = [self.producer(run, body, place, stack) for place in range(self.producers)]
            if run.options.warmup_s > 0:
                Rounds(run, windows).send_for(run.options.warmup_s, None)
            metrics: dict[str, float] = {}
            rounds = Rounds(run, windows)
            with run.cpu(metrics) as counted, run.syncs(metrics, lambda: len(rounds.latencies_ns)):
                elapsed = rounds.send_for(run.options.seconds, run.options.messages)
                counted(len(rounds.latencies_ns))
            count = len(rounds.latencies_ns)
            metrics |= {
                "messages": count,
                "messages_per_second": count / elapsed,
                **latency_metrics(rounds.latencies_ns),
            }
            metrics |= run.resident_mb()
            for window in windows:
                window.link.goodbye()
            self.drain(run, windows, body, stack)
        return metrics

    def producer(self, run: Run, body: bytes, place: int, stack: ExitStack) -> Window:
        """One of them, connected."""
        queue = run.queue()
        headers = (*send_headers(run.target, queue, body), *self.extra_headers, ("receipt", BLOCK_NUMBER.decode()))
        rendered = frame("SEND", headers, numbered(body, place), run.target.version)
        return Window(stack.enter_context(self.link(run.target)), queue, rendered)

    def drain(self, run: Run, windows: list[Window], body: bytes, stack: ExitStack) -> None:
        """Reads every queue on one connection. Raises PerfError unless exactly the confirmed messages arrive."""
        consumer = stack.enter_context(Link(run.target))
        for place, window in enumerate(windows):
            consumer.subscribe(window.queue, f"s{place}", confirm=False)
        confirmed = sum(window.confirmed for window in windows)
        receiver = Receiver(consumer, marker_of(body), confirmed)
        Pump([], [receiver], frame_bytes=1, limit_s=run.options.limit_s, progress=run.progress).run()
        surplus = consumer.goodbye()
        if surplus:
            raise PerfError(f"{confirmed:,} messages were confirmed, but {surplus:,} more were delivered")


class SyncProducer(SyncProducers):
    """One client as most are written: what a message costs that nothing shares a system call with."""

    id = "13"
    title = "1 producer, window 1, receipts"
    headline = "cpu_s_per_million"
    producers = 1


class Window:
    """A producer with at most one message under way. ``rendered`` is a SEND with ``BLOCK_NUMBER`` where the number of
    the message goes, among others as the receipt's id.
    """

    __slots__ = (
        "_expected",
        "_reader",
        "_receipt_after",
        "_receipt_before",
        "_rendered",
        "confirmed",
        "link",
        "queue",
        "sent_ns",
    )

    def __init__(self, link: Link, queue: str, rendered: bytes) -> None:
        self._rendered = rendered
        self.link = link
        self.queue = queue
        self.confirmed = 0
        self._reader = FrameReader()
        # Receipts mostly differ in their number alone: what is just like the last one need not be taken apart.
        self._receipt_before = self._receipt_after = self._expected = b""
        self.sent_ns = 0

    def send(self) -> None:
        """Sends the next message."""
        number = b"%08d" % self.confirmed
        data = self._rendered.replace(BLOCK_NUMBER, number)
        self._expected = self._receipt_before + number + self._receipt_after
        self.sent_ns = time.monotonic_ns()
        self.link.send(data)

    def receive(self) -> bool:
        """Reads; True if the expected receipt has arrived. Raises PerfError for anything else."""
        data = self.link.receive("a receipt")
        if data != self._expected:
            self._reader.feed(data)
            found = self._reader.pop()
            if found is None:
                return False
            raise_if_error(found)
            if found.command != "RECEIPT" or found.headers.get("receipt-id") != f"{self.confirmed:08d}":
                raise PerfError(f"expected receipt {self.confirmed}, got {found.command} {found.headers}")
            self._receipt_before, _, self._receipt_after = data.partition(b"%08d" % self.confirmed)
        self.confirmed += 1
        return True


class Rounds:
    """Keeps every window full until the time or the number of messages is reached."""

    def __init__(self, run: Run, windows: list[Window]) -> None:
        self._run = run
        self._windows = windows
        self.latencies_ns: list[int] = []

    def send_for(self, seconds: float, messages: int | None) -> float:
        """Sends for ``seconds``, or ``messages`` in total if given; returns the seconds until the last receipt.

        Raises PerfError.
        """
        limit_s = seconds if messages is None else self._run.options.limit_s
        left = (1 << 62) if messages is None else messages
        started = time.perf_counter()
        if len(self._windows) == 1:
            self._alone(self._windows[0], left, time.monotonic_ns() + int(limit_s * 1e9))
        else:
            self._together(left, started + limit_s)
        if messages is not None and len(self.latencies_ns) < messages:
            raise PerfError(f"not finished after {limit_s:g} s: {len(self.latencies_ns):,} of {messages:,} receipts")
        return time.perf_counter() - started

    def _alone(self, window: Window, left: int, until_ns: int) -> None:
        """A client as most are written: one blocking socket, and only time measurements between the calls."""
        latencies = self.latencies_ns
        window.link.wait_in_kernel()
        while left:
            window.send()
            while not window.receive():
                pass
            now_ns = time.monotonic_ns()
            latencies.append(now_ns - window.sent_ns)
            if now_ns > until_ns:
                return
            left -= 1
            self._run.progress.show(lambda: f"{len(latencies):,} receipts")

    def _together(self, left: int, until: float) -> None:
        with selectors.DefaultSelector() as selector:
            busy = 0
            for window in self._windows[:left]:
                selector.register(window.link.sock, selectors.EVENT_READ, window)
                window.send()
                busy += 1
            left -= busy
            self._loop(selector, busy, left, until)

    def _loop(self, selector: selectors.BaseSelector, busy: int, left: int, until: float) -> None:
        latencies = self.latencies_ns
        moved_at = time.perf_counter()
        while busy:
            ready = selector.select(POLL_S)
            over = time.perf_counter() > until
            for key, _events in ready:
                window: Window = key.data
                if not window.receive():
                    continue
                latencies.append(time.monotonic_ns() - window.sent_ns)
                if left and not over:
                    window.send()
                    left -= 1
                else:
                    busy -= 1
            moved_at = self._watch(bool(ready), moved_at)
            self._run.progress.show(lambda: f"{len(latencies):,} receipts")

    def _watch(self, moved: bool, moved_at: float) -> float:
        now = time.perf_counter()
        stall_s = self._run.target.stall_s
        if moved:
            return now
        if now - moved_at > stall_s:
            raise PerfError(f"stalled: no receipt for {stall_s:g} s after {len(self.latencies_ns):,}")
        return moved_at


# ---- durable ---------------------------------------------------------------------------------------------------------


PROBES: Final = 400
WRITE_BYTES: Final = 256
FILE_BYTES: Final = 1 << 20


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


def fdatasync_ns(directory: str, count: int = PROBES) -> list[int]:
    """The times in ns of writes of 256 bytes with ``fdatasync``, in a file of zeros created before.

    Raises PerfError if the directory is not writable.
    """
    took: list[int] = []
    block = b"x" * WRITE_BYTES
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            descriptor = file.fileno()
            os.pwrite(descriptor, bytes(FILE_BYTES), 0)
            os.fsync(descriptor)
            for number in range(count):
                started = time.perf_counter_ns()
                os.pwrite(descriptor, block, number * WRITE_BYTES % FILE_BYTES)
                os.fdatasync(descriptor)
                took.append(time.perf_counter_ns() - started)
    except OSError as error:
        raise PerfError(f"fdatasync cannot be measured in {directory}: {error.strerror or error}") from error
    return took


def median_us(took_ns: list[int]) -> float:
    """The median in µs."""
    return percentile(sorted(took_ns), 50) / 1000
