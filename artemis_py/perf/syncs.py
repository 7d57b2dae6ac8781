"""The cost of a sync on the disk, and the broker's number of syncs."""

from __future__ import annotations

import os
import tempfile
import time
import urllib.request
from typing import Final

from artemis_py.errors import ArtemisError, PerfError
from artemis_py.perf.result import percentile
from artemis_py.security.client_login import USER, completed

PROBES: Final = 400
WRITE_BYTES: Final = 256
FILE_BYTES: Final = 1 << 20
SYNCS: Final = "artemis_journal_syncs"
SCRAPE_S: Final = 5.0


def fdatasync_ns(directory: str, count: int = PROBES) -> list[int]:
    """The times in ns of writes of 256 bytes with ``fdatasync``, in a file of zeros created before.

    Raises PerfError if the directory is not writable.
    """
    took: list[int] = []
    block = b"x" * WRITE_BYTES
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            descriptor = file.fileno()
            os.pwrite(descriptor, bytes(FILE_BYTES), 0)
            os.fsync(descriptor)
            for number in range(count):
                started = time.perf_counter_ns()
                os.pwrite(descriptor, block, number * WRITE_BYTES % FILE_BYTES)
                os.fdatasync(descriptor)
                took.append(time.perf_counter_ns() - started)
    except OSError as error:
        raise PerfError(f"fdatasync cannot be measured in {directory}: {error.strerror or error}") from error
    return took


def median_us(took_ns: list[int]) -> float:
    """The median in µs."""
    return percentile(sorted(took_ns), 50) / 1000


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
