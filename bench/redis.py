"""Redis Streams, made durable for each command: the scenarios in which a stream does what a durable queue does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar, Final

from artemis_py.errors import PerfError
from artemis_py.perf.durable import GROUP, Durable, Sink, Source
from artemis_py.perf.link import Link, Target
from artemis_py.perf.pump import body_of, end_of, numbered
from artemis_py.perf.scenario import Run, Scenario
from artemis_py.perf.sync import DurableSync, DurableSyncProducers, SyncProducers, Window
from bench.broker import LOOPBACK, Program

READERS: Final = "readers"
"""The consumer group."""
COUNT: Final = 1000
"""How many messages a consumer asks for at once: as many as those of other brokers may have unacknowledged."""
_ENTRY: Final = re.compile(rb"\*2\r\n\$\d+\r\n(\d+-\d+)\r\n")
_HEAD: Final = re.compile(rb"\*1\r\n\*2\r\n\$\d+\r\n[^\r]+\r\n\*(\d+)\r\n")


def command(*words: bytes | str | int) -> bytes:
    """A command as an array of bulk strings."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


class RedisLink(Link):
    """A connection on which each command is answered in order."""

    __slots__ = ()

    def log_in(self) -> None:
        """PING: a server that still loads its files refuses it."""
        self.asked("PING")

    def asked(self, *words: bytes | str | int) -> bytes:
        """The first line of the answer to a command, with its length where it is a bulk string. Raises PerfError."""
        self.send(command(*words))
        found = b""
        while b"\r\n" not in found:
            found += self.receive(f"an answer to {words[0]!r}")
        line = found.split(b"\r\n")[0]
        if line.startswith(b"-"):
            raise PerfError(f"{self.target.url} answered {words[0]!r} with {line.decode(errors='replace')}")
        return line

    def goodbye(self) -> int:
        """Closes. Streams are counted elsewhere."""
        self.close()
        return 0


# ---- a producer that waits for each answer -----------------------------------------------------------


class RedisWindow(Window):
    """XADD, and the id of the entry as its receipt."""

    __slots__ = ("_answer",)

    def __init__(self, link: Link, queue: str, rendered: bytes) -> None:
        super().__init__(link, queue, rendered)
        self._answer = b""

    def receive(self) -> bool:
        """Reads; True if the whole answer has arrived. Raises PerfError for an error."""
        self._answer += self.link.receive("an answer to XADD")
        if not self._answer.startswith(b"$"):
            raise PerfError(f"XADD was answered with {self._answer.decode(errors='replace')[:300]}")
        if self._answer.count(b"\r\n") < 2:
            return False
        self._answer = b""
        self.confirmed += 1
        return True


class RedisSyncProducers(SyncProducers):
    """A stream for each producer."""

    link = RedisLink

    def producer(self, run: Run, body: bytes, place: int, stack: ExitStack) -> Window:
        """One of them, connected."""
        queue = run.queue()
        rendered = command("XADD", queue, "*", "body", numbered(body, place))
        return RedisWindow(stack.enter_context(self.link(run.target)), queue, rendered)

    def drain(self, run: Run, windows: list[Window], body: bytes, stack: ExitStack) -> None:
        """Counts. Raises PerfError unless exactly the confirmed entries are there."""
        link = stack.enter_context(RedisLink(run.target))
        for window in windows:
            held = link.asked("XLEN", window.queue)
            if held != b":%d" % window.confirmed:
                raise PerfError(f"{window.confirmed:,} entries were confirmed, and XLEN is {held.decode()}")


class RedisDurableSync(RedisSyncProducers, DurableSync):
    """Scenario 4."""


class RedisDurableSyncProducers(RedisSyncProducers, DurableSyncProducers):
    """Scenario 11."""


# ---- batches -----------------------------------------------------------------------------------------


class RedisSource(Source):
    """Groups of a hundred XADD at once. Each is answered; the hundredth answer is that of the group."""

    def __init__(self, link: Link, group: bytes) -> None:
        super().__init__(link, group)
        self._answers = 0

    def take(self) -> bool:
        """Reads answers; True if any arrived."""
        data = self.receive()
        if data.startswith(b"-"):
            raise PerfError(f"XADD was answered with {data.decode(errors='replace')[:300]}")
        self._answers += data.count(b"$")
        groups, self._answers = divmod(self._answers, GROUP)
        self.awaited -= groups
        return bool(data)


class RedisSink(Sink):
    """A consumer of the group: XREADGROUP for up to a thousand, XACK for each hundred of them, and the next."""

    def __init__(self, link: Link, queue: str, marker: bytes) -> None:
        super().__init__(link, acks_each=False)
        self._queue = queue
        self._marker = marker
        self._read = command("XREADGROUP", "GROUP", READERS, "one", "COUNT", COUNT, "BLOCK", 0, "STREAMS", queue, ">")
        self._held = b""
        self.unsent += self._read

    def take(self) -> bool:
        """Reads answers, and prepares what follows from them; True if any arrived."""
        data = self.receive()
        self._held += data
        self._confirmations()
        found = _HEAD.match(self._held)
        if found is None:
            if self._held.startswith(b"-"):
                raise PerfError(f"XREADGROUP was answered with {self._held.decode(errors='replace')[:300]}")
            return bool(data)
        count = int(found[1])
        if self._held.count(self._marker) == count:
            ids = _ENTRY.findall(self._held)
            self._held = b""
            self._taken(ids)
        return bool(data)

    def _confirmations(self) -> None:
        """Answers to XACK stand before everything else."""
        while self._held.startswith(b":") and (end := self._held.find(b"\r\n")) > 0:
            self._held = self._held[end + 2 :]
            self.awaited -= 1

    def _taken(self, ids: list[bytes]) -> None:
        self.received += len(ids)
        if self.received > self.expected:
            raise PerfError(f"the consumer received {self.received - self.expected:,} more messages than were sent")
        for start in range(0, len(ids), GROUP):
            self.unsent += command("XACK", self._queue, READERS, *ids[start : start + GROUP])
            self.awaited += 1
        self.unsent += self._read


class RedisDurable(Durable):
    """Scenario 3."""

    link = RedisLink

    def source(self, run: Run, producer: Link, queue: str, body: bytes) -> Source:
        """Where messages come from."""
        group = [command("XADD", queue, "*", "body", numbered(body, place)) for place in range(GROUP)]
        return RedisSource(producer, b"".join(group))

    def sink(self, run: Run, consumer: Link, queue: str) -> Sink:
        """Where they go to: the stream and its group exist."""
        assert isinstance(consumer, RedisLink)
        consumer.asked("XGROUP", "CREATE", queue, READERS, "$", "MKSTREAM")
        return RedisSink(consumer, queue, end_of(body_of(run.options.size or 100)) + b"\r\n")

    def nothing_left(self, run: Run, queue: str) -> None:
        """Raises PerfError if the group still holds a message that was acknowledged."""
        with RedisLink(run.target) as link:
            link.send(command("XPENDING", queue, READERS))
            if not (found := link.receive("an answer to XPENDING")).startswith(b"*4\r\n:0\r\n"):
                raise PerfError(f"acknowledged messages are still pending: {found.decode(errors='replace')[:100]}")


# ---- the server --------------------------------------------------------------------------------------


class Redis(Program):
    """``REDIS_SERVER``, or ``redis-server`` on the path (Debian's package), with ``appendfsync always``."""

    name = "redis"
    title = "Redis Streams"
    program = "redis-server"
    variable = "REDIS_SERVER"
    scenarios: ClassVar[Mapping[str, type[Scenario]]] = {
        "3": RedisDurable,
        "4": RedisDurableSync,
        "11": RedisDurableSyncProducers,
    }
    link = RedisLink

    def command(self, home: Path, port: int, *, tls: bool = False) -> list[str]:
        """An append-only file, synced before each answer; no snapshots, and no rewriting of the file meanwhile."""
        options = {
            "port": port,
            "bind": LOOPBACK,
            "dir": home,
            "appendonly": "yes",
            "appendfsync": "always",
            "auto-aof-rewrite-percentage": 0,
            "save": "",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        return [self.executable or "", *words]

    def target(self, port: int) -> Target:
        """Keys have no prefix."""
        return Target(LOOPBACK, port, queue_prefix="")
