"""Somebody who uses the commands, with a folder and a configuration of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.terminal import Terminal
from tests.kit.forks import run_command
from tests.kit.process import LOOPBACK, WAIT_S, BrokerProcess

ROOT = Path(__file__).resolve().parents[3]


@dataclass
class User:
    """Who works in ``folder``, with a broker or without."""

    folder: Path
    broker: BrokerProcess | None = None

    environment: dict[str, str] = field(init=False, repr=False)
    url: str = field(init=False, repr=False)
    """The broker's HTTP acceptor."""
    stomp_url: str = field(init=False, repr=False)
    """The broker's STOMP acceptor."""

    def __post_init__(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ARTEMIS_PY_")}
        config = {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(self.folder / "config"), "NO_COLOR": "1"}
        self.environment = {**kept, **config}
        if self.broker is not None:
            self.url = self.broker.url
            self.stomp_url = f"stomp://{LOOPBACK}:{self.broker.ports['stomp']}"
            self.environment |= {"ARTEMIS_PY_URL": self.url, "ARTEMIS_PY_STOMP_URL": self.stomp_url}

    def run(self, *words: str, typed: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
        """A command without a terminal."""
        return run_command(
            words, typed=typed, timeout=WAIT_S, folder=self.folder, environment={**self.environment, **variables}
        )

    def printed(self, *words: str, typed: bytes = b"", **variables: str) -> str:
        """What a command prints that succeeds."""
        done = self.run(*words, typed=typed, **variables)
        assert (done.returncode, done.stderr) == (0, b""), done
        return done.stdout.decode()

    def refused(self, *words: str, code: int = 1, **variables: Any) -> str:
        """What a command says that fails."""
        done = self.run(*words, **variables)
        assert (done.returncode, done.stdout) == (code, b""), done
        return done.stderr.decode()

    def terminal(self, *words: str, environment: dict[str, str] | None = None) -> Terminal:
        """A command in a terminal."""
        command = [sys.executable, "-m", "artemis_py", *words]
        return Terminal(command, folder=self.folder, environment=environment or self.environment)
