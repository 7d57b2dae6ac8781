"""The log that traces are made from, as they see it: one part after the other. Only one part is in memory: a file, or a
block of a few MiB.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from artemis_py.storage.format import records
from artemis_py.storage.format.log_events import FRAMING, Event
from artemis_py.storage.format.reader import LogEntry
from artemis_py.storage.format.scan import Damage

Spans = list[tuple[int, int]]
"""Numbers of messages, from each first to each last one."""
_MARK: Final = b"traceparent:"
"""In the bytes of each message that has the header."""
_MESSAGES: Final = frozenset({records.MESSAGE})
_NOT_NEEDED: Final = FRAMING | {
    records.ADDRESS, records.DUPLICATE, records.DUPLICATES_CLEARED, records.REFUSED, records.DEPTHS, records.CURSOR,
    records.CONFIGURED,
}  # fmt: skip
"""What no span needs is not decoded."""


class Part:
    """A part of the log, to be read once. ``queues`` are the fields of queues that are described here, or were in a
    part that nobody reads.
    """

    def __init__(
        self,
        name: str,
        entries: Iterator[LogEntry],
        *,
        begins_segment: bool,
        queues: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.name = name
        self.begins_segment = begins_segment
        self.queues = queues
        self.last_lsn = 0
        """The highest lsn so far."""
        self.is_news = False
        """Was there anything but moved cursors?"""
        self._entries = entries

    def events(self) -> Iterator[Event]:
        """The events that spans need. Messages without ``traceparent`` are left out."""
        for entry in self._entries:
            record = entry.record
            kind = record.type_code
            self.last_lsn = max(self.last_lsn, record.lsn)
            if kind not in (records.CURSOR, records.BATCH):
                self.is_news = True
            if kind in _NOT_NEEDED or (kind in _MESSAGES and _MARK not in record.payload):
                continue
            yield entry.event

    def events_about(self, wants: Callable[[bytes], bool]) -> Iterator[Event | None]:
        """The events, but of messages only those whose payload ``wants`` accepts; None for each record that tells
        nothing, so that the reader can stop at any of them.
        """
        for entry in self._entries:
            record = entry.record
            kind = record.type_code
            self.last_lsn = max(self.last_lsn, record.lsn)
            is_wanted = kind not in _NOT_NEEDED and (kind not in _MESSAGES or wants(record.payload))
            yield entry.event if is_wanted else None


def _any(_spans: Spans | None) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Beginning:
    """The log, and the fields of its queues. Segments that are not read may name them; and later ones, because a queue
    is described again before the segment that did so is removed.
    """

    log: str
    broker: str
    queues: Sequence[Mapping[str, Any]]


class LogSource(ABC):
    """One broker's log. ``damages`` says what could not be read, ``lost`` how often a part was gone already.

    A segment is left out that mentions none of the wanted messages: ``may_be_among`` is asked with the spans of their
    numbers (None: unknown) when it is the segment's turn.
    """

    def __init__(self) -> None:
        self.may_be_among: Callable[[Spans | None], bool] = _any
        self.damages: list[Damage] = []
        self.lost = 0

    @abstractmethod
    def begin(self, after_lsn: int, from_ms: int) -> Beginning:
        """Begin where there are records above an lsn and from a time on. Raises ArtemisError."""

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """What there is to read now; asked again, what has come since. Each part must be read before the next. Raises
        ArtemisError.
        """

    @abstractmethod
    def close(self) -> None:
        """Close connections."""


def cuts(blocks: Sequence[Sequence[int]], size_bytes: int, begin: int = 0) -> Iterator[tuple[int, int]]:
    """The parts of a segment that are read one by one: from where to where. Each begins with a block of its index (the
    first at ``begin``, if that is inside of the segment).
    """
    offsets = [block[0] for block in blocks]
    first = begin or (offsets[0] if offsets else size_bytes)
    bounds = [first, *(offset for offset in offsets if offset > first), size_bytes]
    return ((one, end) for one, end in pairwise(bounds) if one < end)
