"""Writes the tables of a run into ``docs/benchmarks.md``, between two marks each; what is around is written by hand."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.perf.scenario import Options
from bench.comparison import detail_rows, failures, headline_rows, markdown, other_load
from bench.driver import Measured
from bench.own import ArtemisPy

DOCUMENT: Final = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
BROKERS: Final = "bench"
"""The table of all scenarios."""


def write(table: str, found: Sequence[Measured], absent: Sequence[str], options: Options, rounds: int) -> None:
    """Replaces a table of brokers, by its name. Raises PerfError when its marks are missing."""
    before, after = _around(_begin(table), _end(table))
    _write(before, section(found, absent, options, rounds), after)


def write_part(name: str, lines: Sequence[str], rounds: int) -> None:
    """Replaces the table of a part that has no peers, by its name. Raises PerfError when its marks are missing."""
    before, after = _around(_begin(name), _end(name))
    times = "1 round" if rounds == 1 else f"{rounds} rounds"
    head = f"{time.strftime('%-d %B %Y', time.gmtime())}. {machine()}. artemis_py {ArtemisPy().version()}, {times}."
    _write(before, [head, "", *lines], after)


def _begin(name: str) -> str:
    return f"<!-- {name}: begin -->"


def _end(name: str) -> str:
    return f"<!-- {name}: end -->"


def _around(begin: str, end: str) -> tuple[str, str]:
    """What stands before and behind a table, marks included."""
    before, found_begin, rest = DOCUMENT.read_text(encoding="utf-8").partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise PerfError(f"{DOCUMENT.name} lacks {begin} or {end}")
    return before + begin, end + after


def _write(before: str, lines: Sequence[str], after: str) -> None:
    middle = "\n".join(lines)
    DOCUMENT.write_text(f"{before}\n{middle}\n{after}", encoding="utf-8")


def section(found: Sequence[Measured], absent: Sequence[str], options: Options, rounds: int) -> list[str]:
    """The lines between the marks."""
    versions = ", ".join(f"{one.broker.title} {one.version}" for one in found)
    times = "1 round" if rounds == 1 else f"{rounds} rounds"
    lines = [
        f"{time.strftime('%-d %B %Y', time.gmtime())}. {machine()}.",
        f"{versions}. {times}, about {options.seconds:g} s per scenario, medians.",
        *([f"{load}."] if (load := other_load(found)) else []),
        "",
        *markdown(headline_rows(found), 3),
        "",
        *markdown(detail_rows(found), 2),
    ]
    if absent:
        lines += ["", *(f"Not measured: {line}." for line in absent)]
    if problems := failures(found):
        lines += ["", "Failures:", "", *(f"- {problem}" for problem in problems)]
    return lines


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
