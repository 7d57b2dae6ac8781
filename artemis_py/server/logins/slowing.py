"""Slows down peers that try one wrong password after the other."""

from __future__ import annotations

from typing import Final, final

FREE: Final = 3
"""So many different failures cost a peer nothing: people mistype."""
PAUSE_MS: Final = 200
PAUSE_MS_MAX: Final = 5000
"""The pause after one more failure; each further one doubles it, up to the maximum."""
FORGET_MS: Final = 300_000
"""A peer without a new failure for so long begins anew."""
PEERS_MAX: Final = 4096
_TRIED_MAX: Final = 16


@final
class _Record:
    __slots__ = ("count", "last_ms", "tried")

    def __init__(self) -> None:
        self.count = 0
        self.last_ms = 0
        self.tried: dict[bytes, None] = {}


@final
class Slowing:
    """Counts the failures of each peer, and says how long its next login must wait. Times are steady.

    Only credentials that the peer did not try before count: a program that repeats an old password is not guessing, and
    other programs at its address should not suffer from it. The table is bounded; the peer whose last new failure is
    the oldest makes room.
    """

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def failed(self, peer: str, digest: bytes, now_ms: int) -> None:
        """A login of the peer failed."""
        record = self._records.get(peer)
        if record is None or now_ms - record.last_ms >= FORGET_MS:
            record = _Record()
        elif digest in record.tried:
            return
        self._records.pop(peer, None)
        if len(self._records) >= PEERS_MAX:
            del self._records[next(iter(self._records))]
        self._records[peer] = record  # at the end: the table is in the order of the last failures
        if len(record.tried) >= _TRIED_MAX:
            del record.tried[next(iter(record.tried))]
        record.tried[digest] = None
        record.count += 1
        record.last_ms = now_ms

    def pause_ms(self, peer: str, now_ms: int) -> int:
        """How long a login that begins now must wait; 0 if it need not."""
        record = self._records.get(peer)
        if record is None or record.count <= FREE:
            return 0
        doublings = min(record.count - FREE - 1, PAUSE_MS_MAX.bit_length())
        return max(record.last_ms + min(PAUSE_MS << doublings, PAUSE_MS_MAX) - now_ms, 0)
