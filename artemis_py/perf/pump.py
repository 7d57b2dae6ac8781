"""Moves the measured traffic: frames rendered before, one thread, one selector, large blocks out, counted blocks in."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.perf.link import Headers, Link, Target
from artemis_py.perf.result import Progress
from artemis_py.stomp.client import FrameReader, frame

# ---- frames ----------------------------------------------------------------------------------------------------------
#
# Frames rendered before the clock starts, and blocks of many of them. No two messages have the same body: a broker that
# notices equal ones would be measured at what nobody sends.


BLOCK_BYTES: Final = 64 * 1024
MARKER_BYTES_MAX: Final = 32
# Lower case without line ends: a body can never look like an ERROR frame.
ALPHABET: Final = b"abcdefghijklmnopqrstuvwxyz0123456789"
# What differs is `<number of the block>-<place in the block>`: one replace() per block makes all its frames unique.
BLOCK_NUMBER: Final = b"########"
NUMBER_BYTES: Final = len(BLOCK_NUMBER) + len("-000000")


def body_of(size: int) -> bytes:
    """A body of ``size`` bytes (1 or more) without NUL and line end."""
    return (ALPHABET * (size // len(ALPHABET) + 1))[:size]


def numbered(body: bytes, place: int) -> bytes:
    """The body with a placeholder for a number at its beginning. One of 15 bytes or fewer has no room, and stays as it
    is.
    """
    return body if len(body) <= NUMBER_BYTES else b"%b-%06d%b" % (BLOCK_NUMBER, place, body[NUMBER_BYTES:])


def end_of(body: bytes) -> bytes:
    """The end that all numbered bodies share."""
    return (body[NUMBER_BYTES:] or body)[-MARKER_BYTES_MAX:]


def marker_of(body: bytes) -> bytes:
    """The end of a frame with this body: what a counter looks for. A longer marker is found faster."""
    return end_of(body) + b"\0"


def send_headers(target: Target, destination: str, body: bytes) -> Headers:
    """The headers that each SEND of a scenario has."""
    return (("destination", destination), ("content-length", str(len(body))), *target.send_headers)


def send_frame(target: Target, destination: str, body: bytes) -> bytes:
    """A transient SEND."""
    return frame("SEND", send_headers(target, destination, body), body, target.version)


def unique_frame(target: Target, destination: str, body: bytes, place: int) -> bytes:
    """A SEND with a placeholder for the ``correlation-id``; all have the same length."""
    correlation = ("correlation-id", f"{BLOCK_NUMBER.decode()}-{place:06d}")
    return frame("SEND", (*send_headers(target, destination, body), correlation), body, target.version)


def blocks(rendered: Callable[[int], bytes], total: int, block_bytes: int = BLOCK_BYTES) -> Iterator[memoryview]:
    """``total`` frames in blocks of about ``block_bytes``; with 1, each for itself.

    ``rendered(place)`` is the frame at a place of a block, with ``BLOCK_NUMBER`` where the number of the block goes;
    all have the same length.
    """
    length = len(rendered(0))
    count = min(max(1, block_bytes // length), max(total, 1))
    template = b"".join(rendered(place) for place in range(count))
    for number, start in enumerate(range(0, total, count)):
        block = template.replace(BLOCK_NUMBER, b"%08d" % number)
        yield memoryview(block)[: min(count, total - start) * length]


# ---- counting --------------------------------------------------------------------------------------------------------
#
# Messages in a stream of bytes are counted without parsing it.


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


# ---- pumping ---------------------------------------------------------------------------------------------------------


POLL_S: Final = 0.25
BUFFER_START_MAX: Final = MARKER_BYTES_MAX + ERROR_SPAN
# A marker no broker sends: on a producer's connection only ERROR frames matter.
NOTHING: Final = b"\0\0"


class Sender:
    """A producer: writes blocks as fast as the broker reads them."""

    __slots__ = ("_block", "_blocks", "_burst", "counter", "link", "sent_bytes")

    def __init__(self, link: Link, blocks: Iterator[memoryview], burst: int = 1) -> None:
        """``burst`` blocks at most are sent per turn, each by a call of its own."""
        self.link = link
        self.counter = MarkerCounter(NOTHING)
        self.sent_bytes = 0
        self._blocks = blocks
        self._burst = burst
        self._block: memoryview | None = next(blocks, None)

    @property
    def done(self) -> bool:
        """Whether everything has been handed to the operating system."""
        return self._block is None

    def write(self) -> None:
        """Sends until the socket is full or the burst is over. Raises OSError when the connection is gone."""
        send = self.link.sock.send
        for _ in range(self._burst):
            block = self._block
            if block is None:
                return
            try:
                sent = send(block)
            except BlockingIOError:
                return
            self.sent_bytes += sent
            if sent < len(block):
                self._block = block[sent:]
                return
            self._block = next(self._blocks, None)


class Receiver:
    """A consumer: counts messages until ``expected`` have come."""

    __slots__ = ("counter", "expected", "link")

    def __init__(self, link: Link, marker: bytes, expected: int = 0) -> None:
        self.link = link
        self.counter = MarkerCounter(marker)
        self.expected = expected

    @property
    def done(self) -> bool:
        """Whether all expected messages have arrived."""
        return self.counter.count >= self.expected


class Pump:
    """Runs senders and receivers until everything is sent and has arrived.

    Raises PerfError for an ERROR frame, a closed connection, a stall, a wrong count, or when ``limit_s`` seconds are
    over; the text says how far it got. ``frame_bytes`` (length of one SEND) turns bytes sent into messages there.
    """

    def __init__(
        self,
        senders: Sequence[Sender],
        receivers: Sequence[Receiver],
        *,
        frame_bytes: int,
        limit_s: float,
        progress: Progress,
    ) -> None:
        self._senders = senders
        self._receivers = receivers
        self._frame_bytes = frame_bytes
        self._limit_s = limit_s
        self._progress = progress
        self._selector = selectors.DefaultSelector()
        self._buffer = bytearray(BUFFER_START_MAX + RECEIVE_BYTES)
        self._view = memoryview(self._buffer)
        self._wanted = sum(receiver.expected - receiver.counter.count for receiver in receivers)
        self._missing = self._wanted
        self._sending = sum(not sender.done for sender in senders)
        self._moves = 0

    def run(self) -> float:
        """Returns the seconds from the first send to the last arrival (to the last send if there are no receivers)."""
        ends: list[Sender | Receiver] = [*self._receivers, *self._senders]
        stall_s = ends[0].link.target.stall_s
        try:
            for end in ends:
                end.link.sock.setblocking(False)
            started = time.perf_counter()
            for receiver in self._receivers:
                self._selector.register(receiver.link.sock, selectors.EVENT_READ, receiver)
            for sender in self._senders:
                events = selectors.EVENT_READ if sender.done else selectors.EVENT_READ | selectors.EVENT_WRITE
                self._selector.register(sender.link.sock, events, sender)
            self._loop(started, stall_s)
            elapsed = time.perf_counter() - started
        finally:
            self._selector.close()
            for end in ends:
                end.link.sock.settimeout(stall_s)
        self._check_counts()
        return elapsed

    def _loop(self, started: float, stall_s: float) -> None:
        seen, seen_at = self._moves, started
        while self._missing > 0 or self._sending:
            for key, events in self._selector.select(POLL_S):
                if isinstance(key.data, Receiver):
                    self._on_receiver(key.data)
                else:
                    self._on_sender(key.data, events)
            now = time.perf_counter()
            if self._moves != seen:
                seen, seen_at = self._moves, now
            elif now - seen_at > stall_s:
                raise PerfError(f"stalled: no progress for {stall_s:g} s; {self._how_far()}")
            if now - started > self._limit_s:
                raise PerfError(f"not finished after {self._limit_s:g} s; {self._how_far()}")
            self._progress.show(self._how_far)

    def _on_receiver(self, receiver: Receiver) -> None:
        counter = receiver.counter
        size = self._receive(receiver.link, counter)
        if not size:
            return
        found = counter.feed(self._buffer, size)
        counter.raise_error()
        self._moves += 1
        self._missing -= found
        if found and receiver.done:
            receiver.link.give_back(counter.after_last(self._buffer, size))

    def _on_sender(self, sender: Sender, events: int) -> None:
        if events & selectors.EVENT_READ:
            size = self._receive(sender.link, sender.counter)
            if size:
                sender.counter.feed(self._buffer, size)
                sender.counter.raise_error()
        if events & selectors.EVENT_WRITE:
            before = sender.sent_bytes
            try:
                sender.write()
            except OSError:
                # The reason, if the broker gave one, waits to be read: the next turn finds it, or the stream's end.
                self._selector.modify(sender.link.sock, selectors.EVENT_READ, sender)
                return
            self._moves += sender.sent_bytes - before
            if sender.done:
                self._sending -= 1
                self._selector.modify(sender.link.sock, selectors.EVENT_READ, sender)

    def _receive(self, link: Link, counter: MarkerCounter) -> int:
        """Reads available bytes; 0 if there were none. Raises PerfError at the end of the stream."""
        start = counter.start
        try:
            size = link.sock.recv_into(self._view[start : start + RECEIVE_BYTES])
        except BlockingIOError:
            return 0
        except OSError as error:
            counter.raise_error(closed=True)
            raise PerfError(f"the broker broke the connection ({error.strerror}); {self._how_far()}") from error
        if not size:
            counter.raise_error(closed=True)
            raise PerfError(f"the broker closed the connection; {self._how_far()}")
        return size

    def _how_far(self) -> str:
        sent = sum(sender.sent_bytes for sender in self._senders) // self._frame_bytes
        parts = [f"sent {sent:,}"] if self._senders else []
        if self._receivers:
            parts.append(f"received {self._wanted - self._missing:,} of {self._wanted:,}")
        return ", ".join(parts)

    def _check_counts(self) -> None:
        for place, receiver in enumerate(self._receivers):
            if receiver.counter.count != receiver.expected:
                raise PerfError(
                    f"consumer {place} received {receiver.counter.count:,} messages instead of {receiver.expected:,}"
                )
