"""Writes what a run has measured into ``docs/benchmarks.md`` or its own page, and its headlines into ``README.md``.

The tables stand between two marks for each part. The first of both carries the stamp of the run: date, commit and
machine, which also stand at the top of the page. So a table of another day, build or machine can be told from the rest
(``stamps``); what is around the marks is written by hand.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from pathlib import Path
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.version import IS_COMPILED, VERSION
from bench.own import ROOT

DOCUMENT: Final = ROOT / "docs" / "benchmarks.md"
SCALING: Final = ROOT / "docs" / "scaling.md"
README: Final = ROOT / "README.md"
RUN: Final = "run"
"""The part at the top of the page: of which run it is."""
SPEED: Final = "speed"
"""The headlines in README.md."""
_MARKS: Final = re.compile(
    r"<!-- (?P<name>[a-z]+): begin(?:, (?P<stamp>[^>]*))? -->\n(?P<body>.*?)(?P<indent> *)<!-- (?P=name): end -->",
    re.DOTALL,
)


def write(name: str, stamp: str, body: str, file: Path | None = None) -> None:
    """Replaces a part, by its name, with its stamp. Raises PerfError when its marks are missing."""
    file = file or DOCUMENT
    text = file.read_text(encoding="utf-8")
    found = next((one for one in _MARKS.finditer(text) if one["name"] == name), None)
    if found is None:
        raise PerfError(f"{file.name} lacks the marks <!-- {name}: begin --> and <!-- {name}: end -->")
    part = f"<!-- {name}: begin, {stamp} -->\n{body}\n{found['indent']}<!-- {name}: end -->"
    file.write_text(text[: found.start()] + part + text[found.end() :], encoding="utf-8")


def stamps(text: str) -> dict[str, str]:
    """The stamp of each part of a page, empty where it was never measured."""
    return {found["name"]: found["stamp"] or "" for found in _MARKS.finditer(text)}


def by_hand(text: str) -> str:
    """What of a page no run has written."""
    return _MARKS.sub("", text)


def stamp() -> str:
    """Today, this build and this machine: what all figures of a page have in common."""
    return f"{time.strftime('%-d %B %Y', time.gmtime())}, {build()}, {machine()}"


def build() -> str:
    """Version and commit of this checkout, and whether it is compiled."""
    commit = _git("rev-parse", "--short=8", "HEAD") or "no commit"
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", "artemis_py", "bench")
    how = "compiled" if IS_COMPILED else "interpreted"
    return f"artemis_py {VERSION} of {commit}{' with changes' if changed else ''} ({how})"


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def machine() -> str:
    """Processor, memory, system and Python, in one line."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores of {_processor()}, {memory_gib:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"{platform.python_implementation()} {platform.python_version()}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "an unknown processor"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "an unknown processor"
