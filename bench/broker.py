"""A broker that ``bench`` can start: where it is, how it is started, and the dialect it speaks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from artemis_py.perf.link import Link, Target
from artemis_py.perf.registry import SCENARIOS
from artemis_py.perf.scenario import Scenario

LOOPBACK = "127.0.0.1"
ON_ANOTHER_PORT: Final = frozenset({"1w"})
"""For brokers that serve WebSocket elsewhere than STOMP, and are not asked for it."""
DURABLE: Final = frozenset({"3", "3i", "4", "11", "recovery"})
CACHE = Path(__file__).resolve().parent.parent / ".cache" / "bench"


class Broker(ABC):
    """One broker on this machine.

    ``unsupported``: scenarios that it is not asked for. One that speaks no STOMP has ``scenarios`` of its own, and a
    ``link`` that logs in. ``gets_faster``: it is a virtual machine that compiles what it runs often.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    unsupported: ClassVar[frozenset[str]] = frozenset()
    scenarios: ClassVar[Mapping[str, type[Scenario]]] = SCENARIOS
    link: ClassVar[type[Link]] = Link
    gets_faster: ClassVar[bool] = False
    tls: Target | None = None
    """Its port for TLS, from when ``command`` was asked for one."""

    def scenario(self, name: str) -> Scenario | None:
        """As it is asked for, None where it is not."""
        found = None if name in self.unsupported else self.scenarios.get(name)
        return None if found is None else found()

    @abstractmethod
    def absent(self) -> str | None:
        """Why the broker cannot be started here, None when it can."""

    @abstractmethod
    def version(self) -> str:
        """The version installed; asked only when the broker is not absent."""

    @abstractmethod
    def command(self, home: Path, port: int, *, tls: bool = False) -> list[str]:
        """Writes what it needs into the empty directory ``home``; returns the command that runs it in foreground.
        ``tls``: it also opens a port for TLS, if it has one.
        """

    def target(self, port: int) -> Target:
        """How the load generator talks to it."""
        return Target(LOOPBACK, port)

    def metrics_url(self) -> str | None:
        """Where it tells how many syncs it made; asked after ``command``."""
        return None


class Program(Broker):
    """One that is a single program: at the path in the environment's ``variable``, or on the path."""

    program: ClassVar[str]
    variable: ClassVar[str]

    @property
    def executable(self) -> str | None:
        """None when it is not here."""
        return shutil.which(os.environ.get(self.variable) or self.program)

    def absent(self) -> str | None:
        """Looks for the program."""
        return None if self.executable else f"no {self.program} on the path, and none at {self.variable}"

    def version(self) -> str:
        """As the program says: ``v2.15.2`` or ``v=7.0.15``."""
        command = [self.executable or "", "--version"]
        found = re.search(r"\bv=?(\d\S*)", subprocess.run(command, capture_output=True, text=True, check=False).stdout)
        return "?" if found is None else found[1]


def debian_version(package: str) -> str:
    """The version of a Debian package, without Debian's own part of it."""
    query = ["dpkg-query", "--show", "--showformat=${Version}", package]
    found = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    return re.split(r"[+-]", found)[0] or "?"
