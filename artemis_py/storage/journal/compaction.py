"""Compaction: what lives in old segments is written again at the end, a little in each turn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from artemis_py.storage.disk.disk import Disk
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.journal.index import Index
from artemis_py.storage.journal.segments import Segments
from artemis_py.storage.journal.settings import JournalSettings

# ---- living ----------------------------------------------------------------------------------------------------------
#
# Everything except messages that a journal still needs, as records to rewrite when an old file is removed. Each
# record is independent and repeats what is already known. So a crash between two of them does no harm, and damage to
# one affects no other.


def binding_records(index: Index, duplicate_ids_kept: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Addresses, queues, duplicate ids (the newest first), cursors and what operators configured: the type of each
    record and its fields.
    """
    for fields in index.addresses.values():
        yield records.ADDRESS, fields
    for fields in index.queues.values():
        yield records.QUEUE, fields
    for address, seen in index.duplicate_ids.items():
        for duplicate_id in reversed(seen[-duplicate_ids_kept:]):
            yield records.DUPLICATE, {"address": address, "id": duplicate_id, "again": True}
    for fields in index.cursors.values():
        yield records.CURSOR, fields
    for fields in index.configured.values():
        yield records.CONFIGURED, fields


def page_records(index: Index) -> Iterator[tuple[int, bytes]]:
    """Everything known about pages: the type of each record and its payload. The content of a page is recorded twice,
    because nothing else records it: damage to one record must not cost a page.
    """
    for page in index.pages.pages():
        address = index.pages.address_of(page)
        yield records.PAGE_OPENED, codec.encode_fields(codec.page_opened_fields(page, address))
        grew = codec.encode_page_grew(page, address)
        yield records.PAGE_GREW, grew
        yield records.PAGE_GREW, grew
    for stream in index.pages.recovered_state():
        for (queue_id, number), settled in stream.settled.items():
            yield records.PAGE_PLACES, codec.encode_page_places(queue_id, stream.number, number, settled)
        for (queue_id, place), (attempts, due_ms) in stream.attempts.items():
            its_page = stream.page_of(place)
            if its_page is not None:  # None: the record of it was damaged
                told = codec.PageAttempted(queue_id, stream.number, its_page.number, place, 0, attempts, due_ms)
                yield records.PAGE_ATTEMPTED, codec.encode_page_attempted(told)


# ---- compaction ------------------------------------------------------------------------------------------------------
#
# Compaction: living messages of the oldest segment are written again at the end, a few in each turn. A copy keeps the
# lsn of its publication. That is its order key, so the message keeps its place in the queue.


_MOVES_PER_TURN: Final = 256
_MOVED_BYTES_PER_TURN: Final = 1 << 20
"""A turn moves at least one message, and no more after this many bytes. A disk that is suddenly full needs room for
these.
"""
_PRESSED_PERCENTAGE: Final = 70
"""``journal-compact-percentage`` on a full disk: compaction still frees more than it writes."""


class Compaction:
    """Chooses what to write again. The journal writes it."""

    def __init__(self, disk: Disk, settings: JournalSettings, index: Index, segments: Segments) -> None:
        self.bindings_bytes = 0
        """The bytes of everything but messages when it was last written again."""
        self._disk = disk
        self._settings = settings
        self._index = index
        self._segments = segments
        self._asked_until = 0
        """The number of the file up to which somebody asked for it; 0: nobody did."""

    def request(self) -> None:
        """Begin, whatever lives in the files, with all of them but the one that is written to."""
        self._asked_until = self._segments.all[-1].number

    @property
    def is_asked(self) -> bool:
        """Is what somebody asked for not done yet? On a full disk it is given up."""
        if self._asked_until and not (self._segments.all[0].number < self._asked_until and self._disk.has_room):
            self._asked_until = 0
        return self._asked_until > 0

    @property
    def is_wanted(self) -> bool:
        """Are there enough segments (``journal-compact-min-files``), and does too little in them live
        (``journal-compact-percentage``)? Bindings count as living; otherwise a journal with many of them would compact
        for ever. On a full disk, compaction starts sooner.
        """
        settings, segments = self._settings, self._segments
        if self.is_asked:
            return True
        presses = not self._disk.has_room
        files_min = 2 if presses else settings.compact_files_min
        if not settings.compact_files_min or len(segments.all) <= files_min:
            return False
        percentage = max(settings.compact_percentage, _PRESSED_PERCENTAGE) if presses else settings.compact_percentage
        return (self.bindings_bytes + segments.live_bytes) * 100 < segments.written_bytes * percentage

    @property
    def may_move_bindings(self) -> bool:
        """Did somebody ask for it, or is the journal at least twice as large as everything but messages? Otherwise,
        with many bindings, it would do nothing but write these again.
        """
        return self.is_asked or self._segments.written_bytes >= 2 * self.bindings_bytes

    def moved(self) -> list[Kept]:
        """The messages of the oldest segment to write again in this turn; empty if compaction is not wanted."""
        segments = self._segments.all
        oldest = segments[0]
        if not oldest.live or not self.is_wanted:  # with one segment it is not wanted
            return []
        if not self._disk.has_room and self._disk.left_bytes < 2 * oldest.live_bytes:
            return []  # the rest is for acknowledgements, which also free files
        moved: list[Kept] = []
        size_bytes = 0
        for kept in islice(oldest.live.values(), _MOVES_PER_TURN):
            moved.append(kept)
            size_bytes += kept.message.inline_bytes
            if size_bytes >= _MOVED_BYTES_PER_TURN:
                break
        return [kept for kept in moved if self._is_needed(kept)]

    def _is_needed(self, kept: Kept) -> bool:
        """Does a message still live? First forgets its deleted queues: the records of their deletion may go before the
        copy does.
        """
        queues = self._index.queues
        for queue_id in [number for number in kept.queue_ids if number not in queues]:
            self._index.settle(queue_id, kept.message.id)
        return kept.message.id in self._index.home
