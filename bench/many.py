"""``python -m bench.many``: how a broker of its own bears very many queues and subscriptions, made by STOMP clients.

It tells memory and the broker's CPU time for each, in the first and the last tenth of them, and the longest turn.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.shown import say

STEPS: Final = 10
_BATCH: Final = 500
_CONNECTIONS: Final = 4
_TOPICS: Final = 1000
_WAIT_S: Final = 120.0
_HOST: Final = "127.0.0.1"
_LISTENING: Final = re.compile(r"^\S+Z BRK-1002 acceptor=(\S+) listening on \S+:(\d+) for ", re.MULTILINE)
_PERSISTENT: Final = "persistent:true\n"

_CONFIGURATION: Final = """\
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <security-enabled>false</security-enabled>
  <name>many</name>
  <persistence-enabled>{persistent}</persistence-enabled>
  <journal-directory>{folder}/journal</journal-directory><paging-directory>{folder}/paging</paging-directory>
  <bindings-directory>{folder}/bindings</bindings-directory>
  <large-messages-directory>{folder}/large</large-messages-directory>
  <max-addresses>-1</max-addresses><max-queues>-1</max-queues>
  <address-queue-scan-period>-1</address-queue-scan-period>
  <message-expiry-scan-period>-1</message-expiry-scan-period>
  <acceptors>
    <acceptor name="stomp">tcp://127.0.0.1:0?protocols=STOMP;anycastPrefix=/queue/;multicastPrefix=/topic/;\
maxSubscriptions=10000000</acceptor>
    <acceptor name="http">tcp://127.0.0.1:0?protocols=HTTP</acceptor>
  </acceptors>
{more}</core></configuration>
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is made many times: the frame that makes number N on one of the connections."""

    persistent: bool
    frame: str
    what: str


KINDS: Final = {
    "queues": Kind(False, "SEND\ndestination:/queue/q.{n}\n{receipt}\nx\0", "a queue with a message"),
    "queues-persistent": Kind(
        True, "SEND\ndestination:/queue/q.{n}\n" + _PERSISTENT + "{receipt}\nx\0", "a queue with a persistent message"
    ),
    "durable": Kind(
        True,
        "SUBSCRIBE\nid:{n}\ndestination:/topic/t.{topic}\ndurable-subscription-name:s{n}\n{receipt}\n\0",
        "a durable subscription and its consumer",
    ),
    "subscriptions": Kind(
        False, "SUBSCRIBE\nid:{n}\ndestination:/topic/t.{topic}\n{receipt}\n\0", "a subscription of a topic"
    ),
}


class Process:
    """A broker's process in a folder of its own. ``more`` is further XML below ``core``."""

    def __init__(self, folder: Path, *, persistent: bool, more: str = "") -> None:
        text = _CONFIGURATION.format(persistent=str(persistent).lower(), folder=folder, more=more)
        (folder / "broker.xml").write_text(text, "utf-8")
        self._log = folder / "broker.log"
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "artemis_py", "run", str(folder / "broker.xml")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self.ports: dict[str, int] = {}
        until = time.monotonic() + _WAIT_S
        while "is ready" not in self._log.read_text("utf-8"):
            if self._process.poll() is not None or time.monotonic() > until:
                raise PerfError(f"the broker does not start: {self._log.read_text('utf-8')}")
            time.sleep(0.05)
        self.ports = {name: int(port) for name, port in _LISTENING.findall(self._log.read_text("utf-8"))}

    @property
    def memory_bytes(self) -> int:
        """Resident memory."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def cpu_s(self) -> float:
        """CPU time that it has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def scrape(self) -> tuple[float, int]:
        """The longest turn so far in seconds, and how many bytes the scrape had."""
        url = f"http://{_HOST}:{self.ports['http']}/metrics"
        longest = -1.0
        size_bytes = 0
        with urllib.request.urlopen(url, timeout=_WAIT_S) as answer:
            for line in answer:
                size_bytes += len(line)
                if line.startswith(b"artemis_turn_duration_seconds_max{"):
                    longest = float(line.split()[-1])
        return longest, size_bytes

    def stop(self) -> None:
        """Ends it in good order, and else at once."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Client:
    """A STOMP connection that writes many frames and waits for the receipt of the last."""

    def __init__(self, port: int, name: str) -> None:
        self._socket = socket.create_connection((_HOST, port), timeout=_WAIT_S)
        self._socket.sendall(f"CONNECT\naccept-version:1.2\nhost:x\nclient-id:{name}\n\n\0".encode())
        self._await(b"CONNECTED")

    def make(self, frames: list[str], receipt: str) -> None:
        """Sends frames of which the last has a receipt, and waits for that."""
        self._socket.sendall("".join(frames).encode())
        self._await(f"receipt-id:{receipt}\n".encode())

    def _await(self, mark: bytes) -> None:
        seen = b""
        while mark not in seen:
            data = self._socket.recv(65536)
            if not data or b"ERROR" in data:
                raise PerfError(f"the broker answers {data[:300]!r}")
            seen = seen[-len(mark) :] + data

    def close(self) -> None:
        """Goes without a word."""
        self._socket.close()


@dataclass(frozen=True, slots=True)
class Step:
    """A tenth of them: how many there were then, what memory the process had, and what each took of CPU time."""

    count: int
    memory_bytes: int
    cpu_us_each: float


def make_many(process: Process, kind: Kind, count: int, memory_bytes_max: int) -> Iterator[Step]:
    """Makes so many, a tenth at a time; stops early when the process takes more memory than it may."""
    clients = [Client(process.ports["stomp"], f"c{number}") for number in range(_CONNECTIONS)]
    made = 0
    for step in range(1, STEPS + 1):
        cpu_s, before = process.cpu_s, made
        while made < count * step // STEPS:
            size = min(_BATCH, count * step // STEPS - made)
            frames = [
                kind.frame.format(n=n, topic=n % _TOPICS, receipt="" if n < made + size - 1 else f"receipt:{n}\n")
                for n in range(made, made + size)
            ]
            made += size
            clients[made // _BATCH % _CONNECTIONS].make(frames, str(made - 1))
        yield Step(made, process.memory_bytes, (process.cpu_s - cpu_s) * 1e6 / max(made - before, 1))
        if process.memory_bytes > memory_bytes_max:
            break
    for client in clients:
        client.close()


def measure(kind: Kind, count: int, memory_bytes_max: int) -> tuple[list[Step], float, int]:
    """The steps, the memory before them in bytes, and the longest turn in seconds; told as they come."""
    with tempfile.TemporaryDirectory() as folder:
        process = Process(Path(folder), persistent=kind.persistent)
        try:
            start_bytes = process.memory_bytes
            steps: list[Step] = []
            for step in make_many(process, kind, count, memory_bytes_max):
                steps.append(step)
                each_bytes = (step.memory_bytes - start_bytes) / step.count
                memory_mib = step.memory_bytes >> 20
                say(f"{step.count:>9}  {memory_mib:>6} MiB  {each_bytes:7.0f} B  {step.cpu_us_each:6.1f} us")
            longest_s, _ = process.scrape()
            began = time.monotonic()
            again_s, scrape_bytes = process.scrape()
            took_s = time.monotonic() - began
            say(f"a scrape of {scrape_bytes >> 20} MiB took {took_s:.1f} s")
            say(f"the longest turn beside it {again_s * 1e3:.1f} ms")
        finally:
            process.stop()
    return steps, longest_s, start_bytes


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code: 1 when the last tenth took half as much again as the first."""
    parser = argparse.ArgumentParser(prog="python -m bench.many", description=__doc__)
    parser.add_argument("--kind", choices=KINDS, default="queues")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--memory-max-mib", type=int, default=5500, help="stop early at this (default %(default)s)")
    options = parser.parse_args(argv)
    kind = KINDS[options.kind]
    say(f"{options.count} times {kind.what}")
    steps, longest_s, start_bytes = measure(kind, options.count, options.memory_max_mib << 20)
    each_bytes = (steps[-1].memory_bytes - start_bytes) / steps[-1].count
    ratio = steps[-1].cpu_us_each / steps[0].cpu_us_each
    say(f"{steps[-1].count} x {kind.what}: {each_bytes:.0f} B each, {steps[0].cpu_us_each:.1f} us each first,")
    say(f"{steps[-1].cpu_us_each:.1f} us last (ratio {ratio:.2f}), longest turn {longest_s * 1e3:.1f} ms")
    return int(ratio > 1.5)


if __name__ == "__main__":
    sys.exit(main())
