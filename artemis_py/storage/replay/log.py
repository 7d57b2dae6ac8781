"""The log of a running broker, for its replays: the journal's files and the retained ones, as one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import final

from artemis_py.logged import AddressChoice, Place, ReplayLog, Slice, Spot
from artemis_py.message import LargeBody, Message
from artemis_py.storage.bodies.store import LargeStore
from artemis_py.storage.disk.committer import Committer
from artemis_py.storage.format.codec import FILE_HEADER_BYTES
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.replay.fetcher import Fetcher, Wish
from artemis_py.storage.replay.source import LogSegments, SegmentFiles


@final
class RetainedReplayLog(ReplayLog):
    """Reads in the threads of ``reader`` and ``tail_reader``: what is published now must not wait for a disk that reads
    what is old. ``say`` gets lines about damage.
    """

    def __init__(
        self,
        journal: Journal,
        files: SegmentFiles,
        large: LargeStore,
        reader: Committer,
        tail_reader: Committer,
        say: Callable[[str], None],
    ) -> None:
        self._journal = journal
        self._segments = LogSegments(journal.files, files)
        self._large = large
        self._readers = reader, tail_reader
        self._fetchers = Fetcher(files, say), Fetcher(files, say)
        """One for each thread."""
        self._arrived: deque[Slice] = deque()

    @property
    def durable_lsn(self) -> int:
        return self._journal.durable_lsn

    @property
    def last_lsn(self) -> int:
        return self._journal.records.last_lsn

    def first_lsn(self, segment: int = 0) -> int:
        return self._segments.first_lsn(segment)

    def end(self) -> Place:
        return self._segments.end

    def beginning(self) -> Spot:
        return Spot(self._segments.first, FILE_HEADER_BYTES)

    def after(self, lsn: int) -> Spot | None:
        if lsn >= self._journal.durable_lsn:
            return Spot(*self._segments.end)
        found = self._segments.with_lsn(lsn + 1)
        return None if found is None else Spot(*found)

    def since(self, time_ms: int) -> Spot:
        return Spot(self._segments.with_time(time_ms), FILE_HEADER_BYTES)

    def request(self, spot: Spot, choice: AddressChoice | None, size_bytes: int, *, follows: bool = False) -> None:
        number, durable_bytes = self._segments.end
        if spot.segment == number:
            wish = Wish(spot, choice, size_bytes, durable_bytes, self._journal.durable_lsn, -1)
        else:
            wish = Wish(spot, choice, size_bytes, -1, 0, self._segments.content_bytes(spot.segment))
        self._readers[follows].later(partial(self._fetch, self._fetchers[follows], wish))

    def _fetch(self, fetcher: Fetcher, wish: Wish) -> None:
        """Runs in a reader's thread."""
        self._arrived.append(fetcher.fetch(wish))

    def arrivals(self) -> list[Slice]:
        arrived: list[Slice] = []
        while self._arrived:
            arrived.append(self._arrived.popleft())
        return arrived

    def body_of(self, message: Message) -> LargeBody | None:
        body = message.body
        assert isinstance(body, LargeBody)
        return self._large.past.held(body)

    def session_number(self, origin: int) -> int:
        return self._journal.records.story.known_number(origin)
