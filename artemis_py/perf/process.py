"""What a broker costs: its process and children, read from ``/proc`` (Linux only), and what its ``/metrics`` say."""

from __future__ import annotations

import os
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from artemis_py.errors import ArtemisError, PerfError
from artemis_py.security.client_login import USER, completed

PROC: Final = Path("/proc")
# Fields of /proc/PID/stat after the command's closing parenthesis, counted from 0 (proc_pid_stat(5)).
STAT_PARENT: Final = 1
STAT_TIMES: Final = slice(11, 15)
STAT_RESIDENT_PAGES: Final = 21
# Fields of the first line of /proc/stat (proc_stat(5)): user, nice, system, steal.
CPU_BUSY: Final = (1, 2, 3, 8)


@dataclass(frozen=True, slots=True)
class Usage:
    """A snapshot of a process tree: CPU seconds since its start (including ended children) and resident bytes."""

    cpu_s: float
    resident_bytes: int


class ProcessTree:
    """A process and all its descendants. Shared memory counts once for each process."""

    __slots__ = ("_pid", "_tick_s")

    def __init__(self, pid: int) -> None:
        """Raises PerfError if there is no such process or no ``/proc``."""
        self._pid = pid
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK")
        self.usage()

    def usage(self) -> Usage:
        """The tree as it is now, to a clock tick (10 ms). Raises PerfError when the process has ended."""
        stats = _all_stats()
        if self._pid not in stats:
            raise PerfError(f"process {self._pid} does not exist")
        members = {self._pid}
        grown = True
        while grown:
            children = {pid for pid, stat in stats.items() if int(stat[STAT_PARENT]) in members}
            grown = not children <= members
            members |= children
        ticks = sum(sum(map(int, stats[pid][STAT_TIMES])) for pid in members)
        return Usage(ticks * self._tick_s, sum(_resident_bytes(pid, stats[pid]) for pid in members))


def machine_cpu_s() -> float:
    """CPU seconds of all programs since the machine started, including time stolen by a hypervisor.

    Without interrupts: they handle loopback traffic, which belongs to the measurement. Raises PerfError.
    """
    try:
        first = (PROC / "stat").read_text().splitlines()[0].split()
    except OSError as error:
        raise PerfError("the machine's load cannot be measured: there is no /proc") from error
    user, nice, system, stolen = (int(first[place]) for place in CPU_BUSY)
    return (user + nice + system + stolen) / os.sysconf("SC_CLK_TCK")


def _all_stats() -> dict[int, list[str]]:
    """The fields of each process's ``stat`` from its state on. Processes that end meanwhile are skipped."""
    stats: dict[int, list[str]] = {}
    try:
        names = [name for name in os.listdir(PROC) if name.isdigit()]
    except OSError as error:
        raise PerfError("the cost of a process cannot be measured: there is no /proc") from error
    for name in names:
        try:
            text = (PROC / name / "stat").read_text(errors="replace")
        except OSError:
            continue
        stats[int(name)] = text[text.rindex(")") + 2 :].split()
    return stats


def _resident_bytes(pid: int, stat: list[str]) -> int:
    """Exact from ``smaps_rollup``. If that is not allowed, from ``stat``, which may be off by some hundred kB."""
    try:
        rollup = (PROC / str(pid) / "smaps_rollup").read_text()
    except OSError:
        return int(stat[STAT_RESIDENT_PAGES]) * os.sysconf("SC_PAGE_SIZE")
    for line in rollup.splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    return 0


# ---- metrics ---------------------------------------------------------------------------------------------------------


SYNCS: Final = "artemis_journal_syncs"
SCRAPE_S: Final = 5.0


def syncs_of(metrics_url: str) -> float | None:
    """The number of syncs of the broker's journal, from its ``/metrics``; None if it is missing."""
    return value_of(metrics_url, SYNCS)


def value_of(metrics_url: str, name: str) -> float | None:
    """The value of an unlabelled metric from the broker's ``/metrics``; None if it is missing.

    Where metrics need a login, it is that of the environment. Raises PerfError if nothing answers there.
    """
    try:
        request = urllib.request.Request(metrics_url)
        authorization = completed({}, os.environ, {"user": USER}).authorization
        if authorization is not None:
            request.add_unredirected_header("Authorization", authorization)
        with urllib.request.urlopen(request, timeout=SCRAPE_S) as answer:
            text = answer.read().decode()
    except (ArtemisError, OSError, ValueError) as error:
        raise PerfError(f"no metrics at {metrics_url}: {error}") from error
    for line in text.splitlines():
        if line.startswith((name + "{", name + " ", name + "_total")):
            return float(line.rpartition(" ")[2])
    return None
