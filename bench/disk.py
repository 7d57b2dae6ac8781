"""``python -m bench.disk``: the memory that a broker needs for each message of a queue with ``file-backed-metadata``.

It fills the queue, then leases some of its messages to consumers that acknowledge nothing, and tells the resident
memory of the broker's process for each message in pages, for each leased one, and for each once all are acknowledged.
"""

from __future__ import annotations

import argparse
import re
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.shown import say
from bench.many import Client, Process

_HOST: Final = "127.0.0.1"
_BATCH_BYTES: Final = 1 << 20
_WAIT_S: Final = 120.0
_ACK: Final = re.compile(rb"\nack:([^\n]+)\n")
_QUEUE: Final = """
  <addresses><address name="q"><anycast>
    <queue name="q" file-backed-metadata="true" lease-period="1h" max-per-subscription-backlog="-1"/>
  </anycast></address></addresses>
  <address-settings><address-setting match="q">
    <max-read-page-bytes>-1</max-read-page-bytes><max-read-page-messages>100000000</max-read-page-messages>
  </address-setting></address-settings>
"""


def fill(process: Process, count: int, size_bytes: int) -> None:
    """Sends so many persistent messages, each with a body of this size."""
    client = Client(process.ports["stomp"], "filler")
    body = "x" * size_bytes
    at_once = max(min(_BATCH_BYTES // (size_bytes + 100), 5000), 1)
    made = 0
    while made < count:
        some = min(at_once, count - made)
        made += some
        frames = ["SEND\ndestination:/queue/q\npersistent:true\n\n" + body + "\0"] * (some - 1)
        frames.append(f"SEND\ndestination:/queue/q\npersistent:true\nreceipt:{made}\n\n{body}\0")
        client.make(frames, str(made))
    client.close()


class Holder:
    """A consumer that has a backlog of ``count`` messages and acknowledges them when it is told to."""

    def __init__(self, port: int, count: int) -> None:
        self._socket = socket.create_connection((_HOST, port), timeout=_WAIT_S)
        self._socket.sendall(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0")
        self._socket.recv(65536)
        subscribe = "SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client\nconsumer-window-size:-1\nmax-backlog:"
        self._socket.sendall(f"{subscribe}{count}\n\n\0".encode())
        self._count = count
        self._last = b""

    def fetch(self) -> None:
        """Reads until its backlog is used up."""
        seen = 0
        tail = b""
        while seen < self._count:
            data = self._socket.recv(1 << 20)
            if not data or b"ERROR\n" in data:
                raise PerfError(f"the broker answers {data[:300]!r}")
            tail += data
            end = tail.rfind(b"\0") + 1
            found = _ACK.findall(tail[:end])
            seen += len(found)
            if found:
                self._last = found[-1]
            tail = tail[end:]

    def acknowledge(self) -> None:
        """Acknowledges all that it has, and leaves."""
        self._socket.sendall(b"ACK\nid:" + self._last + b"\n\n\0DISCONNECT\nreceipt:end\n\n\0")
        tail = b""
        while b"receipt-id:end\n" not in tail:
            data = self._socket.recv(1 << 20)
            if not data:
                break
            tail = tail[-100:] + data
        self._socket.close()


def measure(count: int, size_bytes: int, leased_count: int) -> tuple[float, float]:
    """Bytes of resident memory for each message in pages, and for each leased one."""
    with tempfile.TemporaryDirectory() as folder:
        process = Process(Path(folder), persistent=True, more=_QUEUE)
        try:
            first = min(2000, count // 2)
            fill(process, first, size_bytes)  # what stays in memory, and whatever a first message needs
            empty_bytes, began_s = process.memory_bytes, process.cpu_s
            fill(process, count - first, size_bytes)
            filled_bytes = process.memory_bytes
            paged_each = (filled_bytes - empty_bytes) / (count - first)
            cpu_us = (process.cpu_s - began_s) * 1e6 / (count - first)
            say(f"{count} x {size_bytes} B: {empty_bytes >> 20} MiB after {first}, {filled_bytes >> 20} MiB after all:")
            say(f"{paged_each:.1f} B of memory for each message in pages, {cpu_us:.1f} us each")
            holder = Holder(process.ports["stomp"], leased_count)
            began_s = process.cpu_s
            holder.fetch()
            leased_bytes = process.memory_bytes
            leased_each = (leased_bytes - filled_bytes) / leased_count
            cpu_us = (process.cpu_s - began_s) * 1e6 / leased_count
            say(f"{leased_count} leased: {leased_each:.0f} B of memory for each, {cpu_us:.1f} us each")
            holder.acknowledge()
            time.sleep(1)
            say(f"acknowledged: {process.memory_bytes >> 20} MiB")
        finally:
            process.stop()
    return paged_each, leased_each


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code: 1 when a message in pages needs more than 200 bytes."""
    parser = argparse.ArgumentParser(prog="python -m bench.disk", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of each body (default %(default)s)")
    parser.add_argument("--leased", type=int, default=100_000)
    options = parser.parse_args(argv)
    paged_each, _ = measure(options.count, options.size, options.leased)
    return int(paged_each > 200)


if __name__ == "__main__":
    sys.exit(main())
