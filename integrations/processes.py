"""For tests of the packages: a copy of an example as a user starts it, each part a process of its own, that can be
killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WAIT_S = 40.0


def wait_for(what: Callable[[], Any], process: subprocess.Popen[bytes] | None = None) -> Any:
    """What this returns as soon as it is true."""
    until_s = time.monotonic() + WAIT_S
    while not (found := what()):
        assert process is None or process.poll() is None, "the process has ended"
        assert time.monotonic() < until_s, what
        time.sleep(0.05)
    return found


def kill(process: subprocess.Popen[bytes]) -> None:
    """kill -9, and its children with it."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(WAIT_S)


class Example:
    """A copy of an example, and nothing beside it: a broker.xml, and programs. What they print is elsewhere."""

    def __init__(self, source: Path, folder: Path, **environment: str) -> None:
        self.project = shutil.copytree(source, folder / "project", ignore=shutil.ignore_patterns("__pycache__", "data"))
        self.folder = folder
        self.environment = environment
        self.port = 0

    @property
    def address(self) -> str:
        """Where the broker listens."""
        return f"127.0.0.1:{self.port}"

    @contextmanager
    def running(self, name: str, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
        """A process, by the arguments of ``python``."""
        with (self.folder / f"{name}.log").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self.project,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, **self.environment, **environment},
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                kill(process)

    def log(self, name: str) -> str:
        """What a process has printed, until now."""
        return (self.folder / f"{name}.log").read_text()

    @contextmanager
    def broker(self) -> Iterator[subprocess.Popen[bytes]]:
        """The broker, on a free port; again, on the same."""
        settings = {"STOMP_PORT": str(self.port), "HTTP_PORT": "0", "DATA": str(self.folder / "data")}
        with self.running("broker", "-m", "artemis_py", "run", "broker.xml", **settings) as process:
            wait_for(lambda: "is ready" in self.log("broker"), process)
            [line] = [line for line in self.log("broker").splitlines() if "acceptor=stomp" in line]
            self.port = int(line.rpartition("127.0.0.1:")[2].split()[0])
            self.environment["BROKER"] = self.address
            yield process

    def run(self, *arguments: str) -> str:
        """What a program prints that ends by itself."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.project,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


class Kitchen(Example):
    """An example that cooks: each dish that is done is a line in a file."""

    def __init__(self, source: Path, folder: Path, **environment: str) -> None:
        self.cooked = folder / "cooked.txt"
        self.cooked.touch()
        super().__init__(source, folder, KITCHEN_LOG=str(self.cooked), **environment)

    @contextmanager
    def started(self, name: str, *arguments: str, says: str, times: int = 1) -> Iterator[subprocess.Popen[bytes]]:
        """A process that has printed this so often."""
        with self.running(name, *arguments) as process:
            wait_for(lambda: self.log(name).count(says) >= times, process)
            yield process

    @contextmanager
    def sending(self, *arguments: str) -> Iterator[None]:
        """A program that sends, to its end: it must succeed, whatever happens to the broker meanwhile."""
        with self.running("sender", *arguments) as process:
            yield
            assert process.wait(WAIT_S) == 0, self.log("sender")

    def dishes(self) -> list[str]:
        """What is done."""
        return self.cooked.read_text().splitlines()
