"""``max-disk-usage`` and ``min-disk-free``: senders are held back before a disk of the broker is full."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from artemis_py.config.settings import BrokerConfig
from artemis_py.core.broker import Broker

_MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """A file system at one moment: the share that is used, from 0 to 1, and what this process may still write."""

    used_fraction: float
    free_bytes: int


def space_of(directory: str) -> DiskSpace:
    """The file system that holds ``directory``. Raises OSError."""
    found = os.statvfs(directory)
    total = found.f_blocks or 1
    return DiskSpace(1 - found.f_bavail / total, found.f_bavail * found.f_frsize)


def is_full(config: BrokerConfig, space: DiskSpace) -> bool:
    """Has the share that is used reached ``max-disk-usage`` percent? Or, when ``min-disk-free`` is set, which then
    counts alone: is no more than that free? (Artemis manual, "Max Disk Usage")
    """
    if config.min_disk_free >= 0:
        return space.free_bytes <= config.min_disk_free
    return 0 <= config.max_disk_usage <= space.used_fraction * 100


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class DiskWatch:
    """Tells the broker when the disk is full (``is_full``) and when it is not any more; ``disk-full-policy`` does the
    rest. It does not look by itself: somebody calls ``look`` every ``period_ms`` (-1: never).
    """

    def __init__(
        self,
        config: BrokerConfig,
        broker: Broker,
        schedule: Callable[[], None],
        *,
        probe: Callable[[str], DiskSpace] = space_of,
        say: Callable[[str], None] = _say,
    ) -> None:
        self.period_ms = config.disk_scan_period
        self._directories = tuple(
            dict.fromkeys((config.journal_directory, config.paging_directory, config.large_messages_directory))
        )
        self._full_directory = config.journal_directory
        self._config = config
        self._broker = broker
        self._schedule = schedule
        self._probe = probe
        self._say = say
        self._could_look = True

    def look(self) -> None:
        """Look once. A file system that cannot be looked at leaves things as they are, and that is said once."""
        spaces: dict[str, DiskSpace] = {}
        for directory in self._directories:
            try:
                spaces[directory] = self._probe(directory)
            except OSError as error:
                if self._could_look:
                    self._say(f"warning: the disk of {directory} cannot be looked at: {error.strerror or error}")
                self._could_look = False
                return
        self._could_look = True
        fullest = next((directory for directory, space in spaces.items() if is_full(self._config, space)), None)
        is_news = (fullest is not None) != self._broker.disk_full
        if is_news or fullest is not None:
            self._schedule()  # also without news: in a turn retention removes what somebody wanted to hold back
        if not is_news:
            return
        self._broker.disk_full = fullest is not None
        self._full_directory = fullest or self._full_directory
        self._say(self._news(self._full_directory, spaces[self._full_directory]))

    def _news(self, directory: str, space: DiskSpace) -> str:
        figures = f"{space.used_fraction:.0%} used, {space.free_bytes // _MEBIBYTE:,} MiB free"
        if not self._broker.disk_full:
            return f"the disk of {directory} has room again ({figures}): messages are taken in as before"
        limit = f"max-disk-usage {self._config.max_disk_usage} %"
        if self._config.min_disk_free >= 0:
            limit = f"min-disk-free {self._config.min_disk_free:,} bytes"
        return f"warning: the disk of {directory} is full ({figures}; {limit}): disk-full-policy applies to senders"
