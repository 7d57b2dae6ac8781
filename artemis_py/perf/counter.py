"""Counts messages in a byte stream without parsing it."""

from __future__ import annotations

from typing import Final

from artemis_py.errors import PerfError
from artemis_py.stomp.client import FrameReader

ERROR: Final = b"ERROR"
# Line end or NUL before the word, five letters, line end after it: what must be kept to see an ERROR cut in two.
ERROR_SPAN: Final = len(ERROR) + 2
LINE_ENDS: Final = b"\r\n"
RECEIVE_BYTES: Final = 256 * 1024


class MarkerCounter:
    """Counts the ends of messages with equal body ends, and notices an ERROR frame anywhere in the stream.

    The caller reads into ``buffer`` at ``start`` and passes the number of bytes. The room before ``start`` is for the
    tail of the previous block, so that one search finds split markers. Many counters may share one buffer: each keeps
    the tail of its own stream. The bytes between markers are not checked.
    """

    __slots__ = ("_error", "_error_tail", "_marker", "_tail_bytes", "count", "tail")

    def __init__(self, marker: bytes) -> None:
        self._marker = marker
        self._tail_bytes = len(marker) - 1
        self._error_tail = ERROR_SPAN - 1
        self._error: bytearray | None = None
        self.count = 0
        self.tail = b"\0"

    @property
    def start(self) -> int:
        """Where in the buffer the next block of this stream must be read to."""
        return max(self._tail_bytes, self._error_tail)

    def feed(self, buffer: bytearray, size: int) -> int:
        """Counts the markers that the ``size`` new bytes at ``start`` complete; returns how many."""
        start, tail = self.start, self.tail
        end = start + size
        buffer[start - len(tail) : start] = tail
        found = buffer.count(self._marker, start - min(self._tail_bytes, len(tail)), end)
        self.count += found
        # One letter is searched at memory speed. A MESSAGE holds no capital R except in ids: the slow search is rare.
        if self._error is not None:
            self._error += buffer[start:end]
        elif buffer.find(b"R", start - min(self._error_tail, len(tail)), end) >= 0:
            self._look_for_error(buffer, start - min(self._error_tail, len(tail)), end)
        self.tail = bytes(buffer[max(end - start, start - len(tail)) : end])
        return found

    def after_last(self, buffer: bytearray, size: int) -> bytes:
        """What follows the last marker in the block just fed."""
        start = self.start - self._tail_bytes
        end = self.start + size
        at = buffer.rfind(self._marker, start, end)
        return bytes(buffer[self.start if at < 0 else at + len(self._marker) : end])

    def _look_for_error(self, buffer: bytearray, start: int, end: int) -> None:
        at = buffer.find(ERROR, start, end)
        while at >= 0:
            after = at + len(ERROR)
            begins = at > start and buffer[at - 1] in b"\0\r\n"
            if begins and after < end and buffer[after] in LINE_ENDS:
                self._error = bytearray(buffer[at:end])
                return
            at = buffer.find(ERROR, after, end)

    def raise_error(self, closed: bool = False) -> None:
        """Raises PerfError with the text of an ERROR frame once it is complete, or with its beginning if ``closed``."""
        if self._error is None:
            return
        reader = FrameReader()
        reader.feed(bytes(self._error))
        if (found := reader.pop()) is not None:
            raise PerfError(f"the broker sent ERROR: {found.text}")
        if closed:
            text = " ".join(self._error.decode(errors="replace").split())
            raise PerfError(f"the broker sent an incomplete ERROR and closed: {text[:300]}")
