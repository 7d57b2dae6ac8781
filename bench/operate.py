"""``python -m bench.operate``: what it costs others when operators look, and change much.

A broker of its own has 10,000 queues, and a million messages on one of them. A client sends a message to itself, again
and again: alone, then beside sorted lists of all queues, then beside a purge of the million. Told are its round trips,
how many turns took more than 5 ms, and how long the operations took.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from artemis_py.shown import say
from bench.many import KINDS, Client, Process, make_many

_HOST: Final = "127.0.0.1"
_WAIT_S: Final = 120.0
_BLOCK: Final = 1000
_LONG: Final = re.compile(r'artemis_turn_duration_seconds_bucket\{.*le="0\.005".*\} (\S+)')
_ALL: Final = re.compile(r"artemis_turn_duration_seconds_count\{.*\} (\S+)")
_LIST: Final = "/api/queues?sort=messageCount:desc&size=1000"


class Ping:
    """A client that sends a message to itself."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((_HOST, port), timeout=_WAIT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0")
        self._socket.recv(65536)
        self._socket.sendall(b"SUBSCRIBE\nid:1\ndestination:/queue/ping\nack:auto\nreceipt:r\n\n\0")
        self._socket.recv(65536)

    def go(self) -> float:
        """One round trip, in ms."""
        began_s = time.perf_counter()
        self._socket.sendall(b"SEND\ndestination:/queue/ping\n\nx\0")
        while not self._socket.recv(65536).endswith((b"\0", b"\n")):
            pass
        return (time.perf_counter() - began_s) * 1e3


class Turns:
    """The broker's turns, as its metrics count them."""

    def __init__(self, process: Process) -> None:
        self._url = f"http://{_HOST}:{process.ports['http']}/metrics"

    def counts(self) -> tuple[int, int]:
        """All turns since the start, and those that took more than 5 ms."""
        with urllib.request.urlopen(self._url, timeout=_WAIT_S) as answer:
            text = answer.read().decode()
        short, count = _LONG.search(text), _ALL.search(text)
        assert short is not None
        assert count is not None
        return int(float(count[1])), int(float(count[1]) - float(short[1]))


def ask(process: Process, method: str, path: str) -> float:
    """A request, whole. Returns how long it took, in ms."""
    began_s = time.perf_counter()
    request = urllib.request.Request(f"http://{_HOST}:{process.ports['http']}{path}", method=method)
    with urllib.request.urlopen(request, timeout=_WAIT_S) as answer:
        json.load(answer)
    return (time.perf_counter() - began_s) * 1e3


def beside(process: Process, ping: Ping, seconds: float, operate: Callable[[], float] | None) -> list[str]:
    """Pings for so long while the operation goes on, again and again; without one, alone. Returns a row."""
    took: list[float] = []
    ended = threading.Event()

    def work() -> None:
        while operate is not None and not ended.is_set():
            took.append(operate())

    turns = Turns(process)
    count, long_count = turns.counts()
    thread = threading.Thread(target=work)
    thread.start()
    trips: list[float] = []
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s or (operate is not None and not took):
        trips.append(ping.go())
    ended.set()
    thread.join()
    trips.sort()
    now_count, now_long = turns.counts()
    shown = [f"{trips[len(trips) * share // 1000]:.2f}" for share in (500, 990, 999)]
    each = f"{statistics.median(took):.1f}" if took else "-"
    return [*shown, f"{trips[-1]:.2f}", f"{now_count - count:,}", f"{now_long - long_count}", str(len(took)), each]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.operate", description=__doc__)
    parser.add_argument("--queues", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        process = Process(Path(folder), persistent=False)
        try:
            for _ in make_many(process, KINDS["queues"], options.queues, 1 << 40):
                pass
            client = Client(process.ports["stomp"], "filler")
            for start in range(0, options.messages, _BLOCK):
                frames = ["SEND\ndestination:/queue/deep\n\nx\0"] * (_BLOCK - 1)
                client.make([*frames, f"SEND\ndestination:/queue/deep\nreceipt:{start}\n\nx\0"], str(start))
            ping = Ping(process.ports["stomp"])
            say("| beside | p50, ms | p99 | p99.9 | longest | turns | over 5 ms | operations | each, ms |")
            say("| :-- | --: | --: | --: | --: | --: | --: | --: | --: |")
            for what, operate in (
                ("nothing", None),
                ("sorted lists of all queues", lambda: ask(process, "GET", _LIST)),
                ("a purge of a million messages", lambda: ask(process, "POST", "/api/queues/deep/purge")),
            ):
                seconds = 0.0 if "purge" in what else options.seconds
                say(f"| {what} | " + " | ".join(beside(process, ping, seconds, operate)) + " |")
        finally:
            process.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
