"""The socket of one STOMP client: reads, writes, and closes it after its last byte."""

from __future__ import annotations

import asyncio
from os import readv
from select import poll
from time import perf_counter_ns
from typing import Final, final

from artemis_py.log_codes import STORAGE
from artemis_py.server.framing import Flow, Framing
from artemis_py.server.outflow import HIGH_BYTES, Outflow
from artemis_py.server.transports import break_cycle
from artemis_py.shown import warn
from artemis_py.stomp.session.session import Session
from artemis_py.stomp.wire.outbound import Part
from artemis_py.storage.bodies.store import LargeStore

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

    __slots__ = ("_descriptor", "_is_plain", "flow", "framing", "linger_until_ms", "reads", "transport", "writable")

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.writable = True
        """Does the client read what it is sent?"""
        self.flow: Flow | None = None
        """Output that waits behind a large body being sent. Meanwhile no consumer gets more room."""
        self.framing: Framing | None = None
        """What wraps the session's frames; None if they go out as they are."""
        self.linger_until_ms = 0
        """The steady time until which the client may read the last frames; 0 while nothing is closed."""
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
        connection. A flow still continues as long as the client keeps reading. ``has_left``: the client has closed its
        side. True if the socket waits from now on, until ``linger_until_ms``.
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
        if self.flow is None:
            try:
                transport.write_eof()
            except OSError:  # the client has left first: with a reset, if it had not read everything
                transport.abort()
                return False
        return True

    def linger_on(self, transport: asyncio.Transport, steady_ms: int) -> bool:
        """The wait for the client is over: cut it off, unless it reads the flow; then True, and it waits again."""
        if self.flow is None or not self.flow.has_moved():
            transport.abort()
            return False
        self.linger_until_ms = steady_ms + LINGER_MS
        return True

    def forget(self) -> None:
        """The socket is gone or no longer used; may be called twice."""
        if self.transport is not None:
            break_cycle(self.transport)
        self.transport = None
        self._descriptor = -1
        self.flow = None
        self.framing = None
        self.writable = False
