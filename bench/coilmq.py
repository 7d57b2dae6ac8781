"""CoilMQ, a broker in Python, from PyPI into an environment of its own."""

from __future__ import annotations

import subprocess
import venv
from functools import cached_property
from pathlib import Path
from typing import Final

from artemis_py.perf.link import Target
from bench.broker import CACHE, DURABLE, LOOPBACK, ON_ANOTHER_PORT, Broker

REQUIREMENT: Final = "coilmq==1.1.0"
INSTALL_LIMIT_S: Final = 300
LAUNCHER: Final = Path(__file__).with_name("coilmq_launcher.py")


class CoilMq(Broker):
    """In memory, threads. STOMP 1.1, because its 1.2 wants the machine's full name as ``host``."""

    name = "coilmq"
    title = "CoilMQ"
    unsupported = DURABLE | ON_ANOTHER_PORT

    def absent(self) -> str | None:
        """Installs it when it is not there yet."""
        return self._problem

    @cached_property
    def _problem(self) -> str | None:
        if self._python.exists() and self._installed() is not None:
            return None
        try:
            venv.create(CACHE / "coilmq", with_pip=True, clear=True)
            subprocess.run(
                [self._python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", REQUIREMENT],
                check=True,
                capture_output=True,
                timeout=INSTALL_LIMIT_S,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return f"{REQUIREMENT} could not be installed: {error}"
        return None

    @property
    def _python(self) -> Path:
        return CACHE / "coilmq" / "bin" / "python"

    def _installed(self) -> str | None:
        code = "from importlib.metadata import version; print(version('coilmq'))"
        found = subprocess.run([self._python, "-c", code], capture_output=True, text=True, check=False)
        return found.stdout.strip() if found.returncode == 0 else None

    def version(self) -> str:
        """As installed."""
        return self._installed() or "?"

    def command(self, home: Path, port: int, *, tls: bool = False) -> list[str]:
        """Through our launcher, which hands it whole frames."""
        # -P: this folder has a module of the same name, which must not hide the package.
        return [str(self._python), "-P", str(LAUNCHER), str(port)]

    def target(self, port: int) -> Target:
        """STOMP 1.1."""
        return Target(LOOPBACK, port, version="1.1")
