"""What a scenario needs of a broker, whichever it is."""

from __future__ import annotations

import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from tests.kit.ports import free_ports as fresh_ports
from tests.kit.process import eventually
from tests.oracle.client import LOOPBACK, Client

STOP_S = 20.0
ROOT = Path(__file__).resolve().parents[2]


Counts = dict[str, int]
"""The numbers of a queue: messages, delivering, scheduled, replaced (what a ring gave up), added, acknowledged, killed,
expired and consumers; or those of an address: routed and unrouted.
"""


class BrokerUnderTest(ABC):
    """A running broker: where it listens, what it counts, and the operations that STOMP itself has no frame for."""

    name: ClassVar[str]
    quiet_s: ClassVar[float]
    """How long nothing must come before a step believes that nothing comes; 0 where a round trip proves it."""
    counts_twice: ClassVar[bool]
    """Do counts lag behind, so that a step believes them only when it has seen them twice?"""

    def __init__(self, ports: dict[str, int]) -> None:
        self.ports = ports

    def open(self, acceptor: str, version: str, wait_s: float) -> Client:
        """A new connection."""
        return Client(self.ports[acceptor], version, wait_s)

    @abstractmethod
    def counts(self, kind: str, name: str) -> Counts | None:
        """The numbers of a ``queue`` or an ``address``, None when there is none of this name."""

    @abstractmethod
    def operate(self, operation: str, queue: str, *arguments: int) -> None:
        """``pause`` and ``resume`` dispatch from a queue, or ``resize`` a ring."""


def free_ports(names: tuple[str, ...]) -> dict[str, int]:
    """Ports of loopback that nobody else is given, by name."""
    return dict(zip(names, fresh_ports(len(names)), strict=True))


def wait_until_listening(process: subprocess.Popen[bytes], ports: dict[str, int], wait_s: float, log: Path) -> None:
    """Returns when every port is open. Fails, with the end of the log, when the process ends or takes too long."""

    def listening() -> bool:
        assert process.poll() is None, f"ended with {process.returncode}:\n{tail(log)}"
        try:
            for port in ports.values():
                socket.create_connection((LOOPBACK, port), timeout=1).close()
        except OSError:
            return False
        return True

    try:
        eventually("the broker listens", listening, bool, wait_s)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{tail(log)}") from None


@contextmanager
def running(command: Sequence[str], port: int, wait_s: float, log: Path) -> Iterator[None]:
    """A broker that was configured already, while it listens on this port."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        wait_until_listening(process, {"all": port}, wait_s, log)
        yield
    finally:
        stop(process)


def tail(log: Path) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-40:])


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that this test started: asks, then insists."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
