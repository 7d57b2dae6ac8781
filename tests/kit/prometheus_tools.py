"""Finds a real Prometheus: on the path, or in Debian's package unpacked below ``.cache/``. Installs nothing."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "prometheus"
DOWNLOAD_SECONDS_MAX = 120


def find_tool(name: str) -> str:
    """The path of ``prometheus`` or ``promtool``; skips when this machine has none and cannot get one."""
    on_path = shutil.which(name)
    if on_path is not None:
        return on_path
    unpacked = CACHE / "usr" / "bin" / name
    if not unpacked.exists():
        _unpack_debian_package()
    if not unpacked.exists():
        pytest.skip(f"no {name}: neither on the path nor to be had as a Debian package")
    return str(unpacked)


def _unpack_debian_package() -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    # Beside the cache and renamed at the end, so that a run that is stopped leaves no half a package behind.
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as folder:
        command = ["apt-get", "-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=15", "download", "prometheus"]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=DOWNLOAD_SECONDS_MAX)
            (package,) = Path(folder).glob("prometheus_*.deb")
            subprocess.run(["dpkg", "-x", str(package), f"{folder}/unpacked"], check=True, capture_output=True)
        except (OSError, ValueError, subprocess.SubprocessError):
            return
        shutil.rmtree(CACHE, ignore_errors=True)
        Path(folder, "unpacked").rename(CACHE)
