"""Output with large bodies in it, as fragmented messages."""

from __future__ import annotations

import asyncio
from codecs import getincrementaldecoder
from collections import deque
from typing import Final, final

from artemis_py.server.body_pieces import BodyPieces
from artemis_py.server.websocket.messages import LargeFrame, Messages
from artemis_py.stomp.wire.outbound import Part
from artemis_py.storage.bodies.store import LargeStore

_Utf8: Final = getincrementaldecoder("utf-8")


@final
class MessageOutflow:
    """Messages that wait behind one with a large body.

    The type of a message is said first, so for a client of text messages a body is read twice: once to learn whether it
    is valid UTF-8.
    """

    __slots__ = (
        "_has_begun", "_is_text", "_messages", "_moves", "_pieces", "_seen_moves", "_utf8", "_waiting", "is_paused",
        "waiting_bytes",
    )  # fmt: skip

    def __init__(self, messages: Messages, large: LargeStore, owner: object) -> None:
        self.is_paused = False
        """Does the socket accept nothing now?"""
        self.waiting_bytes = 0
        """Bytes that wait in memory."""
        self._messages = messages
        self._waiting: deque[bytes | LargeFrame] = deque()
        self._pieces = BodyPieces(large, owner)
        self._has_begun = False
        """Was the beginning of the first waiting message written?"""
        self._is_text: bool | None = None
        """Is that message a text? None if it is not known yet."""
        self._utf8 = _Utf8()
        self._moves = 0
        self._seen_moves = 0

    @property
    def failure(self) -> str | None:
        """Why a body cannot be read; the message already begun cannot be completed."""
        return self._pieces.failure

    @property
    def is_done(self) -> bool:
        """Has everything been handed to the socket?"""
        return not self._waiting

    def has_moved(self) -> bool:
        """Did the socket accept anything since the last call, or was a piece looked at?"""
        seen_moves, self._seen_moves = self._seen_moves, self._moves
        return self._moves > seen_moves

    def add(self, parts: list[Part]) -> None:
        """Add whole frames after those that already wait."""
        for message in self._messages.arrange(parts):
            self._waiting.append(message)
            self.waiting_bytes += _memory_bytes(message)

    def pump(self, transport: asyncio.Transport) -> int:
        """Write until the socket accepts no more or a piece must be read first; returns the number of bytes."""
        if self._messages.is_ended:  # the client has closed
            self._waiting.clear()
            self.waiting_bytes = 0
        written_bytes = 0
        while self._waiting and not self.is_paused:
            first = self._waiting[0]
            if isinstance(first, bytes):
                data: bytes | None = first
                self._drop_first()
            else:
                data = self._next(first)
            if data is None:
                break
            self._moves += 1
            written_bytes += len(data)
            if data:
                transport.write(data)
        return written_bytes

    def _next(self, frame: LargeFrame) -> bytes | None:
        """The next fragments of a message; none after a look at a piece; None if a piece must be read first."""
        messages, pieces = self._messages, self._pieces
        if not self._has_begun:
            if not messages.is_text:
                self._is_text = False
            elif self._is_text is None:
                return self._look(frame)
            self._has_begun = True
            return messages.fragments(frame.head, is_first=True, is_text=self._is_text is True)
        data = pieces.next(frame.body)
        if data is None:
            return None
        sent = messages.fragments(data)
        if pieces.is_at_start:
            sent += messages.fragments(frame.end, is_last=True)
            self._drop_first()
            self._has_begun = False
            self._is_text = None
        return sent

    def _look(self, frame: LargeFrame) -> bytes | None:
        """Learn from the next piece whether the message may be a text."""
        pieces, utf8 = self._pieces, self._utf8
        is_start = pieces.is_at_start
        data = pieces.next(frame.body)
        if data is None:
            return None
        try:
            if is_start:
                utf8.reset()
                utf8.decode(frame.head)
            utf8.decode(data, final=pieces.is_at_start)
        except UnicodeDecodeError:
            self._is_text = False
            pieces.rewind()
        else:
            if pieces.is_at_start:
                self._is_text = True
        return b""

    def _drop_first(self) -> None:
        self.waiting_bytes -= _memory_bytes(self._waiting.popleft())


def _memory_bytes(message: bytes | LargeFrame) -> int:
    return len(message) if isinstance(message, bytes) else len(message.head) + len(message.end)
