"""NATS core, which speaks a protocol of its own: the scenarios in which its subjects do what transient queues do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from artemis_py.errors import PerfError
from artemis_py.perf.link import Link, Target
from artemis_py.perf.pump import end_of, numbered
from artemis_py.perf.scenario import Run, Scenario
from artemis_py.perf.streams import Stream, Transient, TransientLarge
from bench.broker import LOOPBACK, Program

# By default the server lets a consumer go that is 64 MiB behind; here producer and consumer are one program.
CONFIGURATION: Final = """\
host: {host}
port: {port}
max_pending: 4GB
write_deadline: "60s"
"""


class NatsLink(Link):
    """A connection that is not verbose: the server answers nothing but PING, and errors."""

    __slots__ = ("_pending",)

    def log_in(self) -> None:
        """CONNECT, and PING to see that it was taken."""
        self._pending = b""
        self.send(b'CONNECT {"verbose":false,"pedantic":false}\r\n')
        self._all_arrived()

    def subscribe(self, destination: str, subscription: str = "0", confirm: bool = True) -> None:
        """SUB; the server takes commands in order, so its PONG confirms it."""
        self.send(b"SUB %b %b\r\n" % (destination.encode(), subscription.encode()))
        if confirm:
            self._all_arrived()

    def goodbye(self) -> int:
        """Waits until the server has taken everything; returns how many messages came meanwhile."""
        self.sock.settimeout(self.target.stall_s)
        try:
            return self._all_arrived().count(b"MSG ")
        finally:
            self.close()

    def give_back(self, data: bytes) -> None:
        """What came behind the last message."""
        self._pending = data

    def _all_arrived(self) -> bytes:
        """Sends a PING; returns what came before its PONG. Raises PerfError for an error."""
        self.send(b"PING\r\n")
        found = self._pending
        while b"PONG\r\n" not in found:
            found += self.receive("PONG")
        before, _, self._pending = found.partition(b"PONG\r\n")
        if b"-ERR" in before:
            raise PerfError(f"{self.target.url} answered {before.decode(errors='replace').strip()[:300]}")
        return before


class NatsStream(Stream):
    """PUB instead of SEND, MSG instead of MESSAGE."""

    link = NatsLink

    def marker(self, body: bytes) -> bytes:
        """A line end, where STOMP has a NUL."""
        return end_of(body) + b"\r\n"

    def frame(self, run: Run, destination: str, body: bytes, place: int) -> bytes:
        """The PUB at a place of a block."""
        return b"PUB %b %d\r\n%b\r\n" % (destination.encode(), len(body), numbered(body, place))


class NatsTransient(NatsStream, Transient):
    """Scenario 1."""


class NatsTransientLarge(NatsStream, TransientLarge):
    """Scenario 2."""


class Nats(Program):
    """``NATS_SERVER``, or ``nats-server`` on the path; without JetStream."""

    name = "nats"
    title = "NATS core"
    program = "nats-server"
    variable = "NATS_SERVER"
    scenarios: ClassVar[Mapping[str, type[Scenario]]] = {"1": NatsTransient, "2": NatsTransientLarge}
    link = NatsLink

    def command(self, home: Path, port: int, *, tls: bool = False) -> list[str]:
        """A file with the port and the limits."""
        file = home / "nats.conf"
        file.write_text(CONFIGURATION.format(host=LOOPBACK, port=port), encoding="utf-8")
        return [self.executable or "", "--config", str(file)]

    def target(self, port: int) -> Target:
        """Subjects have no prefix."""
        return Target(LOOPBACK, port, queue_prefix="")
