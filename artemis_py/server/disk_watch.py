"""``max-disk-usage`` and ``min-disk-free``: holds back senders before a disk of the broker is full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from artemis_py.config.settings import BrokerConfig
from artemis_py.core.broker import Broker
from artemis_py.log_codes import DISK
from artemis_py.server.store import Store
from artemis_py.storage.disk.space import DiskSpace, bytes_until_full, is_full, space_of
from artemis_py.terminal_output import warn

_MEBIBYTE: Final = 1 << 20


def _say(line: str) -> None:
    warn(line, DISK)


class DiskWatch:
    """Tells the broker when the disk is full (``is_full``, or a file did not fit) and when it has room again;
    ``disk-full-policy`` does the rest. ``check`` must be called every ``period_ms`` (-1: never), and when files have
    grown or did not fit: a disk can fill up within a period.
    """

    def __init__(
        self,
        config: BrokerConfig,
        broker: Broker,
        schedule: Callable[[], None],
        store: Store | None = None,
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
        self._store = store
        self.probe = probe
        self._say = say
        self._could_check = True

    def check(self) -> None:
        """Check once. If a file system cannot be checked, nothing changes, and one warning is written."""
        spaces: dict[str, DiskSpace] = {}
        for directory in self._directories if self._store is None else self._store.directories():
            try:
                spaces[directory] = self.probe(directory)
            except OSError as error:
                if self._could_check:
                    self._say(f"warning: the disk usage of {directory} cannot be read: {error.strerror or error}")
                self._could_check = False
                return
        self._could_check = True
        short = self._short_of_room()
        fullest = short or next((place for place, space in spaces.items() if self._is_full(space)), None)
        is_news = (fullest is not None) != self._broker.memory.disk_full
        if is_news or fullest is not None:
            self._schedule()  # while it is full, turns must run: then retention removes files that cursors hold
        if not is_news:
            return
        self._broker.memory.disk_full = fullest is not None
        if self._store is not None and self._store.large is not None:
            self._store.large.body_writer.is_full = fullest is not None
        self._full_directory = fullest or self._full_directory
        space = spaces.get(self._full_directory) or self.probe(self._full_directory)
        self._say(self._news(self._full_directory, space, is_short=short is not None))

    def headroom_bytes(self) -> int | None:
        """How many bytes may be written until ``disk-full-policy`` applies, on the disk with the least; None if nothing
        is stored or a disk cannot be read.
        """
        directories = () if self._store is None else self._store.directories()
        if not directories:
            return None
        max_usage, min_free = self._config.max_disk_usage, self._config.min_disk_free
        if self.period_ms < 0:
            max_usage = min_free = -1
        try:
            return min(bytes_until_full(max_usage, min_free, self.probe(directory)) for directory in directories)
        except OSError:
            return None

    def _is_full(self, space: DiskSpace) -> bool:
        return self.period_ms >= 0 and is_full(self._config.max_disk_usage, self._config.min_disk_free, space)

    def _short_of_room(self) -> str | None:
        """A directory in which a file did not fit; the store is asked to make room."""
        if self._store is None:
            return None
        short = next((room for room in self._store.reserves if room.is_short), None)
        if short is None:
            return None
        self._store.make_room()
        return str(short.directory)

    def _news(self, directory: str, space: DiskSpace, *, is_short: bool) -> str:
        figures = f"{space.used_fraction:.0%} used, {space.free_bytes // _MEBIBYTE:,} MiB free"
        if not self._broker.memory.disk_full:
            return f"the disk of {directory} has room again ({figures}): messages are accepted again"
        limit = f"max-disk-usage {self._config.max_disk_usage} %"
        if self._config.min_disk_free >= 0:
            limit = f"min-disk-free {self._config.min_disk_free:,} bytes"
        if is_short:
            limit = "a file did not fit; acknowledgements are written to the reserve"
        return (
            f"warning: the disk of {directory} is full ({figures}; {limit}): the disk-full-policy of each address now "
            "applies to new messages. Consume messages or free disk space"
        )
