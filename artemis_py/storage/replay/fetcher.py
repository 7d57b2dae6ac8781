"""Reads slices of segments, in a thread of its own. It knows the files and nothing of replays."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, final

from artemis_py.logged import SLICE_BYTES, AddressChoice, Spot
from artemis_py.storage.format import codec
from artemis_py.storage.format.codec import FILE_HEADER_BYTES, RECORD_HEADER_BYTES, peek_record
from artemis_py.storage.format.places import places_name
from artemis_py.storage.format.scan import Damage, behind_damage, next_batch
from artemis_py.storage.format.segment_index import index_name, sealed_text
from artemis_py.storage.format.segment_names import segment_name
from artemis_py.storage.replay.plan import Ranges, ranges_in
from artemis_py.storage.replay.slices import Extent, LogSlice
from artemis_py.storage.replay.source import SegmentFiles

_SIZE: Final = b'"bytes":'
"""The first of this in an index is its own field: the only texts before it are its names."""
_KNOWN_MAX: Final = 256
_WINDOW_BYTES: Final = 1 << 20
"""How much is searched at once for a valid record."""
_OVERLAP_BYTES: Final = 64
"""More than a BATCH record has."""
_ZEROS_BYTES: Final = 1 << 20


@final
class Wish:
    """What to read: at most ``size_bytes`` from ``spot`` on. ``choice``: what is published to other addresses may be
    left out (None: nothing may). ``durable_bytes`` are those of the segment that is written to, ``content_bytes`` those
    of a closed one; -1: it is not that, or they are unknown. ``durable_lsn`` belongs to ``durable_bytes``.
    """

    __slots__ = ("choice", "content_bytes", "durable_bytes", "durable_lsn", "size_bytes", "spot")

    def __init__(
        self,
        spot: Spot,
        choice: AddressChoice | None,
        size_bytes: int,
        durable_bytes: int,
        durable_lsn: int,
        content_bytes: int,
    ) -> None:
        self.spot = spot
        self.choice = choice
        self.size_bytes = size_bytes
        self.durable_bytes = durable_bytes
        self.durable_lsn = durable_lsn
        self.content_bytes = content_bytes


class Fetcher:
    """``say`` gets a line for each damaged place."""

    def __init__(self, files: SegmentFiles, say: Callable[[str], None]) -> None:
        self._files = files
        self._say = say
        self._extents: OrderedDict[int, Extent] = OrderedDict()
        self._plans: OrderedDict[tuple[int, str], Ranges | None] = OrderedDict()
        self._told: set[tuple[int, int]] = set()

    def fetch(self, wish: Wish) -> LogSlice:
        """Read a slice. Its failure stands in it."""
        spot = wish.spot
        key = "" if wish.choice is None else wish.choice.key
        try:
            return self._fetch(wish, key)
        except FileNotFoundError:
            gone = LogSlice(key, spot)
            gone.stay_unread(is_gone=True)
            return gone
        except OSError as error:
            failed = LogSlice(key, spot)
            failed.stay_unread(failure=f"{segment_name(spot.segment)}: {error.strerror or error}")
            return failed

    def _fetch(self, wish: Wish, key: str) -> LogSlice:
        spot = wish.spot
        extent = self._extent_of(wish)
        is_open = wish.durable_bytes >= 0
        last = Spot(spot.segment, extent.size_bytes) if is_open else Spot(spot.segment + 1, FILE_HEADER_BYTES)
        offset = spot.offset
        if spot.damaged_after >= 0:
            offset = self._behind_damage(spot, extent)
        begin, end = self._part_from(wish, offset, extent)
        if begin >= end:
            return LogSlice(key, spot, b"", begin, extent, last)
        asked_bytes = min(wish.size_bytes, end - begin)
        data = self._files.read(spot.segment, begin, asked_bytes)
        needed_bytes = _first_needs(data)
        if len(data) == asked_bytes < needed_bytes <= extent.size_bytes - begin:
            unread = LogSlice(key, spot)
            unread.stay_unread(bytes_needed=needed_bytes)
            return unread
        behind: Spot | None = None
        if len(data) < asked_bytes or begin + asked_bytes == extent.size_bytes:
            behind = last
        elif begin + asked_bytes == end:
            behind = Spot(spot.segment, end)
        durable_lsn = wish.durable_lsn if is_open and behind is last else 0
        part = LogSlice(key, spot, data, begin, extent, behind, durable_lsn)
        if needed_bytes > SLICE_BYTES:
            part.check_first(needed_bytes)
        return part

    # ---- segments --------------------------------------------------------------------------------

    def _extent_of(self, wish: Wish) -> Extent:
        """Raises OSError."""
        if wish.durable_bytes >= 0:
            return Extent(wish.durable_bytes, wish.durable_bytes)
        number = wish.spot.segment
        known = self._extents.get(number)
        if known is None:
            if len(self._extents) >= _KNOWN_MAX:
                self._extents.popitem(last=False)
            known = self._extents[number] = self._find_extent(number, wish.content_bytes)
        return known

    def _find_extent(self, number: int, content_bytes: int) -> Extent:
        """From the journal, else from the index beside the segment, else from where its zeros begin."""
        if content_bytes < 0:
            text = sealed_text(self._files.beside(number, index_name))
            content_bytes = -1 if text is None else _size_in(text)
        size_bytes = self._files.size_of(number)
        if 0 <= content_bytes <= size_bytes:
            return Extent(content_bytes, content_bytes)
        end = size_bytes
        while end > FILE_HEADER_BYTES:
            begin = max(end - _ZEROS_BYTES, FILE_HEADER_BYTES)
            data = self._files.read(number, begin, end - begin).rstrip(b"\0")
            if data:
                return Extent(size_bytes, begin + len(data))
            end = begin
        return Extent(size_bytes, FILE_HEADER_BYTES)

    def _part_from(self, wish: Wish, offset: int, extent: Extent) -> tuple[int, int]:
        """The part to read next, at ``offset`` or behind it: begin and end, which are the same if nothing is left."""
        ranges = self._ranges(wish, extent)
        if ranges is None:
            return offset, extent.size_bytes
        place = bisect_right(ranges, offset, key=_end_of)
        if place == len(ranges):
            return extent.size_bytes, extent.size_bytes
        begin, end = ranges[place]
        return max(begin, offset), end

    def _ranges(self, wish: Wish, extent: Extent) -> Ranges | None:
        choice, number = wish.choice, wish.spot.segment
        if choice is None or wish.durable_bytes >= 0:
            return None
        key = (number, choice.key)
        if key not in self._plans:
            if len(self._plans) >= _KNOWN_MAX:
                self._plans.popitem(last=False)
            places = self._files.beside(number, places_name)
            if not places:
                return None  # it may still be written
            self._plans[key] = ranges_in(places, choice, extent.content_end)
        return self._plans[key]

    # ---- damage ----------------------------------------------------------------------------------

    def _behind_damage(self, spot: Spot, extent: Extent) -> int:
        """Where the next valid record begins; the end of the segment if there is none. What is damaged is told once."""
        number, at = spot.segment, spot.offset - 1
        end = extent.content_end
        window = self._files.read(number, at, min(_WINDOW_BYTES, end - at))
        damage = Damage(segment_name(number), 0, "an invalid record", torn=False)
        found = behind_damage(damage, window, len(window), [], spot.damaged_after, 0, is_last=False, base=at)
        begin = at
        while found is None and begin + _WINDOW_BYTES < end:
            begin += _WINDOW_BYTES - _OVERLAP_BYTES
            found = next_batch(self._files.read(number, begin, min(_WINDOW_BYTES, end - begin)), 0)
        offset = extent.size_bytes if found is None else begin + found
        if (number, at) not in self._told and len(self._told) < _KNOWN_MAX:
            self._told.add((number, at))
            where = "behind the segment" if found is None else f"at byte {offset}"
            self._say(f"warning: {segment_name(number)} at byte {at}: DAMAGED: replays go on {where}")
        return offset


def _end_of(part: tuple[int, int]) -> int:
    return part[1]


def _size_in(index: bytes) -> int:
    """The size in the text of an index; -1 if it has none."""
    _, found, rest = index.partition(_SIZE)
    digits = rest.partition(b",")[0]
    return int(digits) if found and digits.isdigit() else -1


def _first_needs(data: bytes) -> int:
    """How many bytes the first record says it has; 0 if that need not be in memory as a whole."""
    if len(data) < RECORD_HEADER_BYTES:
        return 0
    length, _, kind = peek_record(data, 0)
    return 0 if kind == codec.GROUP else RECORD_HEADER_BYTES + length
