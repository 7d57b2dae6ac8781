"""How long a message takes at a modest, steady rate (scenario 8), and a receipt while others send as fast as they can
(scenarios ``neighbours-…``).
"""

from __future__ import annotations

import multiprocessing
import select
import selectors
import socket
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.perf.link import Link, Target, raise_if_error
from artemis_py.perf.process import value_of
from artemis_py.perf.pump import BLOCK_BYTES, body_of, send_frame, send_headers
from artemis_py.perf.result import latency_metrics
from artemis_py.perf.scenario import Run, Scenario
from artemis_py.stomp.client import FrameReader, frame

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


# ---- neighbours ------------------------------------------------------------------------------------------------------


PERIOD_S: Final = 0.005
LONGEST_TURN: Final = "artemis_turn_duration_seconds_max"
SUBSCRIPTIONS: Final = 50
HEADER_BYTES: Final = 8_000
BLOCKS: Final = 20_000
"""More different header blocks than a broker will cache."""
HEADERS: Final = 8
"""Headers of each of these blocks."""


class Neighbours(Scenario):
    """One client sends a transient message every 5 ms, or after the previous receipt; in another process ``neighbours``
    connections send without a pause.
    """

    headline = "p99_us"

    @abstractmethod
    def greeting(self, run: Run, topic: str, number: int) -> bytes:
        """What a neighbour sends at first."""

    @abstractmethod
    def flood(self, run: Run, topic: str) -> bytes:
        """What it then sends repeatedly: complete frames."""

    def run(self, run: Run) -> dict[str, float]:
        """Percentiles of the time to a receipt; with ``metrics_url`` the broker's longest turn since its start."""
        run.need_receipts(self.id)
        topic = run.topic()
        count = run.options.neighbours
        greetings = [self.greeting(run, topic, number) for number in range(count)]
        with Link(run.target) as link, _neighbours(run.target, greetings, self.flood(run, topic)):
            body = body_of(run.options.size or 100)
            headers = send_headers(run.target, run.queue(), body)
            latencies_ns = list(_rounds(run, lambda: link.confirmed("SEND", headers, body)))
        metrics = {"messages": float(len(latencies_ns)), **latency_metrics(latencies_ns)}
        url = run.options.metrics_url
        longest_s = None if url is None else value_of(url, LONGEST_TURN)
        if longest_s is not None:
            metrics["turn_max_ms"] = 1000 * longest_s
        return metrics


class NeighboursTiny(Neighbours):
    """The smallest possible frames, to a topic without consumers."""

    id = "neighbours-tiny"
    title = "round trip beside floods of tiny frames"

    def greeting(self, run: Run, topic: str, number: int) -> bytes:
        """Nothing."""
        return b""

    def flood(self, run: Run, topic: str) -> bytes:
        """About 64 KiB of SENDs without a body."""
        return _block(frame("SEND", (("destination", topic),)))


class NeighboursCrLf(NeighboursTiny):
    """The same with CR LF."""

    id = "neighbours-crlf"
    title = "round trip beside floods of CR LF frames"

    def flood(self, run: Run, topic: str) -> bytes:
        """About 64 KiB of SENDs with a CR before each LF."""
        return _block(frame("SEND", (("destination", topic),)).replace(b"\n", b"\r\n"))


class NeighboursHeaders(NeighboursTiny):
    """New names and values all the time: a broker's caches do not help."""

    id = "neighbours-headers"
    title = "round trip beside floods of new headers"

    def flood(self, run: Run, topic: str) -> bytes:
        """About 5 MB of SENDs with eight headers, all of them different."""
        return b"".join(
            frame(
                "SEND", (("destination", topic), *((f"name-{number}-{place}", str(number)) for place in range(HEADERS)))
            )
            for number in range(BLOCKS)
        )


class NeighboursSelectors(Neighbours):
    """Each has 50 subscriptions with different selectors, and sends messages that all selectors search and none
    matches.
    """

    id = "neighbours-selectors"
    title = "round trip beside floods for costly selectors"

    def greeting(self, run: Run, topic: str, number: int) -> bytes:
        """The SUBSCRIBE frames."""
        return b"".join(
            frame(
                "SUBSCRIBE",
                (("id", str(place)), ("destination", topic), ("selector", f"text LIKE '%{'a' * 20}{number}-{place}%'")),
            )
            for place in range(SUBSCRIPTIONS)
        )

    def flood(self, run: Run, topic: str) -> bytes:
        """SENDs with a header of 8,000 bytes."""
        return _block(frame("SEND", (("destination", topic), ("text", "a" * HEADER_BYTES))))


def _rounds(run: Run, send: Callable[[], None]) -> Iterator[int]:
    """Each round trip in ns."""
    started = time.monotonic()
    first = started + max(run.options.warmup_s, 0.0)
    sent = 0
    while True:
        due = time.monotonic()
        if run.options.messages is not None and sent >= run.options.messages:
            return
        if run.options.messages is None and due >= first + run.options.seconds:
            return
        before = time.perf_counter_ns()
        send()
        took = time.perf_counter_ns() - before
        if due >= first:
            sent += 1
            yield took
        run.progress.show(lambda count=sent: f"{count:,} round trips")  # type: ignore[misc]
        time.sleep(max(due + PERIOD_S - time.monotonic(), 0.0))


def _block(rendered: bytes) -> bytes:
    return rendered * max(1, BLOCK_BYTES // len(rendered))


@contextmanager
def _neighbours(target: Target, greetings: list[bytes], flood: bytes) -> Iterator[None]:
    """Runs one neighbour per greeting during the block. Raises PerfError if one was disconnected."""
    context = multiprocessing.get_context("spawn")
    connected, tell = context.Pipe(duplex=False)
    process = context.Process(target=_send_all, args=(target, greetings, flood, tell), daemon=True)
    process.start()
    tell.close()
    try:
        try:
            connected.recv()
        except EOFError:
            raise PerfError("the neighbours could not connect") from None
        yield
        if not process.is_alive():
            raise PerfError("the neighbours were disconnected")
    finally:
        process.terminate()
        process.join()


def _send_all(target: Target, greetings: list[bytes], flood: bytes, tell: Connection[None, None]) -> None:
    """Send as much as the broker accepts, from all connections in turn, until the process ends."""
    waiting = selectors.DefaultSelector()
    for greeting in greetings:
        link = Link(target)
        link.send(greeting)
        link.sock.setblocking(False)
        waiting.register(link.sock, selectors.EVENT_WRITE, [link, memoryview(flood)])
    tell.send(None)
    while True:
        for key, _ in waiting.select():
            assert isinstance(key.fileobj, socket.socket)
            key.data[1] = key.data[1][key.fileobj.send(key.data[1]) :] or memoryview(flood)
