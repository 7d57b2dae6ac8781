"""Parses bytes into frames, many at a time, however the network split them.

The parser finds the end of a header block, gets the block's meaning from the dialect (or its cache), and then knows the
length of the body. It searches each byte at most once for line ends, for the end of its block and for a NUL, and copies
it a few times at most, however the bytes arrive: in pieces, with CR LF, or only as line ends.

It returns no more frames at a time than asked for. The rest waits (``has_more``).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from sys import maxsize
from typing import Final, final

from artemis_py.stomp.wire.dialect import MEMO_BLOCK_BYTES_MAX, Dialect, receipt_in
from artemis_py.stomp.wire.frames import (
    ACK_RECEIPT_BYTES_MAX,
    AckRun,
    AnyFrame,
    BodiedFrame,
    FrameError,
    LargeSend,
    Limits,
    Send,
    receipt_of,
)
from artemis_py.uploads import IncomingBody

_EOL: Final = b"\r\n"
_NO_BODY_BYTES_MAX: Final = 1024
"""Up to this many line ends do not count as a body of CONNECT."""
_LF: Final = 10
_CR: Final = 13
_A: Final = 65
_RECEIPT: Final = b"\nreceipt:"
ACK_RUN_MAX: Final = 256
"""The most ACKs in one request."""
_ACK: Final = rb"ACK\n%b?id:(\d{1,18}+)-(\d{1,18}+)\n%b?\n\0\n?+" % (
    (rb"(?:receipt:([!-9;-\[\]-~]{1,%d}+)\n)" % ACK_RECEIPT_BYTES_MAX,) * 2
)
"""A receipt may stand before or behind the id. Its characters mean themselves in every version."""
_ACKS: Final = re.compile(_ACK)
_ACK_RUN: Final = re.compile(rb"(?:%b){1,%d}" % (_ACK, ACK_RUN_MAX))
"""Not possessive: before Python 3.11.5 a possessive repeat of a group loses its place (CPython issue 106052)."""
_LINE_ENDS: Final = re.compile(rb"[\r\n]*+")
_NOWHERE: Final = (1 << 60) - 1
"""A position after every byte; what -1 becomes with ``&``."""
_FIRST_LINE_BYTES_MAX: Final = 256
_READ_UNITS: Final = 4
_READ_BYTES_SHIFT: Final = 7
"""Reading a new header block costs this many units, plus one for so many bytes (as a power of two)."""


@final
class Parser:
    """One connection's stream of frames. It knows bytes and limits, not what frames do.

    A SEND with a large body is returned as a LargeSend as soon as all of the body arrived, whether or not it is written
    to its file. Without ``rules`` every body is kept in memory.
    """

    __slots__ = (
        "_cr_at", "_crlf_end", "_header_bytes_max", "_last_block", "_last_send", "_last_with_receipt", "_lf_end",
        "_position", "_reads_ack_runs", "_rules", "_searched_bytes", "dialect", "error", "read_units", "start",
        "unfinished", "unread",
    )  # fmt: skip

    def __init__(self, dialect: Dialect, rules: BodyRules | None = None) -> None:
        self.dialect = dialect
        self._rules = BodyRules(dialect.limits) if rules is None else rules
        self._header_bytes_max = dialect.limits.header_bytes_max
        self.read_units = 0
        """The cost of reading header blocks; whoever charges it resets it."""
        self.error: FrameError | None = None
        """Why nothing more can be read; earlier frames were returned."""
        self.unread = b""
        """Data with frames that nobody has asked for."""
        self._position = 0
        """Where they begin in it."""
        self.start = bytearray()
        """The beginning of a frame with an incomplete header block."""
        self._searched_bytes = 0
        """How far it has been searched for the end of the block."""
        self._reads_ack_runs = dialect.version == "1.2" and dialect.limits.allow_any_ack
        self._lf_end = self._cr_at = self._crlf_end = -1
        """The next "\\n\\n", CR and "\\n\\r\\n" in the data; each is looked for again when it is passed."""
        self._last_block = b""
        """The header block of the last frame from the cache, with the empty line; it is likely to come again."""
        self._last_send: Send | None = None
        """That frame."""
        self._last_with_receipt: tuple[bytes, bytes, Send | None] = (b"", b"", None)
        """The bytes before and after the id of a receipt, and the frame."""
        self.unfinished: _IncompleteFrame | None = None
        """The frame whose body is being read."""

    @property
    def in_large_body(self) -> bool:
        """Does incoming data go to a file?"""
        return self.unfinished is not None and self.unfinished.is_uploading

    @property
    def waiting_bytes(self) -> int:
        """Bytes in memory of incomplete and unread frames."""
        rest_bytes = len(self.unread) + len(self.start)
        return rest_bytes if self.unfinished is None else rest_bytes + self.unfinished.memory_bytes

    def forget(self) -> None:
        """The rest of the stream will not come: let go of what did."""
        self.unfinished = None
        self.unread = b""
        self.start = bytearray()
        self._last_block, self._last_send = b"", None
        self._last_with_receipt = (b"", b"", None)

    def feed(self, data: bytes, frames_max: int = sys.maxsize) -> list[tuple[AnyFrame, bytes]]:
        """The frames that ``data`` completes, each with its body; about ``frames_max`` at most, the rest wait for
        ``more``.
        """
        if self.unread:
            self.unread = self.unread[self._position :] + data
            self._position = 0
            return self.more(frames_max)
        frames: list[tuple[AnyFrame, bytes]] = []
        if self.error is not None:
            return frames
        try:
            unfinished = self.unfinished
            if unfinished is not None:
                rest = unfinished.take(data)
                if rest is None:
                    return frames
                frames.append(unfinished.completed())
                self.unfinished = None
                data = rest
            elif self.start:
                whole = self._with_start(data)
                if whole is None:
                    return frames
                data = whole
            self._scan(data, 0, frames, frames_max - len(frames))
        except FrameError as error:
            self._fail(error)
        if len(data) > self._rules.large_bytes_min:
            _upload_large(frames, self._rules)
        return frames

    def more(self, frames_max: int = sys.maxsize) -> list[tuple[AnyFrame, bytes]]:
        """The next frames in the data already received."""
        frames: list[tuple[AnyFrame, bytes]] = []
        data, self.unread = self.unread, b""
        try:
            self._scan(data, self._position, frames, frames_max)
        except FrameError as error:
            self._fail(error)
        if len(data) > self._rules.large_bytes_min:
            _upload_large(frames, self._rules)
        return frames

    def feed_one(self, data: bytes) -> tuple[list[tuple[AnyFrame, bytes]], bytes]:
        """Like ``feed`` for the first frame (CONNECT): at most one frame, and the bytes after it."""
        frames: list[tuple[AnyFrame, bytes]] = []
        try:
            if self.start:
                whole = self._with_start(data)
                if whole is None:
                    return frames, b""
                data = whole
            position = _skip_line_ends(data, 0)
            if position == len(data):
                return frames, b""
            block, body_at = self._first_block(data, position)
            if body_at < 0:
                return frames, b""
            frame = self.dialect.read(block)
            nul = data.find(0, body_at) if frame.content_length < 0 else body_at + frame.content_length
            body = data[body_at:] if nul < 0 else data[body_at:nul]
            if max(len(body), frame.content_length) > _NO_BODY_BYTES_MAX or body.strip(_EOL):
                reason = "The first frame must be CONNECT or STOMP, without a body"
                raise FrameError(reason, receipt_of(frame))
            if not 0 <= nul < len(data):
                self.start += data[position:]
                return frames, b""
            if data[nul]:
                raise _no_nul(frame)
            frames.append((frame, b""))
            return frames, data[nul + 1 :]
        except FrameError as error:
            self._fail(error)
            return frames, b""

    def _fail(self, error: FrameError) -> None:
        # without the frames that hold on to what was read
        self.error = FrameError(str(error), error.receipt, too_large=error.too_large)
        self.unread = b""
        self.start = bytearray()
        self.unfinished = None

    # ---- header blocks ---------------------------------------------------------------------------

    def _scan(self, data: bytes, position: int, frames: list[tuple[AnyFrame, bytes]], frames_max: int) -> None:
        memo = self.dialect.memo
        body_bytes_max = self.dialect.limits.body_bytes_max
        size = len(data)
        self._lf_end = self._cr_at = self._crlf_end = -1
        while position < size and frames_max > 0:
            first = data[position]
            if first == _LF or first == _CR:  # noqa: PLR1714, SIM109 - two comparisons cost less than a container
                after = _skip_line_ends(data, position)
                if after == position:
                    self.start += data[position:]
                    return
                position = after
                continue
            last_block = self._last_block
            known = self._last_send
            if known is not None and data[position : position + len(last_block)] == last_block:
                body_at = position + len(last_block)  # without a search, which costs more than all else of a frame
                block = b""
            else:
                block, body_at = self._next_block(data, position)
                if body_at < 0:
                    return
                known = memo.get(block)
                if known is not None and self._lf_end < self._cr_at:
                    self._last_block = data[position:body_at]
                    self._last_send = known
            if known is not None:
                frame: BodiedFrame = known
            else:
                acks = _ACK_RUN.match(data, position) if first == _A and self._reads_ack_runs else None
                if acks is not None:
                    run = AckRun(_ACKS.findall(acks[0]))
                    frames.append((run, b""))
                    frames_max -= len(run.acks)
                    position = acks.end()
                    continue
                frames_max += self.read_units
                frame = self._read(block)
                frames_max -= self.read_units
            length = frame.content_length
            nul = data.find(0, body_at) if length < 0 else body_at + length
            if not 0 <= nul < size:
                unfinished = self.unfinished = _IncompleteFrame(frame, data[body_at:], length + 1 or -1, self._rules)
                unfinished.check_size()
                return
            if length < 0:
                if nul - body_at > body_bytes_max:
                    raise _too_large(frame, body_bytes_max)
            elif data[nul]:
                raise _no_nul(frame)
            frames.append((frame, data[body_at:nul]))
            frames_max -= 1
            position = nul + 1
        self.unread = data if position < size else b""
        self._position = position

    def _next_block(self, data: bytes, position: int) -> tuple[bytes, int]:
        """The header block at ``position``, and where its body begins; -1 if the block is incomplete."""
        if self._lf_end < position:
            self._lf_end = data.find(b"\n\n", position) & _NOWHERE
        if self._cr_at < position:
            # ``in`` takes a fifth of the time of ``find``, and most clients send no CR at all
            self._cr_at = data.find(_CR, position) & _NOWHERE if _CR in data else _NOWHERE
        if self._lf_end < self._cr_at:
            return data[position : self._lf_end], self._lf_end + 2
        if self._crlf_end < position:
            self._crlf_end = data.find(b"\n\r\n", position) & _NOWHERE
        return self._block_with_cr(data, position, self._lf_end, self._crlf_end)

    def _block_with_cr(self, data: bytes, position: int, lf_end: int, crlf_end: int) -> tuple[bytes, int]:
        """The header block at ``position``, whose lines may end with CR LF, and where its body begins. -1 if it is
        incomplete; then its beginning is kept. ``lf_end`` and ``crlf_end`` are the positions of the next empty lines.
        """
        end = min(lf_end, crlf_end)
        if end == _NOWHERE:
            self._hold_start(data[position:])
            return b"", -1
        if end - position > self._header_bytes_max:
            self._refuse_block(data[position:end])
        block = data[position:end].replace(b"\r\n", b"\n")
        if lf_end < crlf_end:
            return block, lf_end + 2
        return block.removesuffix(b"\r"), crlf_end + 3

    def _first_block(self, data: bytes, position: int) -> tuple[bytes, int]:
        """Like ``_block_with_cr``, for a single block."""
        lf_end, crlf_end = data.find(b"\n\n", position) & _NOWHERE, data.find(b"\n\r\n", position) & _NOWHERE
        found = self._block_with_cr(data, position, lf_end, crlf_end)
        if 0 in found[0]:
            self._refuse_block(found[0])
        return found

    def _refuse_block(self, block: bytes) -> None:
        """Raises FrameError for a block that is too long or has a NUL, with the receipt found before that."""
        limit = self._header_bytes_max
        if len(block) > limit:
            start = block[:limit].rpartition(b"\n")[0]
            param = self.dialect.limits.header_bytes_param
            reason = f"Headers too large: more than {limit} bytes ({param} of the acceptor)"
            raise FrameError(reason, receipt_in(start, self.dialect.version), too_large=True)
        receipt = receipt_in(block.partition(b"\0")[0], self.dialect.version)
        raise FrameError("NUL among the headers: the empty line after them is missing", receipt)

    def _hold_start(self, start: bytes) -> None:
        """Keep the beginning of a frame, and refuse what cannot be one."""
        self.start += start
        self._searched_bytes = 0
        self._check_start(start)

    def _with_start(self, data: bytes) -> bytes | None:
        """The kept beginning of a frame plus the new data; None if the empty line is still missing. Only the new data
        is searched.
        """
        start = self.start
        is_line_end = start[0] == _CR
        start += data
        searched = self._searched_bytes
        if is_line_end or start.find(b"\n\n", searched) >= 0 or start.find(b"\n\r\n", searched) >= 0:
            self.start = bytearray()
            self._searched_bytes = 0
            return bytes(start)
        self._check_start(data)
        return None

    def _check_start(self, data: bytes) -> None:
        """Refuse the beginning of a frame, ending with ``data``, if no empty line can make it valid."""
        start = self.start
        size = len(start)
        if size > self._header_bytes_max + len("\n\r") or 0 in data:
            self._refuse_block(bytes(start))
        if size - len(data) <= _FIRST_LINE_BYTES_MAX < size and start.find(b"\n", 0, _FIRST_LINE_BYTES_MAX) < 0:
            raise FrameError("No command: the first line of the frame does not end")
        self._searched_bytes = max(size - len("\n\r"), 0)

    def _read(self, block: bytes) -> BodiedFrame:
        # A byte that is looked for as bytes costs much more: Python takes them for a number first, which fails.
        if len(block) > self._header_bytes_max or 0 in block:
            self._refuse_block(block)
        before, after, like = self._last_with_receipt
        if like is not None and block.startswith(before) and block.endswith(after):
            receipt = block[len(before) : len(block) - len(after)]
            if receipt.isalnum() and len(block) <= self.dialect.limits.header_line_bytes_max:
                return Send(like.head, like.shape, like.content_length, receipt.decode(), None)
        self.read_units += _READ_UNITS + (len(block) >> _READ_BYTES_SHIFT)
        receipt_at = block.find(_RECEIPT)
        if receipt_at >= 0 and block.startswith(b"SEND\n"):
            return self._read_with_receipt(block, receipt_at)
        frame = self.dialect.read(block)
        if isinstance(frame, Send) and frame.receipt is None:
            self.dialect.remember(block, frame)
        return frame

    def _read_with_receipt(self, block: bytes, receipt_at: int) -> BodiedFrame:
        """A SEND with a receipt; the next one often differs only in the receipt's id."""
        frame = self.dialect.read_with_receipt(block, receipt_at)
        if isinstance(frame, Send) and frame.transaction is None and len(block) <= MEMO_BLOCK_BYTES_MAX:
            end = block.find(b"\n", receipt_at + 1)
            after = b"" if end < 0 else block[end:]
            self._last_with_receipt = (block[: receipt_at + len(_RECEIPT)], after, frame)
        return frame


def _skip_line_ends(data: bytes, position: int) -> int:
    """The first byte from ``position`` on that belongs to a frame. Raises FrameError for a CR without LF; a CR that is
    the last byte waits for more data.
    """
    after = position + 1
    size = len(data)
    if after < size and data[position] == _LF and data[after] > _CR:
        return after  # the usual case, without a search
    found = _LINE_ENDS.match(data, position)
    assert found is not None
    run = found[0]
    after = found.end()
    crs = run.count(_CR)
    if crs:
        if after == size and run[-1] == _CR:
            after -= 1
            crs -= 1
        if crs != run.count(_EOL):
            raise FrameError("A carriage return without a line feed between frames")
    return after


# ---- bodies ----------------------------------------------------------------------------------------------------------
#
# Those that arrive in parts: gathered in memory, or handed on to a file.


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
class _IncompleteFrame:
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
            raise _too_large(self._frame, rules.bytes_max)
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
                raise _no_nul(self._frame)
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


def _upload_large(frames: list[tuple[AnyFrame, bytes]], rules: BodyRules) -> None:
    """Move large bodies that arrived in one piece to files."""
    assert rules.upload is not None
    for place, (frame, body) in enumerate(frames):
        if len(body) >= rules.large_bytes_min and isinstance(frame, Send):
            upload = rules.upload(frame)
            upload.append(body)
            upload.end()
            frames[place] = LargeSend(frame, upload), b""


def _no_nul(frame: BodiedFrame) -> FrameError:
    """The error for a body that does not end where its content-length says."""
    reason = f"The byte after {frame.content_length} bytes of body is not NUL: content-length is wrong"
    return FrameError(reason, receipt_of(frame))


def _too_large(frame: BodiedFrame, limit: int) -> FrameError:
    """The error for a body over the acceptor's limit."""
    reason = f"Body too large: more than {limit} bytes (maxBodyBytes of the acceptor)"
    return FrameError(reason, receipt_of(frame), too_large=True)
