"""Section ``replays``: how long a message takes beside a hundred replays of the log, and without them."""

from __future__ import annotations

import multiprocessing
import selectors
import socket
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.perf.durable import fill
from artemis_py.perf.latency import Exchange
from artemis_py.perf.link import Link, Target
from artemis_py.perf.pump import body_of
from artemis_py.perf.result import latency_metrics, percentile
from artemis_py.perf.scenario import Run
from artemis_py.stomp.client import frame
from bench.own import Retaining, started
from bench.part import Extent, Finding, Findings, Say

RATIO_MAX: Final = 1.5
"""The 99th percentile beside replays may be so many times that without them, in the same run."""
REPLAYS: Final = 100
HISTORY_MESSAGES: Final = 100_000
HISTORY_BYTES: Final = 1_000
"""The size of each body in the log."""
PHASES: Final = 5
"""So often is measured without and with replays, by turns."""
SETTLE_S: Final = 0.2
"""The beginning of a phase is not measured."""
ENOUGH_BYTES: Final = 100 * HISTORY_BYTES
"""What each replay must get in a phase, at least: otherwise nothing was measured."""
_RECEIVE_BYTES: Final = 1 << 18


def measure_replays(extent: Extent, say: Say) -> Findings:
    """So many rounds, each with a log of its own. Raises PerfError."""
    replays = Findings("beside 100 replays")
    quantities = {
        "p50_us": Finding("p50 beside them", "µs"),
        "p99_us": Finding("p99 beside them", "µs"),
        "p99_alone_us": Finding("p99 alone", "µs"),
        "p99_ratio": Finding("p99 beside them : alone, median of five turns", "×", 2, below=RATIO_MAX),
        "replayed_mb_per_second": Finding("all replays together", "MB/s"),
    }
    replays.found += quantities.values()
    for number in range(1, extent.rounds + 1):
        say(f"replays: round {number} of {extent.rounds}")
        with started(Retaining(), extent.seconds) as broker:
            options = replace(broker.run.options, messages=extent.messages or HISTORY_MESSAGES)
            found = measure_round(replace(broker.run, options=options))
        for name, one in quantities.items():
            one.values.append(found[name])
    return replays


def measure_round(run: Run) -> dict[str, float]:
    """Fills a queue with durable messages. Then one client sends a transient message at the rate of scenario 8 and gets
    it back, for some seconds alone, and for some beside replays from EPOCH, whose clients read all that comes; and so
    on. The broker must retain its log. No replay comes to its end.

    Returns percentiles beside replays, the 99th without them, and the median over the phases of the quotient of both.
    Raises PerfError.
    """
    history = run.queue()
    fill(run, history, body_of(HISTORY_BYTES), run.options.messages or HISTORY_MESSAGES)
    alone: list[int] = []
    beside: list[int] = []
    ratios: list[float] = []
    shown_bytes = 0
    for _ in range(PHASES):
        without = _phase(run)
        with replaying(run.target, history) as replayed:
            among = _phase(run)
            shown_bytes += replayed()
        ratios.append(_p99(among) / _p99(without))
        alone += without
        beside += among
    return {
        "messages": float(len(beside)),
        **latency_metrics(beside),
        "p99_alone_us": _p99(alone) / 1000,
        "p99_ratio": statistics.median(ratios),
        "replayed_mb_per_second": shown_bytes / 1_000_000 / (PHASES * (run.options.seconds + SETTLE_S)),
    }


def _phase(run: Run) -> list[int]:
    """Each latency in ns."""
    queue = run.queue()
    rate = run.options.rate
    with Link(run.target) as consumer, Link(run.target) as producer:
        consumer.subscribe(queue)
        exchange = Exchange(run, producer, consumer, queue)
        exchange.send(max(int(rate * SETTLE_S), 1))
        _, latencies_ns = exchange.send(max(int(rate * run.options.seconds), 1))
        producer.goodbye()
        consumer.goodbye()
    return latencies_ns


def _p99(latencies_ns: list[int]) -> float:
    return percentile(sorted(latencies_ns), 99)


class _Shown:
    """Asks the process of the replays how much they have got. Raises PerfError if that proves nothing."""

    def __init__(self, pipe: Connection[str, list[int]]) -> None:
        self._pipe = pipe

    def __call__(self) -> int:
        try:
            self._pipe.send("")
            shown_bytes = self._pipe.recv()
        except (EOFError, ConnectionError):
            raise PerfError("a replay was disconnected") from None
        if min(shown_bytes) < ENOUGH_BYTES:
            raise PerfError(f"a replay got no more than {min(shown_bytes):,} bytes of the log")
        return sum(shown_bytes)


@contextmanager
def replaying(target: Target, history: str) -> Iterator[_Shown]:
    """Runs the replays during the block; yields what says how many bytes they got. Raises PerfError if they fail."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_read_all, args=(target, history, there), daemon=True)
    process.start()
    there.close()
    try:
        try:
            here.recv()
        except EOFError:
            raise PerfError("the replays could not begin") from None
        yield _Shown(here)
    finally:
        process.terminate()
        process.join()


def _read_all(target: Target, history: str, pipe: Connection[list[int], str]) -> None:
    """Begin the replays, and read what comes until the process ends. A question is answered with the bytes of each."""
    waiting = selectors.DefaultSelector()
    subscribe = frame("SUBSCRIBE", (("id", "r"), ("destination", history), ("bookmark", "EPOCH")))
    links = [Link(target) for _ in range(REPLAYS)]
    shown_bytes = dict.fromkeys((link.sock.fileno() for link in links), 0)
    for link in links:
        link.send(subscribe)
        link.sock.setblocking(False)
        waiting.register(link.sock, selectors.EVENT_READ)
    waiting.register(pipe, selectors.EVENT_READ)
    buffer = memoryview(bytearray(_RECEIVE_BYTES))
    pipe.send([])
    while True:
        for key, _ in waiting.select():
            if key.fileobj is pipe:
                pipe.recv()
                pipe.send(list(shown_bytes.values()))
                continue
            assert isinstance(key.fileobj, socket.socket)
            got = key.fileobj.recv_into(buffer)
            if not got:
                return
            shown_bytes[key.fd] += got
