"""Output that waits for one client, in order: a RECEIPT waits here until the record that it depends on is durable."""

from __future__ import annotations

from typing import Final, TypeAlias

from artemis_py.message import LargeBody

Part: TypeAlias = bytes | LargeBody
"""A large body stands for its bytes, which are still in its file."""
PART_BYTES: Final = 100
"""The cost of a waiting part of a frame, besides the message's own bytes, which the message counts."""

_FEW_PARTS: Final = 8
"""A connection with so many is not worth counting for its memory."""

_NONE: Final[list[tuple[int, list[Part]]]] = []
"""Shared by all connections with nothing to send, instead of an empty list each. It stays empty."""


class PendingOutput:
    """Parts of frames with the lsn that they depend on. No part overtakes an earlier one.

    Consecutive parts without a higher lsn share a segment, so that a turn's frames cost one comparison.
    """

    __slots__ = ("segments",)

    def __init__(self) -> None:
        self.segments = _NONE
        """Each with the lsn that all its parts wait for."""

    def __bool__(self) -> bool:
        return bool(self.segments)

    @property
    def is_light(self) -> bool:
        """Do only a few parts wait?"""
        segments = self.segments
        return not segments or (len(segments) == 1 and len(segments[0][1]) <= _FEW_PARTS)

    @property
    def part_count(self) -> int:
        """How many parts wait."""
        count = 0
        for _, parts in self.segments:
            count += len(parts)
        return count

    def clear(self) -> None:
        """Drop everything: the client is gone."""
        self.segments = _NONE

    def parts(self, lsn: int = 0) -> list[Part]:
        """The list for parts that may be sent once ``lsn`` is durable (0: right after the parts before them)."""
        segments = self.segments
        if segments and segments[-1][0] >= lsn:
            return segments[-1][1]
        parts: list[Part] = []
        if segments:
            segments.append((lsn, parts))
        else:
            self.segments = [(lsn, parts)]
        return parts

    def take(self, durable_lsn: int) -> list[Part]:
        """Remove and return the parts that may be sent now."""
        segments = self.segments
        if not segments or segments[0][0] > durable_lsn:
            return []
        if len(segments) == 1:
            self.segments = _NONE
            return segments[0][1]
        leaving: list[Part] = []
        count = 0
        for lsn, parts in segments:
            if lsn > durable_lsn:
                break
            leaving.extend(parts)
            count += 1
        del segments[:count]
        return leaving
