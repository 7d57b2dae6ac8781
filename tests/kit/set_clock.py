"""A wall clock of real processes that a test sets: other clocks, and those of other processes, stay as they are."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from tests.kit.forks import ROOT

_AHEAD_NS = struct.Struct("=q")
# What Python imports by itself before anything reads the time; where the file is, the environment says.
_SITE = """\
import mmap, os, struct, time

_descriptor = os.open(os.environ["TEST_CLOCK_AHEAD"], os.O_RDONLY)
_ahead = mmap.mmap(_descriptor, 8, prot=mmap.PROT_READ)
_real_ns = time.time_ns
time.time_ns = lambda: _real_ns() + struct.unpack("=q", _ahead)[0]
time.time = lambda: time.time_ns() / 1e9
"""


class SettableClock:
    """``set`` it at any time, for all processes with its ``environment``, also before they start."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "sitecustomize.py").write_text(_SITE, "utf-8")
        self._path = folder / "ahead"
        self._path.write_bytes(_AHEAD_NS.pack(0))
        path = os.pathsep.join((str(folder), str(ROOT)))
        self.environment = {**os.environ, "PYTHONPATH": path, "TEST_CLOCK_AHEAD": str(self._path)}

    def set(self, ahead_s: float) -> None:
        """By how much it is ahead of the machine's; below 0: behind."""
        with self._path.open("r+b", buffering=0) as file:  # the same file, which processes have mapped
            file.write(_AHEAD_NS.pack(int(ahead_s * 1e9)))
