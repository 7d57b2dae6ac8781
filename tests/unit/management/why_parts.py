"""A broker made from a file, to ask it why: so reasons have lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from artemis_py.config.reader import load
from artemis_py.core.broker import Broker
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Until
from artemis_py.errors import BrokerError
from artemis_py.management.managed import Connected, Space, Stored
from artemis_py.management.why.dead import dead
from artemis_py.management.why.dropped import dropped
from artemis_py.management.why.not_delivered import not_delivered
from artemis_py.management.why.question import Finding, Findings, Question, learn_queues
from artemis_py.record_log import MemoryLog
from tests.kit.core import NOW_MS
from tests.kit.managed import FakeClient, FakeHealth, managed_by

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


@dataclass(eq=False)
class FakeDisks:
    """The directories that a broker writes to."""

    _spaces: Sequence[Space] | None

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
        self.managed = managed_by(
            self.broker,
            lambda: self.now_ms,
            clients=lambda: cast("list[Connected]", self.clients),
            client_count=lambda: len(self.clients),
            health=self.health,
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

    def dropped(self) -> list[Finding]:
        """Why messages of address a are gone."""
        return self.why(lambda question: dropped(question, self.broker.addresses["a"], None), address="a")

    def dead(self, name: str = "DLQ", since_ms: int = 0) -> list[Finding]:
        """Why the messages of a queue are dead."""
        return self.why(lambda question: dead(question, self.queue(name), since_ms), queue=name)

    def queue(self, name: str = "q") -> Queue:
        """A queue."""
        return self.broker.queues[name]


def one(found: list[Finding], code: str) -> Finding:
    """The only reason with this word."""
    matching = [finding for finding in found if finding.code == code]
    assert len(matching) == 1, [(finding.code, finding.text) for finding in found]
    return matching[0]
