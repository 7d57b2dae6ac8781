"""Which parts of a closed segment a replay must read: whole batches that have a message of an address that it wants.

The file of places next to the segment says so (``format/places.py``). It is optional, as always.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Final

from artemis_py.logged import AddressChoice
from artemis_py.storage.format.codec import CodecError
from artemis_py.storage.format.places import NUMBERS, Part, Table, decode_table, part_bytes

_RUNS_MAX: Final = 1000
"""If an address has messages in more places than this, all of the segment is read."""
_GAP_BYTES: Final = 65536
"""Parts that are no farther from each other are read as one."""
Ranges = list[tuple[int, int]]


def ranges_in(places: bytes, choice: AddressChoice, content_bytes: int) -> Ranges | None:
    """Begin and end of each part, in order; None: the whole segment must be read. ``places`` is the file of places of a
    segment with so many bytes of records.
    """
    try:
        table = decode_table(places)
        if table.addresses is None or table.of.size_bytes != content_bytes:
            return None
        parts = _parts_of(table, choice)
        if sum(part.count for part in parts) > NUMBERS * _RUNS_MAX:
            return None
        runs = sorted(run for part in parts for run in _runs(_numbers(places, part)))
        return _whole_batches(runs, list(accumulate(_numbers(places, table.batches))), content_bytes)
    except (CodecError, ValueError, KeyError, TypeError):  # written by another version, perhaps
        return None


def _parts_of(table: Table, choice: AddressChoice) -> list[Part]:
    addresses = table.addresses or {}
    if choice.exact:
        return [addresses[choice.exact]] if choice.exact in addresses else []
    return [part for address, part in addresses.items() if choice.wants(address)]


def _numbers(places: bytes, part: Part) -> array[int]:
    numbers = array("I")
    numbers.frombytes(part_bytes(places, part))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _runs(packed: array[int]) -> Ranges:
    """The runs of an address. The numbers are, first for all runs, how far each begins behind the end of the one
    before, then their lengths.
    """
    count = len(packed) // NUMBERS
    runs: Ranges = []
    end = 0
    for gap, length in zip(packed[:count], packed[count : 2 * count], strict=True):
        begin = end + gap
        end = begin + length
        runs.append((begin, end))
    return runs


def _whole_batches(runs: Ranges, batches: list[int], content_bytes: int) -> Ranges:
    """The batches that have these runs, as few parts."""
    found: Ranges = []
    for begin, end in runs:
        place = max(bisect_right(batches, begin) - 1, 0)
        behind = bisect_left(batches, end)
        whole_begin = batches[place]
        whole_end = batches[behind] if behind < len(batches) else content_bytes
        if found and whole_begin <= found[-1][1] + _GAP_BYTES:
            found[-1] = found[-1][0], max(found[-1][1], whole_end)
        else:
            found.append((whole_begin, whole_end))
    return found
