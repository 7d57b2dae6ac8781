"""``python -m bench.leases``: what leases cost a broker of its own, over sockets.

A client fills a queue and another one acknowledges each message by itself: on a queue with leases and on one without,
in turns. Then a client that acknowledges nothing has leases run out, as many in a second as it is told.
"""

from __future__ import annotations

import argparse
import re
import select
import socket
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.shown import say
from bench.many import Client, Process

_HOST: Final = "127.0.0.1"
_BLOCK: Final = 500
_BACKLOG: Final = 1000
_WAIT_S: Final = 120.0
_BODY: Final = "x" * 100
_ACK: Final = re.compile(rb"\nack:([^\n]+)\n")
_LAPSING_MS: Final = 200
_QUEUES: Final = """
  <addresses>
    <address name="plain"><anycast><queue name="plain"/></anycast></address>
    <address name="leased"><anycast>
      <queue name="leased" lease-period="1h" max-per-subscription-backlog="-1"/>
    </anycast></address>
    <address name="lapsing"><anycast>
      <queue name="lapsing" lease-period="{period_ms}ms" max-per-subscription-backlog="-1" max-delivery-attempts="-1"/>
    </anycast></address>
  </addresses>
"""


class Reader:
    """A consumer with a backlog."""

    def __init__(self, port: int, queue: str, backlog: int) -> None:
        self._socket = socket.create_connection((_HOST, port), timeout=_WAIT_S)
        self._socket.sendall(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0")
        self._socket.recv(65536)
        headers = f"id:1\ndestination:/queue/{queue}\nack:client-individual\nconsumer-window-size:-1"
        self._socket.sendall(f"SUBSCRIBE\n{headers}\nmax-backlog:{backlog}\n\n\0".encode())
        self._tail = b""

    def receive(self) -> list[bytes]:
        """The headers ``ack`` of what has come."""
        data = self._socket.recv(1 << 18)
        if not data or b"ERROR\n" in data:
            raise PerfError(f"the broker answers {data[:300]!r}")
        whole = self._tail + data
        end = whole.rfind(b"\0") + 1
        self._tail = whole[end:]
        return _ACK.findall(whole, 0, end)

    def drain(self, count: int) -> None:
        """Reads so many messages and acknowledges each; returns when the broker has settled all."""
        done = 0
        while done < count:
            acks = self.receive()
            done += len(acks)
            self._socket.sendall(b"".join([b"ACK\nid:%s\n\n\0" % ack for ack in acks]))
        self._socket.sendall(b"DISCONNECT\nreceipt:end\n\n\0")
        tail = b""
        while b"receipt-id:end\n" not in tail:
            tail = tail[-100:] + self._socket.recv(65536)
        self._socket.close()

    def watch(self, seconds: float) -> int:
        """Reads for so long and acknowledges nothing. Returns how many messages came."""
        count = 0
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            if select.select([self._socket], [], [], left_s)[0]:
                count += len(self.receive())
        return count


def fill(process: Process, queue: str, count: int, *, persistent: bool) -> None:
    """Sends so many messages."""
    client = Client(process.ports["stomp"], f"filler of {queue}")
    head = f"SEND\ndestination:/queue/{queue}\n" + ("persistent:true\n" if persistent else "")
    for start in range(0, count, _BLOCK):
        some = min(_BLOCK, count - start)
        frames = [f"{head}\n{_BODY}\0"] * (some - 1)
        client.make([*frames, f"{head}receipt:{start}\n\n{_BODY}\0"], str(start))
    client.close()


@dataclass(frozen=True, slots=True)
class Drain:
    """One round on one queue."""

    rate: float
    """Messages in a second."""
    cpu_us: float
    """The broker's CPU time for each message."""


def drain(process: Process, queue: str, count: int, *, persistent: bool) -> Drain:
    """Fills a queue, and has it emptied by acknowledgements one by one."""
    cpu_s, began_s = process.cpu_s, time.monotonic()
    fill(process, queue, count, persistent=persistent)
    Reader(process.ports["stomp"], queue, _BACKLOG).drain(count)
    return Drain(count / (time.monotonic() - began_s), (process.cpu_s - cpu_s) * 1e6 / count)


def ended(process: Process) -> int:
    """How many leases have ended so far."""
    with urllib.request.urlopen(f"http://{_HOST}:{process.ports['http']}/metrics", timeout=_WAIT_S) as answer:
        for line in answer:
            if line.startswith(b"artemis_leases_ended{") and b'queue="lapsing"' in line:
                return int(float(line.split()[-1]))
    raise PerfError("no metric artemis_leases_ended")


def compare(process: Process, count: int, rounds: int, *, persistent: bool) -> float:
    """Tells what leases cost; returns the throughput with leases as a share of that without."""
    found: dict[str, list[Drain]] = {"plain": [], "leased": []}
    for name in found:
        drain(process, name, count // 5, persistent=persistent)
    for _ in range(rounds):
        for name, drains in found.items():
            drains.append(drain(process, name, count, persistent=persistent))
    for name, drains in found.items():
        rate = statistics.median(each.rate for each in drains)
        cpu_us = statistics.median(each.cpu_us for each in drains)
        say(f"{name}: {rate:,.0f} messages/s, {cpu_us:.2f} us of CPU each")
    pairs = list(zip(found["plain"], found["leased"], strict=True))
    by_rate = statistics.median(leased.rate / plain.rate for plain, leased in pairs)
    by_cpu = statistics.median(plain.cpu_us / leased.cpu_us for plain, leased in pairs)
    kind = "persistent" if persistent else "transient"
    say(f"{kind}: with leases {by_rate:.0%} of the throughput without; by CPU time {by_cpu:.0%}")
    return by_cpu


def have_lapse(process: Process, rate: int, seconds: float) -> None:
    """Tells how many leases ended in a second, and what each cost."""
    count = rate * _LAPSING_MS // 1000
    fill(process, "lapsing", count, persistent=False)
    reader = Reader(process.ports["stomp"], "lapsing", count)
    reader.watch(1)
    before, cpu_s, began_s = ended(process), process.cpu_s, time.monotonic()
    came = reader.watch(seconds)
    took_s = time.monotonic() - began_s
    lapsed, used_s = ended(process) - before, process.cpu_s - cpu_s
    longest_s, _ = process.scrape()
    say(f"{lapsed / took_s:,.0f} leases ended in a second ({count} of {_LAPSING_MS} ms), {came / took_s:,.0f} came,")
    say(f"{used_s * 1e6 / max(lapsed, 1):.2f} us of CPU each with the next delivery, {used_s / took_s:.0%} busy,")
    say(f"longest turn {longest_s * 1e3:.1f} ms")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code: 1 when leases cost more than a fifth of the throughput."""
    parser = argparse.ArgumentParser(prog="python -m bench.leases", description=__doc__)
    parser.add_argument("--count", type=int, default=50_000, help="messages of a round (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rate", type=int, default=100_000, help="leases to end in a second (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long leases end (default %(default)s)")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        process = Process(Path(folder), persistent=True, more=_QUEUES.format(period_ms=_LAPSING_MS))
        try:
            shares = [
                compare(process, options.count, options.rounds, persistent=persistent) for persistent in (False, True)
            ]
            have_lapse(process, options.rate, options.seconds)
        finally:
            process.stop()
    return int(min(shares) < 0.8)


if __name__ == "__main__":
    sys.exit(main())
