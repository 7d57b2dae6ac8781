"""A broker made from a file, to ask it why: so reasons have lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import cast

from artemis_py.config.reader import load
from artemis_py.config.settings import AcceptorConfig
from artemis_py.core.broker import Broker
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Until
from artemis_py.errors import BrokerError
from artemis_py.histogram import Histogram
from artemis_py.management.managed import Awaited, Connected, Managed, Space, Stored
from artemis_py.management.why.not_delivered import not_delivered
from artemis_py.management.why.question import Finding, Findings, Question, learn_queues
from artemis_py.record_log import MemoryLog
from tests.kit.core import NOW_MS

_FILE = """\
<configuration xmlns="urn:activemq">
<core xmlns="urn:activemq:core">
<persistence-enabled>{persists}</persistence-enabled>
{core}
<addresses>
{addresses}
</addresses>
<address-settings>
{settings}
</address-settings>
</core>
</configuration>
"""


@dataclass
class FakeHealth:
    """A server that is well, unless a test says otherwise."""

    turns: int = 100
    turn_ns_max: int = 1_000_000
    turn_bounds_s: Sequence[float] = (0.001, 0.01, 0.1)
    turn_buckets: Sequence[int] = (100, 0, 0, 0)
    sync_times: Histogram | None = None
    durable_lsn: int = 1 << 60
    is_busy: bool = False
    headroom: int | None = None
    waiting: list[tuple[Awaited, int]] = field(default_factory=list)

    def headroom_bytes(self) -> int | None:
        return self.headroom

    def blocked_ns(self) -> int:
        return 0

    def client_of(self, owner: object) -> Connected | None:
        return cast("Connected", owner) if isinstance(owner, FakeClient) else None

    def awaited(self) -> Iterable[tuple[Awaited, int]]:
        return self.waiting

    def awaited_by(self, number: int) -> Awaited | None:
        return next((thing for thing, _ in self.waiting), None)


@dataclass
class FakeClient:
    """A client that is connected."""

    number: int = 7
    address: str = "10.0.0.7:5000"
    client_id: str | None = None
    user: str | None = None
    version: str = "1.2"
    state: str = "open"
    subscription_count: int = 1
    held_bytes: int = 0
    acceptor: AcceptorConfig = field(default_factory=partial(AcceptorConfig, name="stomp", host="127.0.0.1", port=0))


class FakeDisks:
    """The directories that a broker writes to."""

    def __init__(self, spaces: Sequence[Space] | None) -> None:
        self._spaces = spaces

    def spaces(self) -> Sequence[Space]:
        if self._spaces is None:
            raise BrokerError("the system does not say")
        return self._spaces


class Asked:
    """A broker of these XML lines, with its clock at ``now_ms``. Nothing is stored, whatever the file says of it."""

    def __init__(
        self, folder: Path, *, addresses: str = "", settings: str = "", core: str = "", persists: bool = False
    ) -> None:
        self.file = folder / "broker.xml"
        self.file.write_text(
            _FILE.format(persists=str(persists).lower(), core=core, addresses=addresses, settings=settings)
        )
        self.broker = Broker(load(self.file), MemoryLog(), NOW_MS)
        self.now_ms = NOW_MS
        self.health = FakeHealth()
        self.clients: list[FakeClient] = []
        self.managed = Managed(
            self.broker,
            "b",
            clients=lambda: cast("list[Connected]", self.clients),
            client_count=lambda: len(self.clients),
            uptime_ms=lambda: 0,
            now_ms=lambda: self.now_ms,
            client=lambda _: None,
            acceptors=list,
            stored=None,
            health=self.health,
            begin=lambda _: None,
        )

    def use_disks(self, spaces: Sequence[Space] | None) -> None:
        """Let the broker write to these; None: the system does not say."""
        self.managed = replace(self.managed, stored=cast("Stored", FakeDisks(spaces)))

    def line(self, text: str) -> str:
        """Where in the file a text stands first."""
        lines = self.file.read_text().splitlines()
        return f"{self.file}:{1 + next(place for place, line in enumerate(lines) if text in line)}"

    def why(self, answer: Callable[[Question], Findings], *, queue: str = "", address: str = "") -> list[Finding]:
        """The reasons. A pause moves the clock."""
        of_queue = self.broker.queues[queue] if queue else None
        question = Question(self.managed, self.broker.addresses[address] if address else None, of_queue)
        for _ in learn_queues(self.broker.config):
            pass
        for step in answer(question):
            if isinstance(step, Until):
                self.pause(step.steady_ms - self.managed.steady_ms())
        return question.findings

    def pause(self, span_ms: int) -> None:
        """What happens while an answer waits."""
        self.now_ms += span_ms

    def not_delivered(self, name: str = "q") -> list[Finding]:
        """Why the queue delivers nothing."""
        return self.why(lambda question: not_delivered(question, self.queue(name)), queue=name)

    def queue(self, name: str = "q") -> Queue:
        """A queue."""
        return self.broker.queues[name]


def one(found: list[Finding], code: str) -> Finding:
    """The only reason with this word."""
    matching = [finding for finding in found if finding.code == code]
    assert len(matching) == 1, [(finding.code, finding.text) for finding in found]
    return matching[0]
