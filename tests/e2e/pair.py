"""Two brokers on one directory, each a process of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.process import BOTH, BrokerProcess, configuration

_STATES = re.compile(
    r"^(?:\S+Z \S+ )?broker \S+ is (?:a stand-by: it waits for (?P<waits_for>.*)|(?P<ready>ready): .*)$", re.MULTILINE
)

HANDS_OVER = "<failover-on-shutdown>true</failover-on-shutdown>"


class Member(BrokerProcess):
    """One of the two: what it said last is what it does."""

    @property
    def state(self) -> str:
        """``ready``, or for what it waits; empty while it says neither."""
        states = [match["ready"] or match["waits_for"] for match in _STATES.finditer(self.said)]
        return states[-1] if states else ""

    def await_state(self, wanted: str) -> None:
        """Waits until it is ``ready``, or waits for something in which these words are."""
        self.eventually(wanted, lambda: self.state, lambda state: wanted in state)
        self.note_ports()

    def readiness(self) -> tuple[int, str]:
        """The status of /health/ready, and the reason."""
        reply = self.ask("GET", "/health/ready")
        return reply.status, reply.json.get("reason", "")


@dataclass
class Pair:
    """Starts its members, and ends what is left of them. ``core`` is XML for all of them, ``http`` are parameters of
    their HTTP acceptors.
    """

    folder: Path
    journal: Path
    core: str = ""
    http: str = ""
    members: list[Member] = field(default_factory=list)

    def start(self, role: str, settings: str = "", core: str = "", ports: Mapping[str, int] | None = None) -> Member:
        """One more process; it says soon what it does. ``ports`` are those of its acceptors; else it chooses."""
        number = len(self.members)
        file = self.folder / f"{number}.xml"
        core += f"{self.core}<ha-policy><shared-store><{role}>{settings}</{role}></shared-store></ha-policy>"
        acceptors = {name: uri.replace(":0?", f":{(ports or {}).get(name, 0)}?") for name, uri in BOTH.items()}
        acceptors["http"] += self.http
        text = configuration(acceptors, folder=self.folder / "data", core=core)
        file.write_text(text, "utf-8")
        member = Member(["run", str(file)], self.folder / f"{number}.log")
        self.members.append(member)
        return member

    def ready(self, role: str = "primary", settings: str = "", ports: Mapping[str, int] | None = None) -> Member:
        """A member that works."""
        member = self.start(role, settings, ports=ports)
        member.await_state("ready")
        return member

    def waiting(
        self,
        role: str = "backup",
        settings: str = "",
        wanted: str = "the lock of process",
        ports: Mapping[str, int] | None = None,
    ) -> Member:
        """A member that waits."""
        member = self.start(role, settings, ports=ports)
        member.await_state(wanted)
        return member


@contextmanager
def pair_in(folder: Path, core: str = "", http: str = "") -> Iterator[Pair]:
    """A pair whose processes are gone afterwards."""
    pair = Pair(folder, folder / "data" / "journal", core, http)
    try:
        yield pair
        for member in pair.members:
            assert "Traceback" not in member.said, member.said
    finally:
        for member in pair.members:
            member.kill()
