"""FIFO: entries in sequence order, each in the slot that its sequence names.

Order is a key, not a place. An append takes the next sequence. An entry that goes to the head takes the next one below
all others. An entry that comes back keeps its own. The slots stand in blocks of 256, found by number, so each of these
costs the same at a depth of ten and of ten million. A block exists while it has an entry. Only the tail's block stays,
so a nearly empty queue does not make one for each message.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Final

from artemis_py.core.order.entry import Entry

_SHIFT: Final = 8
_SIZE: Final = 1 << _SHIFT
_MASK: Final = _SIZE - 1


def _first_lsn(slots: list[Entry | None]) -> int:
    """The lsn of the first message in a block that the log has; 0: there is none."""
    for entry in slots:
        if entry is not None and entry.message.lsn:
            return entry.message.lsn
    return 0


class _Block:
    __slots__ = ("live", "slots")

    def __init__(self) -> None:
        self.slots: list[Entry | None] = [None] * _SIZE
        self.live = 0


class Fifo:
    """Entries of one level. It knows neither their rank, nor who wants them, nor the time."""

    __slots__ = ("_blocks", "_first", "_next_head", "_numbers", "count", "tail")

    def __init__(self) -> None:
        self.count = 0
        self.tail = 0
        """The sequence that the next append takes."""
        self._next_head = -1
        self._first = 0
        """No entry has a lower sequence."""
        self._blocks: dict[int, _Block] = {}
        self._numbers: list[int] = []

    def append(self, entry: Entry) -> None:
        """Append one entry at the tail."""
        tail = self.tail
        if not self.count:
            self._first = tail
        self.count += 1
        self.tail = tail + 1
        block = self._blocks.get(tail >> _SHIFT) or self._block(tail >> _SHIFT)
        block.slots[tail & _MASK] = entry
        block.live += 1

    def extend(self, entries: list[Entry]) -> None:
        """Append entries at the tail."""
        tail = self.tail
        size = len(entries)
        if not self.count:
            self._first = tail
        self.count += size
        self.tail = tail + size
        done = 0
        while done < size:
            block = self._block(tail >> _SHIFT)
            offset = tail & _MASK
            take = min(size - done, _SIZE - offset)
            block.slots[offset : offset + take] = entries[done : done + take] if take != size else entries
            block.live += take
            done += take
            tail += take

    def _block(self, number: int) -> _Block:
        block = self._blocks.get(number)
        if block is None:
            if self._numbers and not self._blocks[self._numbers[-1]].live:
                del self._blocks[self._numbers.pop()]
            block = self._blocks[number] = _Block()
            if self._numbers and number < self._numbers[-1]:
                insort(self._numbers, number)
            else:
                self._numbers.append(number)
        return block

    def restore(self, entry: Entry) -> None:
        """Put an entry back at its own sequence."""
        sequence = entry.sequence
        if not self.count or sequence < self._first:
            self._first = sequence
        if sequence >= self.tail:
            self.tail = sequence + 1
        block = self._block(sequence >> _SHIFT)
        block.slots[sequence & _MASK] = entry
        block.live += 1
        self.count += 1

    def take_head_sequence(self) -> int:
        """A new sequence below every other."""
        sequence = self._next_head
        self._next_head = sequence - 1
        return sequence

    def at(self, sequence: int) -> Entry | None:
        """The entry with this sequence, if it is here."""
        block = self._blocks.get(sequence >> _SHIFT)
        return None if block is None else block.slots[sequence & _MASK]

    def next_from(self, sequence: int) -> Entry | None:
        """The first entry whose sequence is at least ``sequence``; None when there is none. It stays, and its
        ``sequence`` field is filled in.
        """
        if sequence >= self.tail:
            return None
        numbers = self._numbers
        number = sequence >> _SHIFT
        index = bisect_left(numbers, number)
        while index < len(numbers):
            block_number = numbers[index]
            slots = self._blocks[block_number].slots
            offset = sequence & _MASK if block_number == number else 0
            while offset < _SIZE:
                entry = slots[offset]
                if entry is not None:
                    entry.sequence = (block_number << _SHIFT) | offset
                    return entry
                offset += 1
            index += 1
        return None

    def find_published(self, lsn: int) -> Entry | None:
        """The entry of the message that was published at this lsn; None when it is not here. It stays, and its
        ``sequence`` field is filled in.

        Sequences from 0 on must stand in the order of publication, so few of these entries are looked at. Those at the
        head are all looked at. Messages that the log does not have (lsn 0) are passed over.
        """
        numbers, blocks = self._numbers, self._blocks
        begin = bisect_left(numbers, 0)
        for index in range(begin):
            found = self._published_in(numbers[index], lsn)
            if found is not None:
                return found
        low, high = begin, len(numbers)
        while low < high:
            middle = (low + high) // 2
            probe, first_lsn = middle, 0
            while probe < high:
                first_lsn = _first_lsn(blocks[numbers[probe]].slots)
                if first_lsn:
                    break
                probe += 1
            if 0 < first_lsn <= lsn:
                low = probe + 1
            else:
                high = middle
        return self._published_in(numbers[low - 1], lsn) if low > begin else None

    def _published_in(self, number: int, lsn: int) -> Entry | None:
        for offset, entry in enumerate(self._blocks[number].slots):
            if entry is not None and entry.message.lsn == lsn:
                entry.sequence = (number << _SHIFT) | offset
                return entry
        return None

    def first(self) -> Entry | None:
        """The first entry; None when it is empty. It stays, and its ``sequence`` field is filled in."""
        if not self.count:
            return None
        found = self.next_from(self._first)
        if found is not None:
            self._first = found.sequence  # the next search begins here
        return found

    def pop(self) -> Entry:
        """Take the first entry out. Raises IndexError when it is empty."""
        sequence = self._first
        block = self._blocks.get(sequence >> _SHIFT)
        if block is not None:
            entry = block.slots[sequence & _MASK]
            if entry is not None:
                entry.sequence = sequence
                block.slots[sequence & _MASK] = None
                block.live -= 1
                if not block.live and sequence >> _SHIFT != self.tail >> _SHIFT:
                    self._drop(sequence >> _SHIFT)
                self.count -= 1
                self._first = sequence + 1
                return entry
        found = self.next_from(sequence)
        if found is None:
            raise IndexError("it is empty")
        self.remove(found.sequence)
        self._first = found.sequence + 1  # behind a gap, too, the next pop finds its entry at once
        return found

    def remove(self, sequence: int) -> None:
        """Take the entry with this sequence out. It must be here."""
        number = sequence >> _SHIFT
        block = self._blocks[number]
        block.slots[sequence & _MASK] = None
        block.live -= 1
        self.count -= 1
        if not block.live and number != self.tail >> _SHIFT:
            self._drop(number)

    def _drop(self, number: int) -> None:
        del self._blocks[number]
        del self._numbers[bisect_left(self._numbers, number)]

    def __iter__(self) -> Iterator[Entry]:
        for number in list(self._numbers):
            block = self._blocks.get(number)
            if block is not None:
                for offset, entry in enumerate(list(block.slots)):
                    if entry is not None:
                        entry.sequence = (number << _SHIFT) | offset
                        yield entry
