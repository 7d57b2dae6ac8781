"""``relay.c``, which shows what the kernel and the protocol alone cost."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cached_property
from pathlib import Path
from typing import Final

from artemis_py.version import VERSION
from bench.broker import CACHE, ON_ANOTHER_PORT, Broker

SOURCE: Final = Path(__file__).with_name("relay.c")


class Relay(Broker):
    """``relay.c``: no broker, but what the kernel and the protocol alone cost with this load generator."""

    name = "relay"
    title = "relay in C"
    unsupported = frozenset({"3", "3i", "recovery"}) | ON_ANOTHER_PORT

    def absent(self) -> str | None:
        """Compiles it when its source has changed."""
        return self._problem

    @cached_property
    def _problem(self) -> str | None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            return "there is no C compiler"
        if self._program.exists() and self._program.stat().st_mtime > SOURCE.stat().st_mtime:
            return None
        self._program.parent.mkdir(parents=True, exist_ok=True)
        part = self._program.with_suffix(f".{os.getpid()}")  # others may compile or run it at this moment
        made = subprocess.run([compiler, "-O2", "-o", part, SOURCE], capture_output=True, check=False)
        if made.returncode != 0:
            return f"{SOURCE.name} does not compile"
        part.replace(self._program)
        return None

    @property
    def _program(self) -> Path:
        return CACHE / "relay"

    def version(self) -> str:
        """It comes with this checkout."""
        return VERSION

    def command(self, home: Path, port: int, *, tls: bool = False) -> list[str]:
        """With a file for what is durable."""
        return [str(self._program), str(port), str(home / "log")]
