"""Brokers that start in a tenth of the time: a server that has imported the program forks a process for each of them.

They are processes of their own, with the same command, sockets and files; only what Python does before the command
begins is done once for all of them. That makes it cheap to give a broker of its own to each of hundreds of tests.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.e2e.broker_process import BrokerProcess, of_this_configuration

_IMPORTED: Final = (
    "artemis_py.cli.main",
    "artemis_py.cli.offer",
    "artemis_py.cli.run",
    "artemis_py.server.http.connection",
    "artemis_py.server.http.cursor_routes",
    "artemis_py.server.http.log_routes",
    "artemis_py.server.journal_store",
    "artemis_py.server.lifecycle",
    __name__,
)
_FORKS: Final = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(list(_IMPORTED))


class ForkedBroker(BrokerProcess):
    """A broker's process from the server of forks."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self.log = log
        log.touch()
        self.process = _Forked(arguments, log)
        self.ports = {}


class _Forked:
    """A forked process, with what tests use of ``subprocess.Popen``."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self._process = _FORKS.Process(target=_run, args=(list(arguments), str(log)))
        self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a forked broker", timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(arguments: Sequence[str], log: str) -> None:
    """What the process does: what the command does."""
    from artemis_py.cli.main import main

    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.exit(main(arguments))


@contextmanager
def forked(text: str, folder: Path) -> Iterator[BrokerProcess]:
    """Like ``running``, with a forked process."""
    with of_this_configuration(text, folder, ForkedBroker) as broker:
        yield broker
