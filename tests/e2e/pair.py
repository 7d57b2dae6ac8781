"""Two brokers on one directory, each a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.kit.process import BOTH, BrokerProcess, configuration, started

HANDS_OVER = "<failover-on-shutdown>true</failover-on-shutdown>"
STATES = {"primary": "ready", "backup": "the lock of process"}
"""What each does soon."""


class Pair(ExitStack):
    """Starts its members, and ends what is left of them. ``core`` is XML for all of them, ``http`` are parameters of
    their HTTP acceptors.
    """

    def __init__(self, folder: Path, core: str = "", http: str = "") -> None:
        super().__init__()
        self.folder = folder
        self.journal = folder / "data" / "journal"
        self._core = core
        self._http = http
        self._count = 0

    def start(
        self,
        role: str = "primary",
        settings: str = "",
        core: str = "",
        state: str | None = None,
        ports: Mapping[str, int] | None = None,
    ) -> BrokerProcess:
        """One more process, once it does as its role says, or as ``state``. ``ports`` are those of its acceptors; else
        it chooses.
        """
        file = self.folder / f"{self._count}.xml"
        self._count += 1
        core += f"{self._core}<ha-policy><shared-store><{role}>{settings}</{role}></shared-store></ha-policy>"
        acceptors = {name: uri.replace(":0?", f":{(ports or {}).get(name, 0)}?") for name, uri in BOTH.items()}
        acceptors["http"] += self._http
        file.write_text(configuration(acceptors, folder=self.folder / "data", core=core), "utf-8")
        member = self.enter_context(started(file, ready=False))
        member.await_state(STATES[role] if state is None else state)
        return member
