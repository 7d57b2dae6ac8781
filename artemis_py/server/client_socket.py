"""The socket of a STOMP client: reads, writes, flows of large bodies, and its end."""

from __future__ import annotations

import asyncio
from collections import deque
from os import readv
from select import poll
from time import perf_counter_ns
from typing import Final, Protocol, final

from artemis_py.log_codes import STORAGE
from artemis_py.message import LargeBody
from artemis_py.pending_output import Part
from artemis_py.server.proxy_protocol import Proxied
from artemis_py.server.transports import break_cycle
from artemis_py.stomp.session.session import Session
from artemis_py.storage.bodies import BodyReader, LargeStore
from artemis_py.terminal_output import warn

# ---- framing ---------------------------------------------------------------------------------------------------------
#
# What a connection needs of the protocol that carries its frames: nothing on a plain socket, WebSocket on others.


class Intake(Protocol):
    """Takes a connection's bytes and carries out the frames in them. A session is one, for a plain socket."""

    @property
    def has_more(self) -> bool:
        """Is there input that can be carried out and was not yet?"""

    @property
    def held_bytes(self) -> tuple[int, int, int]:
        """What is held in memory: of the input, of frames to be written, and of open transactions."""

    def receive(self, data: bytes, now_ms: int, stop_at: int = 0) -> None:
        """Take bytes, and carry out what the turn's budget allows down to ``stop_at``."""

    def go_on(self, now_ms: int, stop_at: int = 0) -> None:
        """Carry out what was received, until the budget is down to ``stop_at``."""


class Flow(Protocol):
    """Output that waits behind a large body being sent."""

    is_paused: bool
    waiting_bytes: int

    @property
    def failure(self) -> str | None:
        """Why a body cannot be read; the frame already begun cannot be completed."""

    @property
    def is_done(self) -> bool:
        """Has everything been handed to the socket?"""

    def has_moved(self) -> bool:
        """Is there progress since the last call?"""

    def add(self, parts: list[Part]) -> None:
        """Add parts after those that already wait."""

    def pump(self, transport: asyncio.Transport) -> int:
        """Write what the socket accepts; returns the number of bytes."""


class Framing(Protocol):
    """Wraps the output of a session."""

    def join(self, parts: list[Part]) -> bytes:
        """The bytes of whole STOMP frames. Raises TypeError if a large body is among them."""

    def flow(self, large: LargeStore, owner: object) -> Flow:
        """A flow for output with large bodies."""

    def farewell(self, code: int | None = None) -> bytes:
        """The last bytes to the client, once; later calls return none. ``code`` is a WebSocket close code; None: what
        the session's end suggests.
        """


# ---- outflow ---------------------------------------------------------------------------------------------------------
#
# A connection's output with large bodies in it: in order, and reading no more of a body than the client takes.


HIGH_BYTES: Final = 131072
"""How many bytes may wait in the socket's buffer before reading of pieces pauses."""


class Outflow:
    """Parts that wait behind a large body. ``owner`` learns when a piece of the body is ready."""

    __slots__ = ("_parts", "_pieces", "_seen_bytes", "_written_bytes", "is_paused", "waiting_bytes")

    def __init__(self, large: LargeStore, owner: object) -> None:
        self.is_paused = False
        """Does the socket accept nothing now?"""
        self.waiting_bytes = 0
        """Bytes that wait in memory."""
        self._parts: deque[Part] = deque()
        self._pieces = BodyReader(large, owner)
        self._written_bytes = 0
        self._seen_bytes = 0

    @property
    def failure(self) -> str | None:
        """Why the body cannot be read; the frame already begun cannot be completed."""
        return self._pieces.failure

    @property
    def is_done(self) -> bool:
        """Has everything been handed to the socket?"""
        return not self._parts

    def has_moved(self) -> bool:
        """Did the socket accept anything since the last call?"""
        seen_bytes, self._seen_bytes = self._seen_bytes, self._written_bytes
        return self._written_bytes > seen_bytes

    def add(self, parts: list[Part]) -> None:
        """Add parts after those that already wait."""
        self._parts.extend(parts)
        self.waiting_bytes += sum(len(part) for part in parts if not isinstance(part, LargeBody))

    def pump(self, transport: asyncio.Transport) -> int:
        """Write until the socket accepts no more or a piece must be read first; returns the number of bytes."""
        written_bytes = self._written_bytes
        while self._parts and not self.is_paused and self._write_next(transport):
            pass
        return self._written_bytes - written_bytes

    def _write_next(self, transport: asyncio.Transport) -> bool:
        """Write the parts before the next large body, or a piece of it; False if the piece must be read first."""
        first = self._parts[0]
        if not isinstance(first, LargeBody):
            self._write(transport, self._take_bytes())
            return True
        data = self._pieces.next(first)
        if data is None:
            return False
        if self._pieces.is_at_start:
            self._parts.popleft()
        self._write(transport, data)
        return True

    def _take_bytes(self) -> bytes:
        """The parts before the next large body."""
        taken: list[bytes] = []
        while self._parts:
            part = self._parts[0]
            if isinstance(part, LargeBody):
                break
            taken.append(part)
            self._parts.popleft()
        data = b"".join(taken)
        self.waiting_bytes -= len(data)
        return data

    def _write(self, transport: asyncio.Transport, data: bytes) -> None:
        self._written_bytes += len(data)
        transport.write(data)


# ---- client socket ---------------------------------------------------------------------------------------------------
#
# The socket of one STOMP client: reads, writes, and closes it after its last byte.


WRITE_HIGH_BYTES: Final = 262144
"""How many bytes may wait for a client to read before its consumers get no more messages."""
WRITE_LOW_BYTES: Final = 65536
LINGER_MS: Final = 2000
"""How long a closing connection waits for the client to read the last frames and close its side. Otherwise a reset
could lose the ERROR.
"""


@final
class ClientSocket:
    """Owns the transport, None before the client connects and after it is gone, and the flow of output."""

    __slots__ = (
        "_descriptor", "_is_plain", "_left_bytes", "flow", "framing", "linger_until_ms", "proxied", "reads",
        "transport", "writable",
    )  # fmt: skip

    def __init__(self, proxied: Proxied | None = None) -> None:
        self.proxied = proxied
        """Whose connection it is, if a proxy has handed it on."""
        self.transport: asyncio.Transport | None = None
        self.writable = True
        """Does the client read what it is sent?"""
        self.flow: Flow | None = None
        """Output that waits behind a large body being sent. Meanwhile no consumer gets more room."""
        self.framing: Framing | None = None
        """What wraps the session's frames; None if they go out as they are."""
        self.linger_until_ms = 0
        """The steady time until which the client may read the last frames; 0 while nothing is closed."""
        self._left_bytes = 0
        """Of the last frames, so much was not taken by the system when it was last looked at."""
        self._descriptor = -1
        """The socket; -1 before and after."""
        self._is_plain = True
        """Are the socket's bytes the client's own (no TLS)?"""
        self.reads = True
        """Is the client read?"""

    def set_up(self, transport: asyncio.Transport) -> None:
        """Find the descriptor, and whether there is TLS between it and the client."""
        sock = transport.get_extra_info("socket")
        if sock is not None:
            self._descriptor = sock.fileno()
            self._is_plain = transport.get_extra_info("sslcontext") is None

    @property
    def is_stalled(self) -> bool:
        """Does the client not read what it is sent?"""
        return not self.writable and (self.flow is None or self.flow.is_paused)

    @property
    def waiting_bytes(self) -> int:
        """Bytes written for the client that the system has not taken."""
        waiting_bytes = 0 if self.transport is None else self.transport.get_write_buffer_size()
        return waiting_bytes if self.flow is None else waiting_bytes + self.flow.waiting_bytes

    # ---- input -----------------------------------------------------------------------------------

    def let_read(self, *, reads: bool) -> None:
        """Read from the socket, or stop reading."""
        transport = self.transport
        if reads != self.reads and transport is not None and not transport.is_closing():
            self.reads = reads
            if reads:
                transport.resume_reading()
            else:
                transport.pause_reading()

    def receive(self, buffer: memoryview, wait_ns: int) -> int:
        """Poll for bytes for ``wait_ns`` nanoseconds, bypassing the event loop; returns how many arrived."""
        transport = self.transport
        if transport is None or self._descriptor < 0 or not self._is_plain or not transport.is_reading():
            return 0
        buffers = [buffer]
        until_ns = perf_counter_ns() + wait_ns
        while True:
            try:
                return readv(self._descriptor, buffers)
            except BlockingIOError:
                if perf_counter_ns() > until_ns:
                    return 0
            except OSError:
                return 0  # the event loop will notice the same

    def ask_whether_gone(self) -> None:
        """A socket that is not read does not report a dead connection: check it, and close if it is dead."""
        if self.transport is None or self._descriptor < 0:
            return
        state = poll()
        state.register(self._descriptor, 0)  # errors and the end of both directions are always reported
        if state.poll(0):
            self.transport.abort()

    # ---- output ----------------------------------------------------------------------------------

    def send(self, parts: list[Part], session: Session, large: LargeStore | None, now_ms: int) -> int:
        """Write parts of a session's frames, after the flow; returns how many bytes were handed over."""
        transport = self.transport
        if transport is None:
            return 0
        if self.flow is not None:
            return self._flow_on(self.flow, transport, parts, session)
        framing = self.framing
        try:
            data = b"".join(parts) if framing is None else framing.join(parts)  # type: ignore[arg-type]
        except TypeError:  # a large body is among them; checking each part beforehand would cost every frame
            assert large is not None
            return self._flow_on(self._begin_flow(transport, session, large), transport, parts, session)
        transport.write(data)
        if transport.get_write_buffer_size() > session.service.limits.unsent_bytes_max:
            self._give_up_on_unread(transport, session, now_ms)
        return len(data)

    def _begin_flow(self, transport: asyncio.Transport, session: Session, large: LargeStore) -> Flow:
        """From now on all output goes through the flow, a little at a time: many clients may be slow at once."""
        framing, owner = self.framing, session.state.owner
        flow = self.flow = Outflow(large, owner) if framing is None else framing.flow(large, owner)
        flow.is_paused = not self.writable
        self.writable = False
        transport.set_write_buffer_limits(HIGH_BYTES)
        return flow

    def _flow_on(self, flow: Flow, transport: asyncio.Transport, parts: list[Part], session: Session) -> int:
        """Send what the client accepts, and end the flow when it is empty."""
        flow.add(parts)
        sent_bytes = flow.pump(transport)
        if flow.failure is not None and not transport.is_closing():
            warn(
                f"warning: a large body cannot be read, its consumer's connection is closed: {flow.failure}",
                STORAGE,
                from_=session.state.address,
            )
            transport.abort()
        elif flow.is_done:
            self.flow = None
            self.linger_until_ms = 0
            transport.set_write_buffer_limits(WRITE_HIGH_BYTES, WRITE_LOW_BYTES)
            self.writable = not flow.is_paused
            if self.writable:
                session.subscriptions.make_room()
        elif flow.waiting_bytes > session.service.limits.unsent_bytes_max:
            transport.abort()  # an ERROR cannot be sent in the middle of a frame
        return sent_bytes

    def _give_up_on_unread(self, transport: asyncio.Transport, session: Session, now_ms: int) -> None:
        """The client does not read: send an ERROR after the waiting output, and give it the linger time to read."""
        limit = session.service.limits.unsent_bytes_max
        session.kick(
            f"Client reads too slowly: more than {limit} bytes wait for it (maxUnsentBytes of the acceptor)", now_ms
        )
        parts, framing = session.out.take(0), self.framing
        transport.write(b"".join(parts) if framing is None else framing.join(parts))  # type: ignore[arg-type]

    def pause(self) -> None:
        """The client does not read fast enough."""
        if self.flow is not None:
            self.flow.is_paused = True
        self.writable = False

    def resume(self) -> bool:
        """The client has read; True if its consumers may get more, which they may not during a flow."""
        if self.flow is not None:
            self.flow.is_paused = False
            return False
        self.writable = True
        return True

    # ---- the end ---------------------------------------------------------------------------------

    def say_goodbye(self, code: int | None = None) -> None:
        """Write what a protocol has to say at the end, unless a large body is being sent. ``code`` says why."""
        framing, transport = self.framing, self.transport
        if framing is not None and transport is not None and self.flow is None:
            farewell = framing.farewell(code)
            if farewell and not transport.is_closing():
                transport.write(farewell)

    def close(self, steady_ms: int, *, has_left: bool) -> bool:
        """Signal the end of output, and wait briefly for the client to close: closing at once could reset the
        connection. It waits for as long as the client keeps reading what was written before. ``has_left``: the client
        has closed its side. True if the socket waits from now on, until ``linger_until_ms``.
        """
        transport = self.transport
        if transport is None:
            return False
        self.say_goodbye()
        if has_left and self.flow is None:
            transport.close()
            return False
        if self.linger_until_ms:
            return False
        self.linger_until_ms = steady_ms + LINGER_MS
        self._left_bytes = transport.get_write_buffer_size()
        if self.flow is None:
            try:
                transport.write_eof()
            except OSError:  # the client has left first: with a reset, if it had not read everything
                transport.abort()
                return False
        return True

    def linger_on(self, transport: asyncio.Transport, steady_ms: int) -> bool:
        """The wait for the client is over: cut it off, unless it reads what there still is; then True, and it waits
        again.
        """
        if not self._has_read(transport):
            transport.abort()
            return False
        self.linger_until_ms = steady_ms + LINGER_MS
        return True

    def _has_read(self, transport: asyncio.Transport) -> bool:
        """Did the client take some of the last frames since they were looked at?"""
        before, self._left_bytes = self._left_bytes, transport.get_write_buffer_size()
        has_moved = self.flow is not None and self.flow.has_moved()
        return has_moved or self._left_bytes < before

    def forget(self) -> None:
        """The socket is gone or no longer used; may be called twice."""
        if self.transport is not None:
            break_cycle(self.transport)
        self.transport = None
        self._descriptor = -1
        self.flow = None
        self.framing = None
        self.writable = False
