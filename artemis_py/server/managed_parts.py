"""What operations see of the server: its files, and its acceptors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, final

from artemis_py.config.settings import AcceptorConfig, BrokerConfig
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import BrokerError
from artemis_py.management.lists.log import LogCursor
from artemis_py.management.lists.places import Space
from artemis_py.management.stored import Life
from artemis_py.server.cursor_desk import CursorDesk, CursorView
from artemis_py.server.log_view import LogView, Segments
from artemis_py.server.ports import Ports
from artemis_py.server.store import Store
from artemis_py.server.traces import Traces
from artemis_py.storage.disk.room import DiskSpace, bytes_until_full
from artemis_py.storage.journal.journal import Journal

_REST_S: Final = 0.0003
"""After each index a thread gives the interpreter to the turns: else they could wait 5 ms for it."""


@final
class StoredFiles:
    """The files of a broker with a journal."""

    def __init__(
        self,
        config: BrokerConfig,
        journal: Journal,
        cursors: CursorDesk,
        directories: Sequence[str],
        probe: Callable[[str], DiskSpace],
        traces: Traces,
        view: LogView,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._config = config
        self._journal = journal
        self._cursors = cursors
        self._directories = directories
        self._probe = probe
        self._traces = traces
        self._view = view
        self._loop = loop

    @property
    def node_id(self) -> str:
        """The id of the log, which stays with the files."""
        return self._view.log_id

    def figures(self) -> Mapping[str, int]:
        """Figures of the journal and of the retained log, by name."""
        cursors = len(self._journal.index.cursors)
        return {**self._journal.counts(), **self._cursors.counts(), "cursors": cursors}

    def spaces(self) -> Sequence[Space]:
        """The directories, with the room that they have. Raises BrokerError if the system does not say."""
        return [self._space(directory) for directory in self._directories]

    def _space(self, directory: str) -> Space:
        config = self._config
        try:
            space = self._probe(directory)
        except OSError as error:
            raise BrokerError(f"the disk usage of {directory} cannot be read: {error.strerror or error}") from None
        usage_max, free_min = config.max_disk_usage, config.min_disk_free
        if config.disk_scan_period < 0:
            usage_max = free_min = -1
        left_bytes = bytes_until_full(usage_max, free_min, space)
        return Space(directory, space.total_bytes, space.free_bytes, round(100 * space.used_fraction), left_bytes)

    def compact(self) -> None:
        """Begin to compact all journal files but the one that is written to."""
        self._journal.compact()

    @property
    def is_compacting(self) -> bool:
        """Is that not done yet?"""
        return self._journal.compaction.is_asked

    def tell_life(self, message: int, after_lsn: int, seconds: float) -> asyncio.Future[Life]:
        """Read the life of a message from the log, outside of turns. Raises BrokerError."""
        return self._traces.tell(message, after_lsn, seconds)

    def read_segments(self) -> asyncio.Future[list[dict[str, Any]]]:
        """Look at all segments of the log, outside of turns."""
        segments = self._view.segments()
        return self._loop.run_in_executor(None, lambda: list(_indexes(segments())))

    def read_cursors(self) -> asyncio.Future[list[LogCursor]]:
        """Look at all cursors in the log, outside of turns."""
        views = self._cursors.viewing()
        return self._loop.run_in_executor(None, lambda: [_as_listed(view) for view in views()])

    def remove_cursor(self, name: str) -> bool:
        """Remove a cursor. False: there is none of this name."""
        return self._cursors.drop(name) is not None


def _indexes(segments: Segments) -> Iterator[dict[str, Any]]:
    """Their indexes, without what is gone meanwhile. The turns have the interpreter between two of them."""
    for index, _ in segments:
        if index:
            yield index
        time.sleep(_REST_S)


def _as_listed(view: CursorView) -> LogCursor:
    cursor = view.cursor
    return LogCursor(
        cursor.name,
        cursor.lsn,
        cursor.owner,
        cursor.moved_ms,
        cursor.ttl_s,
        view.holds,
        view.lag_bytes,
        view.is_overtaken,
    )


def stored_files(
    config: BrokerConfig,
    store: Store,
    probe: Callable[[str], DiskSpace],
    loop: asyncio.AbstractEventLoop,
    queues: Mapping[int, Queue],
) -> StoredFiles | None:
    """The files of a store; None if it has no journal. ``queues`` are those of now by number."""
    journal, view, cursors = store.durability, store.log_view, store.cursor_desk
    if view is None or cursors is None or not isinstance(journal, Journal):
        return None

    def name_of(queue_id: int) -> str:
        queue = queues.get(queue_id)
        return "" if queue is None else queue.name

    traces = Traces(loop, view, name_of)
    return StoredFiles(config, journal, cursors, store.directories(), probe, traces, view, loop)


@final
class OpenPort:
    """An acceptor of the file, and where it listens (None: nowhere)."""

    def __init__(self, config: AcceptorConfig, place: str | None, connection_count: int, room_count: int) -> None:
        self._config = config
        self._place = place
        self._connection_count = connection_count
        self._room_count = room_count

    @property
    def config(self) -> AcceptorConfig:
        """What the file says."""
        return self._config

    @property
    def place(self) -> str | None:
        """Host and port on which it listens; None: it is not open."""
        return self._place

    @property
    def connection_count(self) -> int:
        """How many clients it serves now."""
        return self._connection_count

    @property
    def connections_left(self) -> int:
        """How many more clients it takes; -1: any number, because one that is idle makes room."""
        if self._place is None:
            return 0
        if "STOMP" not in self._config.protocols:
            return -1
        allowed = self._config.int_param("connectionsAllowed")
        return self._room_count if allowed < 0 else max(min(allowed - self._connection_count, self._room_count), 0)


def open_ports(config: BrokerConfig, ports: Ports) -> list[OpenPort]:
    """The acceptors of the file as they are now."""
    places = {acceptor.name: _shown(host, port) for acceptor, host, port in ports.bound}
    counts = ports.connection_counts()
    room = ports.room_for_clients()
    return [OpenPort(one, places.get(one.name), counts.get(one.name, 0), room) for one in config.acceptors]


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
