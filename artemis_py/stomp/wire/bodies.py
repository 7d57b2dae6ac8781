"""Bodies that arrive in parts: gathered in memory, or handed on to a file."""

from __future__ import annotations

from collections.abc import Callable
from sys import maxsize
from typing import Final, final

from artemis_py.stomp.wire.frames import AnyFrame, BodiedFrame, FrameError, LargeSend, Limits, Send, receipt_of
from artemis_py.uploads import IncomingBody

_PIECE_BYTES: Final = 4096


@final
class _Pieces:
    """A body in memory. Small pieces are joined, so that a body costs no more than its length, however it arrives."""

    __slots__ = ("_parts", "_tail")

    def __init__(self, start: bytes) -> None:
        self._parts: list[bytes | bytearray] = [start]
        self._tail: bytearray | None = None

    def append(self, data: bytes) -> None:
        """Add a piece of the body."""
        if len(data) >= _PIECE_BYTES:
            self._parts.append(data)
            self._tail = None
            return
        if self._tail is None or len(self._tail) >= _PIECE_BYTES:
            self._tail = bytearray()
            self._parts.append(self._tail)
        self._tail += data

    def joined(self) -> bytes:
        """The body so far."""
        return b"".join(self._parts)


@final
class BodyRules:
    """Where bodies go. ``upload`` makes room in a file for the large body of a SEND; without it every body is kept in
    memory. A large body of another frame is an error: it is read and not kept.
    """

    __slots__ = ("bytes_max", "large_bytes_min", "upload")

    def __init__(self, limits: Limits, upload: Callable[[Send], IncomingBody] | None = None) -> None:
        self.bytes_max = limits.body_bytes_max
        large_bytes_min = limits.large_body_bytes_min
        self.large_bytes_min = maxsize if upload is None or large_bytes_min < 0 else max(large_bytes_min, 1)
        self.upload = upload


@final
class IncompleteFrame:
    """A frame with an incomplete body."""

    __slots__ = ("_bytes_needed", "_frame", "_frame_bytes", "_held_bytes", "_pieces", "_rules", "_upload")

    def __init__(self, frame: BodiedFrame, start: bytes, bytes_needed: int, rules: BodyRules) -> None:
        self._frame = frame
        self._frame_bytes = frame.size_bytes
        self._rules = rules
        self._bytes_needed = bytes_needed
        """How many bytes the body and its NUL need; -1: up to a NUL."""
        self._held_bytes = len(start)
        self._pieces: _Pieces | None = _Pieces(start)
        self._upload: IncomingBody | None = None

    @property
    def is_uploading(self) -> bool:
        """Do further parts go to a file?"""
        return self._upload is not None and self._upload.failure is None

    @property
    def memory_bytes(self) -> int:
        """What it holds in memory."""
        return self._frame_bytes + (0 if self._pieces is None else self._held_bytes)

    def check_size(self) -> None:
        """Move a body to a file once it is known to be large. Raises FrameError for one that is too large."""
        rules = self._rules
        if self._held_bytes > rules.bytes_max:
            raise too_large(self._frame, rules.bytes_max)
        pieces = self._pieces
        if pieces is None or max(self._bytes_needed - 1, self._held_bytes) < rules.large_bytes_min:
            return
        self._pieces = None
        frame = self._frame
        if rules.upload is not None and isinstance(frame, Send):
            self._upload = rules.upload(frame)
            self._upload.append(pieces.joined())

    def _hold(self, data: bytes) -> None:
        self._held_bytes += len(data)
        if self._pieces is not None:
            self._pieces.append(data)
        elif self._upload is not None:
            self._upload.append(data)

    def take(self, data: bytes) -> bytes | None:
        """Add the next part. Returns the bytes behind the body, or None while it is not complete. Raises FrameError."""
        if self._bytes_needed >= 0:
            missing = self._bytes_needed - self._held_bytes
            if len(data) < missing:
                self._hold(data)
                return None
            if data[missing - 1]:
                raise no_nul(self._frame)
            self._hold(data[: missing - 1])
            return data[missing:]
        nul = data.find(0)
        self._hold(data if nul < 0 else data[:nul])
        self.check_size()
        return None if nul < 0 else data[nul + 1 :]

    def completed(self) -> tuple[AnyFrame, bytes]:
        """The frame and its body, once ``take`` has returned what is behind it."""
        if self._pieces is not None:
            return self._frame, self._pieces.joined()
        if self._upload is not None:
            assert isinstance(self._frame, Send)
            self._upload.end()
            return LargeSend(self._frame, self._upload), b""
        return self._frame, b"\0"  # not kept, but not empty either


def upload_large(frames: list[tuple[AnyFrame, bytes]], rules: BodyRules) -> None:
    """Move large bodies that arrived in one piece to files."""
    assert rules.upload is not None
    for place, (frame, body) in enumerate(frames):
        if len(body) >= rules.large_bytes_min and isinstance(frame, Send):
            upload = rules.upload(frame)
            upload.append(body)
            upload.end()
            frames[place] = LargeSend(frame, upload), b""


def no_nul(frame: BodiedFrame) -> FrameError:
    """The error for a body that does not end where its content-length says."""
    reason = f"The byte after {frame.content_length} bytes of body is not NUL: content-length is wrong"
    return FrameError(reason, receipt_of(frame))


def too_large(frame: BodiedFrame, limit: int) -> FrameError:
    """The error for a body over the acceptor's limit."""
    reason = f"Body too large: more than {limit} bytes (maxBodyBytes of the acceptor)"
    return FrameError(reason, receipt_of(frame), too_large=True)
