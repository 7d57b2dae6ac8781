"""Part ``operate``: what it costs others when operators look, and change much.

A broker of its own has 10,000 queues, and a million messages on one of them. A client sends a message to itself, again
and again: alone, beside a console that is open, beside lists, browses, questions, an export, and changes of the
million. Told are its round trips, how many turns took more than 5 ms, and how long the operations took.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

from artemis_py.errors import PerfError
from artemis_py.perf.link import Link, Target
from artemis_py.stomp.client import frame
from bench.own import ArtemisPy, Own, fill, started
from bench.part import Extent, Part, Say, Table

QUEUES: Final = 10_000
MESSAGES: Final = 1_000_000
MORE_MS_MAX: Final = 5.0
"""How much longer the slowest of a thousand round trips may be than without operators."""
_WAIT_S: Final = 600.0
_LONG: Final = re.compile(r'artemis_turn_duration_seconds_bucket\{.*le="0\.005".*\} (\S+)')
_ALL: Final = re.compile(r"artemis_turn_duration_seconds_count\{.*\} (\S+)")
_LIST: Final = "/api/queues?sort=messageCount:desc&size=1000"
_CONSOLE: Final = "/api/events?watch=broker&watch=queues%3Fsort%3DmessageCount%3Adesc%26size%3D50&watch=queues/deep"
_SWITCH_S: Final = 0.0001
"""The thread that pings waits for the others here no longer than this."""
_ATTEMPTS: Final = "<max-delivery-attempts>{}</max-delivery-attempts>"
_SETTING: Final = '<address-setting match="q#">{}</address-setting>'
_COLUMNS: Final = ("beside", "p50, ms", "p99", "p99.9", "longest", "turns", "over 5 ms", "operations", "each, ms")
Operate = Callable[[], float]


class Ping:
    """A client that sends a message to itself."""

    def __init__(self, target: Target) -> None:
        self._link = Link(target)
        self._link.subscribe("/queue/ping")
        self._message = frame("SEND", (("destination", "/queue/ping"),), b"x")

    def go(self) -> float:
        """One round trip, in ms."""
        began_s = time.perf_counter()
        self._link.send(self._message)
        while not self._link.receive("a message").endswith((b"\0", b"\n")):
            pass
        return (time.perf_counter() - began_s) * 1e3


class Turns:
    """The broker's turns, as its metrics count them."""

    def __init__(self, broker: Own) -> None:
        self._url = f"{broker.url}/metrics"

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
class Operating(Part):
    """All of them; the first is without operators."""

    found: list[Beside]

    @property
    def missed(self) -> list[str]:
        """Beside what others wait too long."""
        alone = self.found[0]
        return [one.what for one in self.found[1:] if one.p999_ms > alone.p999_ms + MORE_MS_MAX]

    def tables(self) -> list[Table]:
        """One row for each."""
        return [Table([_COLUMNS, *(one.row() for one in self.found)])]

    def as_json(self) -> list[dict[str, Any]]:
        """Every figure."""
        return [asdict(one) for one in self.found]


def ask(broker: Own, method: str, path: str) -> float:
    """A request, whole. Returns how long it took, in ms."""
    began_s = time.perf_counter()
    request = urllib.request.Request(f"{broker.url}{path}", method=method)
    with urllib.request.urlopen(request, timeout=_WAIT_S) as answer:
        while answer.read(65536):  # and not parsed: the thread that pings would wait for that, too
            pass
    return (time.perf_counter() - began_s) * 1e3


def browsing(broker: Own) -> Operate:
    """The next 1,000 messages, each time, and from the beginning after the last."""
    after = [""]

    def page() -> float:
        began_s = time.perf_counter()
        path = f"/api/queues/deep/messages?size=1000&after={after[0]}"
        with urllib.request.urlopen(f"{broker.url}{path}", timeout=_WAIT_S) as answer:
            after[0] = json.load(answer)["next"] or ""
        return (time.perf_counter() - began_s) * 1e3

    return page


def exporting(broker: Own) -> Operate:
    """The command, which writes everything to a file. Raises PerfError if it fails."""

    def export() -> float:
        began_s = time.perf_counter()
        url, path = broker.url, str(broker.home / "messages.jsonl")
        command = [sys.executable, "-m", "artemis_py", "data", "exp", "--url", url, "--output", path]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        if told.returncode:
            raise PerfError(told.stderr)
        return (time.perf_counter() - began_s) * 1e3

    return export


@contextmanager
def console(broker: Own) -> Iterator[None]:
    """A console that is open: it reads events, and what changes in the rows that it shows."""
    answer = urllib.request.urlopen(f"{broker.url}{_CONSOLE}", timeout=_WAIT_S)
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


def beside(what: str, broker: Own, ping: Ping, seconds: float, operate: Operate | None) -> Beside:
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

    turns = Turns(broker)
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


def measure_operating(extent: Extent, say: Say) -> Operating:
    """Everything, on one broker."""
    sys.setswitchinterval(_SWITCH_S)
    queues, messages = (QUEUES // 10, MESSAGES // 10) if extent.quick else (QUEUES, MESSAGES)
    seconds = extent.seconds
    with started(ArtemisPy(_declared(queues), _SETTING.format(_ATTEMPTS.format(10)), persistent=False)) as broker:
        say(f"operate: {queues:,} queues, {messages:,} messages")
        fill(broker.target, "other", 1)
        fill(broker.target, "deep", messages)
        ping = Ping(broker.target)

        def asking(method: str, path: str) -> Operate:
            return lambda: ask(broker, method, path)

        looks: tuple[tuple[str, Operate], ...] = (
            ("sorted lists of all queues", asking("GET", _LIST)),
            ("a browse that finds nothing", asking("GET", "/api/queues/deep/messages?filter=nothing%20%3D%201")),
            ("the last page of a browse", asking("GET", f"/api/queues/deep/messages?page={messages // 100}&size=100")),
            ("why a queue delivers nothing", asking("GET", "/api/queues/deep/why/not-delivered")),
            ("a reload", lambda: _reload(broker)),
            ("pages of a browse, on and on", browsing(broker)),
        )
        changes: tuple[tuple[str, Operate], ...] = (
            ("an export of all messages", exporting(broker)),
            ("a move of all messages", asking("POST", "/api/queues/deep/move?target=other")),
            ("a purge of them", asking("POST", "/api/queues/other/purge")),
        )
        found = [beside("nothing", broker, ping, seconds, None)]
        with console(broker):
            found.append(beside("an open console", broker, ping, seconds, None))
            for what, operate in looks:
                say(f"operate: {what}")
                found.append(beside(f"it, and {what}", broker, ping, seconds, operate))
            for what, operate in changes:
                say(f"operate: {what}")
                found.append(beside(f"it, and {what}", broker, ping, 0.0, operate))
    return Operating(found)


def _declared(queues: int) -> str:
    lines = [f'<address name="q{one}"><anycast><queue name="q{one}"/></anycast></address>' for one in range(queues)]
    return "\n".join(["<addresses>", *lines, "</addresses>", ""])


def _reload(broker: Own) -> float:
    """Changes a setting of all declared queues, and has it brought into force. Returns how long that took, in ms."""
    file = broker.home / "broker.xml"
    text = file.read_text("utf-8")
    old, new = (_ATTEMPTS.format(10), _ATTEMPTS.format(9))
    file.write_text(text.replace(old, new) if old in text else text.replace(new, old), "utf-8")
    return ask(broker, "POST", "/api/broker/reload")
