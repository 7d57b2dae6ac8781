"""Compaction: what lives in the oldest segment is written again at the end, a little in each turn."""

from __future__ import annotations

from itertools import islice
from typing import Final

from artemis_py.storage.codec import Kept
from artemis_py.storage.disk import Disk
from artemis_py.storage.index import Index
from artemis_py.storage.journal_settings import JournalSettings
from artemis_py.storage.segments import Segments

_MOVES_PER_TURN: Final = 256
_MOVED_BYTES_PER_TURN: Final = 1 << 20
"""A message more, at least. It is also what a disk that is suddenly full has to have room for."""
_PRESSED_PERCENTAGE: Final = 70
"""``journal-compact-percentage`` of a disk without room: what compaction writes is less than what it frees."""


class Compaction:
    """Says what to write again. It writes nothing."""

    def __init__(self, disk: Disk, settings: JournalSettings, index: Index, segments: Segments) -> None:
        self.bindings_bytes = 0
        """How large everything but messages was when it was written again."""
        self._disk = disk
        self._settings = settings
        self._index = index
        self._segments = segments

    @property
    def is_wanted(self) -> bool:
        """Are there many segments, and does too little in them live? Bindings do: or with many of them the journal
        would move messages out of their way for ever. A disk without room is a reason to do so sooner.
        """
        settings, segments = self._settings, self._segments
        presses = not self._disk.has_room
        files_min = 2 if presses else settings.compact_files_min
        if not settings.compact_files_min or len(segments.all) <= files_min:
            return False
        percentage = max(settings.compact_percentage, _PRESSED_PERCENTAGE) if presses else settings.compact_percentage
        return (self.bindings_bytes + segments.live_bytes) * 100 < segments.written_bytes * percentage

    @property
    def may_move_bindings(self) -> bool:
        """Is what was written twice as much as writing everything but messages again costs? With many bindings the
        journal would otherwise be busy with nothing else.
        """
        return self._segments.written_bytes >= 2 * self.bindings_bytes

    def moved(self) -> list[Kept]:
        """Messages of the oldest segment that have to be written again in this turn."""
        segments = self._segments.all
        oldest = segments[0]
        if not oldest.live or not self.is_wanted:  # with one segment it is not wanted
            return []
        if not self._disk.has_room and self._disk.left_bytes < 2 * oldest.live_bytes:
            return []  # what is left is for acknowledgements: they free files, too
        moved: list[Kept] = []
        size_bytes = 0
        for kept in islice(oldest.live.values(), _MOVES_PER_TURN):
            moved.append(kept)
            size_bytes += kept.message.inline_bytes
            if size_bytes >= _MOVED_BYTES_PER_TURN:
                break
        return [kept for kept in moved if self._is_needed(kept)]

    def _is_needed(self, kept: Kept) -> bool:
        """A copy names no queue that was deleted: that was told in a file which may go before this one."""
        queues = self._index.queues
        for queue_id in [number for number in kept.queue_ids if number not in queues]:
            self._index.settle(queue_id, kept.message.id)
        return kept.message.id in self._index.home
