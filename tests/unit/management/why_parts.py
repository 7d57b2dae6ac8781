"""A broker made from a file, to ask it why: so reasons have lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from artemis_py.config.reader import load
from artemis_py.core.addresses.address import Address
from artemis_py.core.broker import Broker
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Until
from artemis_py.management.why.not_delivered import not_delivered
from artemis_py.management.why.question import Finding, Findings, Question, learn_queues
from artemis_py.record_log import MemoryLog
from tests.kit.core import NOW_MS
from tests.kit.managed import FakeClient, managed_by
from tests.kit.paged_bench import PagedBench

_FILE = """\
<configuration xmlns="urn:activemq">
<core xmlns="urn:activemq:core">
<persistence-enabled>{persists}</persistence-enabled>
{core}
<addresses>
{addresses}
</addresses>
<address-settings>
<address-setting match="{match}">
{settings}
</address-setting>
</address-settings>
</core>
</configuration>
"""


class Asked:
    """A broker with a queue q of these attributes on the address a, unless ``addresses`` says otherwise, and with
    ``settings`` of the addresses that match, and ``more`` addresses. Nothing is stored, whatever the file says of it.
    """

    def __init__(
        self,
        folder: Path,
        attributes: str = "",
        settings: str = "",
        *,
        match: str = "#",
        filter: str = "",
        core: str = "",
        persists: bool = False,
        addresses: str | None = None,
        more: str = "",
    ) -> None:
        inside = f'<filter string="{filter}"/>' if filter else ""
        queue = f'<queue name="q" {attributes}>{inside}</queue>'
        plain = f'<address name="a"><multicast>\n{queue}</multicast></address>'
        self.file = folder / "broker.xml"
        self.file.write_text(
            _FILE.format(
                persists=str(persists).lower(),
                core=core,
                addresses=(plain if addresses is None else addresses) + more,
                settings=settings,
                match=match,
            )
        )
        self.broker = Broker(load(self.file), MemoryLog(), NOW_MS)
        self.address = self.broker.addresses[self.broker.config.addresses[0].name]
        self.now_ms = NOW_MS
        self.clients: list[FakeClient] = []
        self.managed = managed_by(
            self.broker, lambda: self.now_ms, clients=lambda: self.clients, client_count=lambda: len(self.clients)
        )
        self.health: Any = self.managed.health

    def line(self, text: str) -> str:
        """Where in the file a text stands first."""
        lines = self.file.read_text().splitlines()
        return f"{self.file}:{1 + next(place for place, line in enumerate(lines) if text in line)}"

    def not_delivered(self) -> list[Finding]:
        """Why the queue q delivers nothing."""
        return why(self, not_delivered, self.queue())

    def queue(self, name: str = "q") -> Queue:
        """A queue."""
        return self.broker.queues[name]


def why(
    it: Asked | PagedBench,
    answer: Callable[..., Findings],
    *about: object,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[Finding]:
    """The reasons. ``about`` is what the answer takes: first a queue or an address. A pause moves the clock, and
    ``meanwhile`` happens in it.
    """
    address = next((thing for thing in about if isinstance(thing, Address)), None)
    question = Question(it.managed, address, next((thing for thing in about if isinstance(thing, Queue)), None))
    for _ in learn_queues(it.broker.config):
        pass
    for step in answer(question, *about):
        if isinstance(step, Until):
            it.now_ms += step.steady_ms - it.managed.steady_ms()
            meanwhile()
    return question.findings


def one(found: list[Finding], code: str) -> Finding:
    """The only reason with this word."""
    matching = [finding for finding in found if finding.code == code]
    assert len(matching) == 1, [(finding.code, finding.text) for finding in found]
    return matching[0]
