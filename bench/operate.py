"""``python -m bench.operate``: what it costs others when operators look, and change much.

A broker of its own has 10,000 queues, and a million messages on one of them. A client sends a message to itself, again
and again: alone, beside a console that is open, beside lists, browses, questions, an export, and changes of the
million. Told are its round trips, how many turns took more than 5 ms, and how long the operations took.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from artemis_py.errors import PerfError
from artemis_py.perf.report import align
from artemis_py.shown import say
from bench.comparison import markdown
from bench.many import Client, Process

OPERATE: Final = "operate"
QUEUES: Final = 10_000
MESSAGES: Final = 1_000_000
MORE_MS_MAX: Final = 5.0
"""How much longer the slowest of a thousand round trips may be than without operators."""
_HOST: Final = "127.0.0.1"
_WAIT_S: Final = 600.0
_BLOCK: Final = 1000
_LONG: Final = re.compile(r'artemis_turn_duration_seconds_bucket\{.*le="0\.005".*\} (\S+)')
_ALL: Final = re.compile(r"artemis_turn_duration_seconds_count\{.*\} (\S+)")
_LIST: Final = "/api/queues?sort=messageCount:desc&size=1000"
_CONSOLE: Final = "/api/events?watch=broker&watch=queues%3Fsort%3DmessageCount%3Adesc%26size%3D50&watch=queues/deep"
_SWITCH_S: Final = 0.0001
"""The thread that pings waits for the others here no longer than this."""
_ATTEMPTS: Final = "<max-delivery-attempts>{}</max-delivery-attempts>"
_COLUMNS: Final = ("beside", "p50, ms", "p99", "p99.9", "longest", "turns", "over 5 ms", "operations", "each, ms")
Operate = Callable[[], float]


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


@dataclass(frozen=True, slots=True)
class Beside:
    """Round trips of others beside one kind of operation, in ms, and the broker's turns meanwhile."""

    what: str
    p50_ms: float
    p99_ms: float
    p999_ms: float
    longest_ms: float
    turns: int
    long_turns: int
    operations: int
    operation_ms: float | None

    def row(self) -> list[str]:
        """A row of the table."""
        trips = [f"{one:.2f}" for one in (self.p50_ms, self.p99_ms, self.p999_ms, self.longest_ms)]
        each = "-" if self.operation_ms is None else f"{self.operation_ms:,.1f}"
        return [self.what, *trips, f"{self.turns:,}", f"{self.long_turns}", f"{self.operations}", each]


@dataclass
class Operating:
    """All of them; the first is without operators."""

    found: list[Beside]

    @property
    def missed(self) -> list[str]:
        """Beside what others wait too long."""
        alone = self.found[0]
        return [one.what for one in self.found[1:] if one.p999_ms > alone.p999_ms + MORE_MS_MAX]

    def text(self) -> str:
        """For a terminal."""
        return "\n".join(align(self._rows(), frozenset({0})))

    def section(self) -> list[str]:
        """For the document."""
        return list(markdown(self._rows(), 1))

    def as_json(self) -> list[dict[str, Any]]:
        """Every figure."""
        return [asdict(one) for one in self.found]

    def _rows(self) -> list[list[str]]:
        return [list(_COLUMNS), *(one.row() for one in self.found)]


def ask(process: Process, method: str, path: str) -> float:
    """A request, whole. Returns how long it took, in ms."""
    began_s = time.perf_counter()
    request = urllib.request.Request(f"http://{_HOST}:{process.ports['http']}{path}", method=method)
    with urllib.request.urlopen(request, timeout=_WAIT_S) as answer:
        while answer.read(65536):  # and not parsed: the thread that pings would wait for that, too
            pass
    return (time.perf_counter() - began_s) * 1e3


def browsing(process: Process) -> Operate:
    """The next 1,000 messages, each time, and from the beginning after the last."""
    after = [""]

    def page() -> float:
        began_s = time.perf_counter()
        path = f"/api/queues/deep/messages?size=1000&after={after[0]}"
        with urllib.request.urlopen(f"http://{_HOST}:{process.ports['http']}{path}", timeout=_WAIT_S) as answer:
            after[0] = json.load(answer)["next"] or ""
        return (time.perf_counter() - began_s) * 1e3

    return page


def exporting(process: Process, folder: str) -> Operate:
    """The command, which writes everything to a file. Raises PerfError if it fails."""

    def export() -> float:
        began_s = time.perf_counter()
        url, path = f"http://{_HOST}:{process.ports['http']}", str(Path(folder) / "messages.jsonl")
        command = [sys.executable, "-m", "artemis_py", "data", "exp", "--url", url, "--output", path]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        if told.returncode:
            raise PerfError(told.stderr)
        return (time.perf_counter() - began_s) * 1e3

    return export


@contextmanager
def console(process: Process) -> Iterator[None]:
    """A console that is open: it reads events, and what changes in the rows that it shows."""
    answer = urllib.request.urlopen(f"http://{_HOST}:{process.ports['http']}{_CONSOLE}", timeout=_WAIT_S)
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set() and answer.readline():
            pass

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()  # an event comes each second
        answer.close()


def beside(what: str, process: Process, ping: Ping, seconds: float, operate: Operate | None) -> Beside:
    """Pings for so long while the operation goes on, again and again; without one, alone. 0 s: it is made once."""
    took: list[float] = []
    ended = threading.Event()

    failures: list[Exception] = []

    def work() -> None:
        while operate is not None and not ended.is_set():
            try:
                took.append(operate())
            except Exception as error:
                failures.append(error)
                return
            if not seconds:
                return

    turns = Turns(process)
    count, long_count = turns.counts()
    thread = threading.Thread(target=work)
    thread.start()
    trips: list[float] = []
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s or (operate is not None and not took and not failures):
        trips.append(ping.go())
    ended.set()
    thread.join()
    if failures:
        raise PerfError(f"{what}: {failures[0]}")
    trips.sort()
    now_count, now_long = turns.counts()
    p50, p99, p999 = (trips[len(trips) * share // 1000] for share in (500, 990, 999))
    each = statistics.median(took) if took else None
    return Beside(what, p50, p99, p999, trips[-1], now_count - count, now_long - long_count, len(took), each)


def measure_operating(queues: int, messages: int, seconds: float, tell: Callable[[str], None]) -> Operating:
    """Everything, on one broker."""
    sys.setswitchinterval(_SWITCH_S)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "broker.xml"
        process = Process(Path(folder), persistent=False, more=_declared(queues))
        try:
            tell(f"operate: {queues:,} queues, {messages:,} messages")
            _fill(process, messages)
            ping = Ping(process.ports["stomp"])

            def asking(method: str, path: str) -> Operate:
                return lambda: ask(process, method, path)

            looks = (
                ("sorted lists of all queues", _LIST),
                ("a browse that finds nothing", "/api/queues/deep/messages?filter=nothing%20%3D%201"),
                ("the last page of a browse", f"/api/queues/deep/messages?page={messages // 100}&size=100"),
                ("why a queue delivers nothing", "/api/queues/deep/why/not-delivered"),
            )
            changes = (
                ("a move of all messages", "/api/queues/deep/move?target=other"),
                ("a purge of them", "/api/queues/other/purge"),
            )
            found = [beside("nothing", process, ping, seconds, None)]
            with console(process):
                found.append(beside("an open console", process, ping, seconds, None))
                for what, path in looks:
                    tell(f"operate: {what}")
                    found.append(beside(f"it, and {what}", process, ping, seconds, asking("GET", path)))
                tell("operate: a reload")
                found.append(beside("it, and a reload", process, ping, seconds, lambda: _reload(process, file)))
                tell("operate: an export")
                found.append(beside("it, and pages of a browse, on and on", process, ping, seconds, browsing(process)))
                found.append(
                    beside("it, and an export of all messages", process, ping, 0.0, exporting(process, folder))
                )
                for what, path in changes:
                    tell(f"operate: {what}")
                    found.append(beside(f"it, and {what}", process, ping, 0.0, asking("POST", path)))
        finally:
            process.stop()
    return Operating(found)


def _declared(queues: int) -> str:
    lines = [
        f'<address name="q{number}"><anycast><queue name="q{number}"/></anycast></address>' for number in range(queues)
    ]
    setting = f'<address-setting match="q#">{_ATTEMPTS.format(10)}</address-setting>'
    return "\n".join(["<addresses>", *lines, "</addresses>", "<address-settings>", setting, "</address-settings>"])


def _reload(process: Process, file: Path) -> float:
    """Changes a setting of all declared queues, and has it brought into force. Returns how long that took, in ms."""
    text = file.read_text("utf-8")
    old, new = (_ATTEMPTS.format(10), _ATTEMPTS.format(9))
    file.write_text(text.replace(old, new) if old in text else text.replace(new, old), "utf-8")
    return ask(process, "POST", "/api/broker/reload")


def _fill(process: Process, messages: int) -> None:
    client = Client(process.ports["stomp"], "filler")
    client.make(["SEND\ndestination:/queue/other\nreceipt:other\n\nx\0"], "other")
    for start in range(0, messages, _BLOCK):
        frames = ["SEND\ndestination:/queue/deep\n\nx\0"] * (_BLOCK - 1)
        client.make([*frames, f"SEND\ndestination:/queue/deep\nreceipt:{start}\n\nx\0"], str(start))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.operate", description=__doc__)
    parser.add_argument("--queues", type=int, default=QUEUES)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args(argv)
    found = measure_operating(options.queues, options.messages, options.seconds, say)
    for line in found.section():
        say(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
