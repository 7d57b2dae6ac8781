"""Programs and libraries that a machine may lack: tests get them, below ``.cache/``. What cannot be is ``Absent``."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.kit.sources import ROOT

CACHE = ROOT / ".cache" / "clients"
INSTALL_S_MAX = 90


class Absent(Exception):
    """This machine has no such program and cannot get it; says why."""


def tool(name: str) -> str:
    """The path of a program. Raises Absent."""
    path = shutil.which(name)
    if path is None:
        raise Absent(f"there is no {name} on the path")
    return path


def attempt(
    command: Sequence[str], folder: Path, environment: dict[str, str] | None = None, timeout_s: float = INSTALL_S_MAX
) -> None:
    """Runs a step of an installation, or looks whether there is what a program needs. Raises Absent with its last
    words.
    """
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Absent(str(error)) from error
    if done.returncode:
        raise Absent(f"{' '.join(command[:3])}: {' '.join((done.stderr or done.stdout).split())[-300:]}")


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder that becomes ``target`` when all went well, so that a run that is stopped leaves no half of it. The one
    that another process has made meanwhile stays: it is in use.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        folder = Path(name) / "new"
        folder.mkdir()
        yield folder
        with suppress(OSError):
            folder.rename(target)


def folder_for(name: str, *sources: Path) -> Path:
    """The folder of the cache for what is made of these files."""
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()
    return CACHE / f"{name}-{digest[:12]}"


def taken_apart(*packages: str) -> Path:
    """The folder with what is in packages of Debian. Raises Absent."""
    target = CACHE / f"debian-{packages[0]}"
    if not target.exists():
        apt_get, dpkg = tool("apt-get"), tool("dpkg")
        with new_folder(target) as folder:
            attempt(
                [apt_get, "-o", "Acquire::http::Timeout=15", "-o", "Acquire::Retries=0", "download", *packages], folder
            )
            for package in folder.glob("*.deb"):
                attempt([dpkg, "-x", str(package), str(folder)], folder)
    return target
