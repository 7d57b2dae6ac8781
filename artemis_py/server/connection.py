"""One STOMP socket: bytes between the loop and a session, at the times the turn says."""

from __future__ import annotations

import asyncio
import sys
from os import readv
from time import perf_counter_ns
from typing import Any, Final, cast

from artemis_py.server.outflow import HIGH_BYTES, Outflow
from artemis_py.server.turns import Turns
from artemis_py.stomp.outbound import Part
from artemis_py.stomp.service import StompService
from artemis_py.stomp.session import Session

WRITE_HIGH_BYTES: Final = 1048576
WRITE_LOW_BYTES: Final = 262144
LINGER_MS: Final = 2000
"""How long a closing connection waits for the client to read the last frames and close its side; else the ERROR
could be lost to a reset.
"""


class Acceptance:
    """What the connections of one listening socket share."""

    def __init__(self, turns: Turns, service: StompService, connections_max: int, handshake_ms: int) -> None:
        self.turns = turns
        self.service = service
        self.connections_max = connections_max
        self.handshake_ms = handshake_ms
        self.open_count = 0
        self.next_origin = turns.next_origin

    def connect(self) -> Connection:
        """A protocol for a socket just accepted."""
        return Connection(self)


class Connection(asyncio.BufferedProtocol):
    """Reads into the one shared buffer, keeps what came for the turn, and writes what the session lets go."""

    __slots__ = (
        "_acceptance",
        "_counted",
        "_descriptor",
        "_dirty",
        "_eof",
        "_flow",
        "_inbox",
        "_transport",
        "_turns",
        "_watch_ms",
        "linger_until_ms",
        "session",
        "writable",
    )

    def __init__(self, acceptance: Acceptance) -> None:
        self._acceptance = acceptance
        self._turns = acceptance.turns
        self._inbox: bytes = b""
        self._counted = False
        self._dirty = False
        self._eof = False
        self._descriptor = -1
        """The socket, where its bytes are the client's own; -1 otherwise."""
        self._flow: Outflow | None = None
        """What waits behind a large body that is being sent. Nobody is given room meanwhile."""
        self._transport: asyncio.Transport | None = None
        self.writable = True
        self.linger_until_ms = 0
        self._watch_ms = 0
        """The time at which the connection asked to be looked at; earlier wishes are void."""
        self.session = Session(acceptance.service, acceptance.next_origin(), acceptance.turns.clock_ms(), self)

    # ---- called by the loop ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(WRITE_HIGH_BYTES, WRITE_LOW_BYTES)
        self.session.peer = _shown_address(transport.get_extra_info("peername"))
        turns = self._turns
        sock = transport.get_extra_info("socket")
        if sock is not None and transport.get_extra_info("sslcontext") is None:
            self._descriptor = sock.fileno()
        acceptance = self._acceptance
        turns.stats.connections.add(self)
        turns.stats.connections_total += 1
        now_ms = turns.clock_ms()
        if 0 <= acceptance.connections_max <= acceptance.open_count:
            self.session.kick(f"This acceptor allows {acceptance.connections_max} connections", now_ms)
            self.mark_dirty()
            turns.schedule()
            return
        self._counted = True
        acceptance.open_count += 1
        if acceptance.handshake_ms > 0:
            self._watch(now_ms + acceptance.handshake_ms)
            turns.schedule()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._turns.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        turns = self._turns
        data = bytes(turns.read_buffer[:nbytes])
        turns.stats.bytes_in += nbytes
        if self._inbox:
            self._inbox += data
            return
        self._inbox = data
        turns.readable.append(self)
        turns.arrived(self)

    def poll(self, wait_ns: int) -> bool:
        """Look for bytes in the socket for ``wait_ns`` nanoseconds, past the event loop; True when some came."""
        transport = self._transport
        if transport is None or self._descriptor < 0 or not transport.is_reading():
            return False
        buffer = [self._turns.read_buffer]
        until_ns = perf_counter_ns() + wait_ns
        while True:
            try:
                count = readv(self._descriptor, buffer)
            except BlockingIOError:
                if perf_counter_ns() > until_ns:
                    return False
                continue
            except OSError:
                return False  # the loop will find it, too
            if count:
                turns = self._turns
                self._inbox = bytes(turns.read_buffer[:count])
                turns.stats.bytes_in += count
                turns.readable.append(self)
            return count > 0

    def eof_received(self) -> bool:
        """The client closed its sending side; what it sent is still carried out and answered."""
        self._eof = True
        if not self._inbox:
            self._turns.readable.append(self)
        self._turns.schedule()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        turns = self._turns
        self._transport = None
        self._descriptor = -1
        self._flow = None
        self.writable = False
        if self._counted:
            self._acceptance.open_count -= 1
        turns.stats.connections.discard(self)
        turns.lost.append(self)
        turns.schedule()

    def pause_writing(self) -> None:
        if self._flow is not None:
            self._flow.is_paused = True
        self.writable = False

    def resume_writing(self) -> None:
        if self._flow is not None:
            self._flow.is_paused = False
            self.mark_dirty()
        else:
            self.writable = True
            self.session.make_room()
        self._turns.schedule()

    # ---- called in a turn ------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """For the metrics: new, open, blocked, stalled or closing."""
        session = self.session
        if session.is_closing:
            return "closing"
        if session.blocked_by is not None:
            return "blocked"
        if not self.writable and (self._flow is None or self._flow.is_paused):
            return "stalled"
        return "open" if session.is_open else "new"

    def read(self, now_ms: int) -> None:
        """Give the session what arrived."""
        data, self._inbox = self._inbox, b""
        session = self.session
        if data and not session.is_closing:
            was_open = session.is_open
            session.receive(data, now_ms)
            if not was_open and session.is_open:
                self._watch_beats(now_ms)
            if session.blocked_by is not None:
                self._wait_for_room()
        self.mark_dirty()

    def _wait_for_room(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()
        self._turns.blocked.append(self)

    @property
    def may_go_on(self) -> bool:
        """Is what a blocked sender waits for there?"""
        awaited = self.session.blocked_by
        return awaited is None or awaited.may_go_on

    def unblock(self, now_ms: int) -> None:
        """Let a sender go on if what it waits for is there."""
        session = self.session
        session.unblock(now_ms)
        if session.blocked_by is not None:
            self._turns.blocked.append(self)
            return
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        self.mark_dirty()

    def mark_dirty(self) -> None:
        """Flush this connection at the end of the turn."""
        if not self._dirty:
            self._dirty = True
            self._turns.dirty.append(self)

    def flush(self, durable_lsn: int, now_ms: int) -> None:
        """Write what may leave, and close when the session is over and everything is written."""
        self._dirty = False
        transport = self._transport
        if transport is None:
            return
        session = self.session
        segments = session.out.segments
        parts = session.out.take(durable_lsn) if segments and segments[0][0] <= durable_lsn else []
        if self._flow is not None:
            self._flow_on(self._flow, transport, parts)
        elif parts:
            try:
                data = b"".join(parts)  # type: ignore[arg-type]
            except TypeError:  # a large body is among them; asking each part beforehand would cost every frame
                self._begin_flow(transport, parts)
            else:
                self._turns.stats.bytes_out += len(data)
                transport.write(data)
                if transport.get_write_buffer_size() > session.service.limits.unsent_bytes_max:
                    self._give_up_on_unread(now_ms)
        if self._eof or session.is_closing:
            self._end(now_ms)

    def _end(self, now_ms: int) -> None:
        """The client sends nothing more, or the session is over: close once everything is written."""
        session = self.session
        if self._eof and not session.is_closing and session.blocked_by is None:
            session.lost(now_ms)
        if session.is_closing and not session.out:
            self._close(now_ms)

    def _begin_flow(self, transport: asyncio.Transport, parts: list[Part]) -> None:
        """From here on everything goes through the flow, and little at a time: many clients may be slow at once."""
        assert self._turns.large is not None
        flow = self._flow = Outflow(self._turns.large, self)
        flow.is_paused = not self.writable
        self.writable = False
        transport.set_write_buffer_limits(HIGH_BYTES)
        self._flow_on(flow, transport, parts)

    def _flow_on(self, flow: Outflow, transport: asyncio.Transport, parts: list[Part]) -> None:
        """Send what the client takes, and end the flow when nothing is left of it."""
        flow.add(parts)
        self._turns.stats.bytes_out += flow.pump(transport)
        if flow.failure is not None and not transport.is_closing():
            print(f"warning: a large body cannot be read, its reader is cut off: {flow.failure}", file=sys.stderr)
            transport.abort()
        elif flow.is_done:
            self._flow = None
            self.linger_until_ms = 0
            transport.set_write_buffer_limits(WRITE_HIGH_BYTES, WRITE_LOW_BYTES)
            self.writable = not flow.is_paused
            if self.writable:
                self.session.make_room()
            self._turns.schedule()
        elif flow.waiting_bytes > self.session.service.limits.unsent_bytes_max:
            transport.abort()  # no ERROR can be told in the middle of a frame

    def _give_up_on_unread(self, now_ms: int) -> None:
        """The client does not read: it gets an ERROR behind what waits, and the linger time to take it."""
        self.session.kick(
            f"More than {self.session.service.limits.unsent_bytes_max} bytes wait for this client to read", now_ms
        )
        if self._transport is not None:
            self._transport.write(b"".join(self.session.flush(0)))  # type: ignore[arg-type]

    def _close(self, now_ms: int) -> None:
        """Say that no more comes, and wait a little for the client to close: closing at once could reset the
        connection. What flows still has its time, as long as the client takes some of it.
        """
        transport = self._transport
        if transport is None:
            return
        if self._eof and self._flow is None:
            transport.close()
            return
        if self.linger_until_ms:
            return
        self.linger_until_ms = now_ms + LINGER_MS
        if self._flow is None:
            transport.write_eof()
        self._watch(self.linger_until_ms)

    def _watch(self, due_ms: int) -> None:
        self._watch_ms = due_ms
        self._turns.watch(self, due_ms)

    def _watch_beats(self, now_ms: int) -> None:
        beat_ms = self.session.next_beat_ms()
        if beat_ms is None:
            self._watch_ms = 0
        else:
            self._watch(max(beat_ms, now_ms + 1))

    def look(self, due_ms: int, now_ms: int) -> None:
        """A watched time has come: heart-beats, a handshake that never came, a linger that is over."""
        transport = self._transport
        session = self.session
        if transport is None or due_ms != self._watch_ms:
            return
        if self.linger_until_ms:
            if self._flow is None or not self._flow.has_moved():
                transport.abort()
                return
            self.linger_until_ms = now_ms + LINGER_MS
            self._watch(self.linger_until_ms)
        elif session.is_open:
            session.beat(now_ms)
            self._watch_beats(now_ms)
            self.mark_dirty()
        elif not session.is_closing:
            session.kick(f"No CONNECT frame within {self._acceptance.handshake_ms} ms", now_ms)
            self.mark_dirty()

    def shut(self, now_ms: int) -> None:
        """The broker stops: what is unsettled stays unsettled and counts as no attempt, the socket closes."""
        self.session.lost(now_ms, failed=False)
        if self._transport is not None:
            self._transport.close()

    def cut(self) -> None:
        """Close without waiting for what is not written."""
        if self._transport is not None:
            self._transport.abort()


def _shown_address(peer: tuple[Any, ...] | None) -> str:
    """A socket's address as host:port; empty for none."""
    if not peer:
        return ""
    host, port = peer[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
