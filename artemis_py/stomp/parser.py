"""Bytes to frames, many at a time, however the network has cut them.

The parser looks for the end of a header block, asks the dialect what the block says (or remembers it), and then knows
how long the body is. It scans no byte twice: what is missing of a body is counted, or only its new part searched for
the NUL.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Final

from artemis_py.stomp.dialect import MEMO_BLOCK_BYTES_MAX, Dialect
from artemis_py.stomp.frames import AckRun, Frame, FrameError, LargeSend, Refused, Send
from artemis_py.storage.upload import Upload

BodiedFrame = Frame | Send | Refused
AnyFrame = BodiedFrame | AckRun
_EOL: Final = b"\r\n"
_LF: Final = 10
_CR: Final = 13
_A: Final = 65
_RECEIPT: Final = b"\nreceipt:"
_ACK_RUN: Final = re.compile(rb"(?:ACK\nid:\d{1,18}+-\d{1,18}+\n\n\0\n?+)++")
_ACK_IDS: Final = re.compile(rb"(\d+)-(\d+)")


class _Unread:
    """Takes the large body of a frame that cannot have one."""

    def append(self, data: bytes) -> None:
        """Forget it."""


class Parser:
    """One connection's stream of frames. It knows bytes and limits, not what a frame does.

    ``upload`` gives room for the large body of a SEND; without it every body is kept in memory. Such a SEND is returned
    as a LargeSend as soon as all of the body came, whether or not that is written.
    """

    __slots__ = (
        "_awaited", "_body_bytes_needed", "_held", "_held_bytes", "_large_bytes_min", "_last_with_receipt",
        "_reads_ack_runs", "_rest", "_upload", "dialect", "error",
    )  # fmt: skip

    def __init__(self, dialect: Dialect, upload: Callable[[Send], Upload] | None = None) -> None:
        self.dialect = dialect
        self._upload = upload
        limit = dialect.limits.large_body_bytes_min
        self._large_bytes_min = sys.maxsize if upload is None or limit < 0 else max(limit, 1)
        self.error: FrameError | None = None
        """Why nothing more can be read; the frames before it were returned."""
        self._rest = b""
        self._reads_ack_runs = dialect.version == "1.2" and dialect.limits.allow_any_ack
        self._last_with_receipt: tuple[bytes, bytes, Send | None] = (b"", b"", None)
        """What stood before and behind the id of a receipt, and the frame."""
        self._awaited: BodiedFrame | None = None
        """A frame whose body is not complete."""
        self._held: list[bytes] | Upload | _Unread | None = None
        self._held_bytes = 0
        self._body_bytes_needed = -1
        """How much must be held to complete the body and its NUL; -1: until a NUL comes."""

    @property
    def in_frame(self) -> bool:
        """Has a frame begun that is not complete?"""
        return self._awaited is not None or bool(self._rest.lstrip(_EOL))

    @property
    def in_large_body(self) -> bool:
        """Does what comes now go to a file?"""
        return isinstance(self._held, Upload)

    def forget(self) -> None:
        """The rest of the stream will not come: let go of what did."""
        self._held = None
        self._awaited = None

    def feed(self, data: bytes) -> list[tuple[AnyFrame, bytes]]:
        """The frames that ``data`` completes, each with its body."""
        frames: list[tuple[AnyFrame, bytes]] = []
        if self.error is not None:
            return frames
        try:
            if self._awaited is not None:
                rest = self._complete_body(data, frames)
                if rest is None:
                    return frames
                data = rest
            elif self._rest:
                data = self._rest + data
                self._rest = b""
            self._scan(data, frames)
            if len(data) > self._large_bytes_min:
                self._take_out_large(frames)
        except FrameError as error:
            self.error = error.with_traceback(None)  # which would hold on to what was read
        return frames

    def feed_one(self, data: bytes) -> tuple[list[tuple[AnyFrame, bytes]], bytes]:
        """Like ``feed`` for the frame that must come first (CONNECT): at most one frame, and the bytes behind it."""
        frames: list[tuple[AnyFrame, bytes]] = []
        data = self._rest + data
        self._rest = b""
        try:
            position = _skip_line_ends(data, 0)
            block, body_at = self._header_block(data, position, data.find(b"\n\n", position))
            if body_at < 0:
                self._rest = data[position:]
                return frames, b""
            frame = self.dialect.read(block)
            nul = data.find(0, body_at)
            if frame.content_length > 0 or nul > body_at:
                raise FrameError("The first frame must be CONNECT or STOMP, and that has no body")
            if nul < 0:
                if len(data) > body_at:
                    raise FrameError("CONNECT has no body")
                self._rest = data[position:]
                return frames, b""
            frames.append((frame, b""))
            return frames, data[nul + 1 :]
        except FrameError as error:
            self.error = error.with_traceback(None)  # which would hold on to what was read
            return frames, b""

    # ---- header blocks ---------------------------------------------------------------------------

    def _scan(self, data: bytes, frames: list[tuple[AnyFrame, bytes]]) -> None:
        memo = self.dialect.memo
        body_bytes_max = self.dialect.limits.body_bytes_max
        header_bytes_max = self.dialect.limits.header_bytes_max
        find = data.find
        size = len(data)
        position = 0
        while position < size:
            first = data[position]
            if first == _LF or first == _CR:  # noqa: PLR1714, SIM109 - two comparisons cost less than a container
                after = _skip_line_ends(data, position)
                if after == position:
                    self._rest = data[position:]
                    return
                position = after
                continue
            end = find(b"\n\n", position)
            known = memo.get(data[position:end]) if end >= 0 else None
            if known is not None:
                frame: BodiedFrame = known
                body_at = end + 2
            else:
                if first == _A and self._reads_ack_runs:
                    acks = _ACK_RUN.match(data, position)
                    if acks is not None:
                        frames.append((AckRun(_ACK_IDS.findall(acks[0])), b""))
                        position = acks.end()
                        continue
                block = data[position:end]
                body_at = end + 2
                if not 0 <= end <= position + header_bytes_max or b"\r" in block or b"\0" in block:
                    block, body_at = self._header_block(data, position, end)
                    if body_at < 0:
                        self._rest = data[position:]
                        return
                frame = self._read(block)
            length = frame.content_length
            if length < 0:
                nul = find(0, body_at)
                if nul < 0:
                    self._await_body(frame, data[body_at:], -1)
                    return
                if nul - body_at > body_bytes_max:
                    raise _too_large(frame, body_bytes_max)
            else:
                nul = body_at + length
                if nul >= size:
                    self._await_body(frame, data[body_at:], length + 1)
                    return
                if data[nul]:
                    raise _no_nul(frame)
            frames.append((frame, data[body_at:nul]))
            position = nul + 1

    def _header_block(self, data: bytes, position: int, end: int) -> tuple[bytes, int]:
        """The header block at ``position`` and where its body begins, -1 when it is not complete.

        ``end`` is where the next two line feeds stand together, -1 for nowhere. Line ends may also have a CR.
        """
        limit = self.dialect.limits.header_bytes_max
        if not 0 <= end <= position + limit:
            end = -1
        else:
            block = data[position:end]
            if b"\r" not in block:
                return _without_nul(block), end + 2
        end_cr = data.find(b"\n\r\n", position, position + limit + 3 if end < 0 else end + 1)
        if end_cr >= 0:
            return _without_nul(data[position:end_cr].replace(b"\r\n", b"\n").removesuffix(b"\r")), end_cr + 3
        if end >= 0:
            return _without_nul(data[position:end].replace(b"\r\n", b"\n")), end + 2
        if len(data) - position > limit + len("\n\r"):
            raise FrameError(f"Headers of more than {limit} bytes")
        _without_nul(data[position:])
        self._check_line_so_far(data, position)
        return b"", -1

    def _check_line_so_far(self, data: bytes, position: int) -> None:
        """Refuse an endless first line early: it is no command."""
        if len(data) - position > 256 and data.find(b"\n", position, position + 256) < 0:
            raise FrameError("No command: the first line of a frame has no end")

    def _read(self, block: bytes) -> BodiedFrame:
        before, after, like = self._last_with_receipt
        if like is not None and block.startswith(before) and block.endswith(after):
            receipt = block[len(before) : len(block) - len(after)]
            if receipt.isalnum() and len(block) <= self.dialect.limits.header_line_bytes_max:
                return Send(like.head, like.shape, like.content_length, receipt.decode(), None)
        receipt_at = block.find(_RECEIPT)
        if receipt_at >= 0 and block.startswith(b"SEND\n"):
            return self._read_with_receipt(block, receipt_at)
        frame = self.dialect.read(block)
        if isinstance(frame, Send) and frame.receipt is None:
            self.dialect.remember(block, frame)
        return frame

    def _read_with_receipt(self, block: bytes, receipt_at: int) -> BodiedFrame:
        """A SEND with a receipt; the next one is often the same but for that receipt's id."""
        frame = self.dialect.read_with_receipt(block, receipt_at)
        if isinstance(frame, Send) and frame.transaction is None and len(block) <= MEMO_BLOCK_BYTES_MAX:
            end = block.find(b"\n", receipt_at + 1)
            after = b"" if end < 0 else block[end:]
            self._last_with_receipt = (block[: receipt_at + len(_RECEIPT)], after, frame)
        return frame

    # ---- bodies in parts -------------------------------------------------------------------------

    def _await_body(self, frame: BodiedFrame, start: bytes, needed: int) -> None:
        self._awaited = frame
        self._held = [start]
        self._held_bytes = len(start)
        self._body_bytes_needed = needed
        self._check_body_size(frame)
        if max(needed - 1, len(start)) >= self._large_bytes_min:
            self._hold_large(frame)

    def _check_body_size(self, frame: BodiedFrame) -> None:
        limit = self.dialect.limits.body_bytes_max
        if self._held_bytes > limit:
            raise _too_large(frame, limit)

    def _hold_large(self, frame: AnyFrame) -> None:
        """The awaited body is a large one: what is held of it goes to its file, and what comes will."""
        assert isinstance(self._held, list)
        held = self._held
        self._held = self._upload(frame) if self._upload is not None and isinstance(frame, Send) else _Unread()
        for part in held:
            self._held.append(part)

    def _take_out_large(self, frames: list[tuple[AnyFrame, bytes]]) -> None:
        """Large bodies that came in one piece."""
        assert self._upload is not None
        for place, (frame, body) in enumerate(frames):
            if len(body) >= self._large_bytes_min and isinstance(frame, Send):
                upload = self._upload(frame)
                upload.append(body)
                upload.end()
                frames[place] = LargeSend(frame, upload), b""

    def _complete_body(self, data: bytes, frames: list[tuple[AnyFrame, bytes]]) -> bytes | None:
        """Take what the awaited body lacks; the bytes behind it, or None when it is still not complete."""
        frame = self._awaited
        held = self._held
        assert frame is not None
        assert held is not None
        if self._body_bytes_needed >= 0:
            missing = self._body_bytes_needed - self._held_bytes
            if len(data) < missing:
                held.append(data)
                self._held_bytes += len(data)
                return None
            if data[missing - 1]:
                raise _no_nul(frame)
            held.append(data[: missing - 1])
            rest = data[missing:]
        else:
            nul = data.find(0)
            if nul < 0:
                held.append(data)
                self._held_bytes += len(data)
                self._check_body_size(frame)
                if isinstance(held, list) and self._held_bytes >= self._large_bytes_min:
                    self._hold_large(frame)
                return None
            held.append(data[:nul])
            self._held_bytes += nul
            self._check_body_size(frame)
            if isinstance(held, list) and self._held_bytes >= self._large_bytes_min:
                self._hold_large(frame)
            rest = data[nul + 1 :]
        frames.append(_completed(frame, self._held))
        self._awaited = None
        self._held = None
        self._held_bytes = 0
        return rest


def _completed(frame: AnyFrame, held: list[bytes] | Upload | _Unread | None) -> tuple[AnyFrame, bytes]:
    if isinstance(held, list):
        return frame, b"".join(held)
    if isinstance(held, Upload):
        assert isinstance(frame, Send)
        held.end()
        return LargeSend(frame, held), b""
    return frame, b"\0"  # not read, but not empty either


def _without_nul(block: bytes) -> bytes:
    if b"\0" in block:
        raise FrameError("A NUL among the headers: the empty line after them is missing")
    return block


def _skip_line_ends(data: bytes, position: int) -> int:
    """The first byte from ``position`` that belongs to a frame. Raises FrameError for a CR that no LF follows."""
    size = len(data)
    while position < size:
        byte = data[position]
        if byte == _LF:
            position += 1
        elif byte == _CR and (position + 1 == size or data[position + 1] == _LF):
            if position + 1 == size:
                return position
            position += 2
        elif byte == _CR:
            raise FrameError("A carriage return without a line feed between frames")
        else:
            return position
    return position


def _receipt_of(frame: BodiedFrame) -> str | None:
    return frame.headers.get("receipt") if isinstance(frame, Frame) else frame.receipt


def _no_nul(frame: BodiedFrame) -> FrameError:
    reason = f"The byte after {frame.content_length} bytes of body is not NUL: content-length is wrong"
    return FrameError(reason, _receipt_of(frame))


def _too_large(frame: BodiedFrame, limit: int) -> FrameError:
    return FrameError(f"A body of more than {limit} bytes", _receipt_of(frame))
