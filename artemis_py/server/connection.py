"""One STOMP socket: moves bytes between the event loop and a session when the turn says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from os import readv
from select import poll
from time import perf_counter_ns
from typing import Any, Final, cast

from artemis_py.errors import StorageError
from artemis_py.server.memory_guard import LIGHT_BYTES, NOTHING, Weight
from artemis_py.server.outflow import HIGH_BYTES, Outflow
from artemis_py.server.transports import break_cycle
from artemis_py.server.turns import Turns
from artemis_py.shown import warn
from artemis_py.stomp.service import StompService
from artemis_py.stomp.session.session import Session
from artemis_py.stomp.wire.outbound import Part

WRITE_HIGH_BYTES: Final = 262144
"""How many bytes may wait for a client to read before its consumers get no more messages."""
WRITE_LOW_BYTES: Final = 65536
INBOX_BYTES_MAX: Final = 65536
"""While this many bytes wait for the connection's turn, nothing more is read."""
LINGER_MS: Final = 2000
"""How long a closing connection waits for the client to read the last frames and close its side. Otherwise a reset
could lose the ERROR.
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

    def why_full(self) -> str | None:
        """Why one more connection is refused; None if it is not."""
        if 0 <= self.connections_max <= self.open_count:
            return (
                f"This acceptor allows {self.connections_max} connections: close others, or raise its "
                "connectionsAllowed"
            )
        holdings = self.turns.guard.holdings
        if not holdings.is_full:
            return None
        holdings.refused_count += 1
        return holdings.why_full("CONNECT")

    def connect(self) -> Connection:
        """Return the protocol of a socket just accepted."""
        return Connection(self)


class Connection(asyncio.BufferedProtocol):
    """Reads into the one shared buffer, keeps input for the turn, and writes what the session releases."""

    __slots__ = (
        "_acceptance",
        "_counted",
        "_descriptor",
        "_dirty",
        "_eof",
        "_flow",
        "_inbox",
        "_is_held",
        "_reads",
        "_transport",
        "_turns",
        "credit",
        "in_line",
        "linger_until_ms",
        "period",
        "session",
        "weight",
        "writable",
    )

    def __init__(self, acceptance: Acceptance) -> None:
        self._acceptance = acceptance
        self._turns = acceptance.turns
        self._inbox: bytes = b""
        self._counted = False
        self._is_held = False
        """Is it in the account of memory held for clients?"""
        self._dirty = False
        self._eof = False
        self._descriptor = -1
        """The socket, if its bytes are the client's own (no TLS); -1 otherwise."""
        self._flow: Outflow | None = None
        """Output that waits behind a large body being sent. Meanwhile no consumer gets more room."""
        self._transport: asyncio.Transport | None = None
        self._reads = True
        self.in_line = False
        """Does it wait for its turn, with input? ``credit`` and ``period`` belong to the rota."""
        self.credit = 0
        self.period = 0
        self.writable = True
        self.linger_until_ms = 0
        self.weight = NOTHING
        """What the broker held for it when it was last weighed."""
        self.session = Session(acceptance.service, acceptance.next_origin(), acceptance.turns.clock_ms(), self)

    # ---- called by the loop ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        try:
            self._begin(self._transport)
        except Exception as error:
            self._turns.cut_off(self, "accept", error)

    def _begin(self, transport: asyncio.Transport) -> None:
        turns = self._turns
        turns.stats.connections.add(self)
        turns.stats.connections_total += 1
        turns.guard.came()
        self._is_held = True
        transport.set_write_buffer_limits(WRITE_HIGH_BYTES, WRITE_LOW_BYTES)
        self.session.state.address = _shown_address(transport.get_extra_info("peername"))
        sock = transport.get_extra_info("socket")
        if sock is not None and transport.get_extra_info("sslcontext") is None:
            self._descriptor = sock.fileno()
        acceptance = self._acceptance
        now_ms = turns.clock_ms()
        refusal = acceptance.why_full()
        if refusal is not None:
            self.session.kick(refusal, now_ms)
            self.mark_dirty()
            turns.schedule()
            return
        self._counted = True
        acceptance.open_count += 1
        if acceptance.handshake_ms > 0:
            self._watch(turns.broker.clock.steady_ms(now_ms) + acceptance.handshake_ms)
            turns.schedule()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._turns.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        turns = self._turns
        data = bytes(turns.read_buffer[:nbytes])
        turns.stats.bytes_in += nbytes
        if self._inbox:
            self._inbox += data
            if len(self._inbox) >= INBOX_BYTES_MAX:
                self._let_read(reads=False)
            return
        self._inbox = data
        if not self.in_line:
            turns.rota.add(self)
        turns.arrived(self)

    def poll(self, wait_ns: int) -> bool:
        """Poll the socket for ``wait_ns`` nanoseconds, bypassing the event loop; True if bytes arrived."""
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
                turns.rota.add(self)
            return count > 0

    def eof_received(self) -> bool:
        """The client closed its sending side; its frames are still processed and answered."""
        self._eof = True
        if not self.in_line:
            self._turns.rota.add(self)
        self._turns.schedule()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_socket()
        self._turns.lost.append(self)
        self._turns.schedule()

    def _forget_socket(self) -> None:
        """The socket is gone or no longer used; may be called twice."""
        if self._transport is not None:
            break_cycle(self._transport)
        self._transport = None
        self._descriptor = -1
        self._flow = None
        self.writable = False
        if self._counted:
            self._counted = False
            self._acceptance.open_count -= 1
        self._turns.stats.connections.discard(self)

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
            try:
                self.session.subscriptions.make_room()
            except Exception as error:
                self._turns.cut_off(self, "room", error)
        self._turns.schedule()

    # ---- called in a turn ------------------------------------------------------------------------

    @property
    def peer(self) -> str:
        """The client's address as host:port; empty if unknown."""
        return self.session.state.address

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

    def read(self, now_ms: int, stop_at: int) -> bool:
        """Let the session process input until the turn's budget is down to ``stop_at``; True if there is more.
        Meanwhile nothing is read from the socket.
        """
        data, self._inbox = self._inbox, b""
        session = self.session
        if session.is_closing:
            self.mark_dirty()
            return False
        state = session.state
        was_open, was_blocked = session.is_open, state.blocked_by is not None
        if data:
            session.receive(data, now_ms, stop_at)
            if not was_open and session.is_open:
                self._watch_beats(now_ms)
        elif session.has_more:
            session.pulse.note_alive(now_ms)
            session.go_on(now_ms, stop_at)
        if state.blocked_by is not None and not was_blocked:
            self._turns.blocked.add(self, state.blocked_by)
        has_more = session.has_more
        self._let_read(reads=state.blocked_by is None and not has_more)
        self.mark_dirty()
        return has_more

    def _let_read(self, *, reads: bool) -> None:
        """Read from the socket, or stop reading."""
        transport = self._transport
        if reads != self._reads and transport is not None and not transport.is_closing():
            self._reads = reads
            if reads:
                transport.resume_reading()
            else:
                transport.pause_reading()

    def ask_whether_gone(self) -> None:
        """A socket that is not read does not report a dead connection: check it, and close if it is dead."""
        if self._transport is None or self._descriptor < 0:
            return
        state = poll()
        state.register(self._descriptor, 0)  # errors and the end of both directions are always told
        if state.poll(0):
            self._transport.abort()

    def unblock(self, now_ms: int, stop_at: int) -> None:
        """Let a sender continue if what it waits for is ready."""
        session = self.session
        session.unblock(now_ms, stop_at)
        if session.blocked_by is not None:
            self._turns.blocked.add(self, session.blocked_by)
            return
        if session.has_more:
            if not self.in_line:
                self._turns.rota.add(self)
        else:
            self._let_read(reads=not self._inbox)
        self.mark_dirty()

    def weigh(self) -> None:
        """Measure what the broker holds for the connection, and report a change."""
        if not self._is_held:
            return
        transport, flow, before = self._transport, self._flow, self.weight
        input_bytes, output_bytes, kept_bytes = self.session.held_bytes
        input_bytes += len(self._inbox)
        if transport is not None:
            output_bytes += transport.get_write_buffer_size()
        if flow is not None:
            output_bytes += flow.waiting_bytes
        if input_bytes + output_bytes + kept_bytes <= LIGHT_BYTES:
            if before is NOTHING:
                return
            self.weight = NOTHING
        else:
            self.weight = Weight(input_bytes, output_bytes, kept_bytes)
        if self.weight != before:
            self._turns.guard.weighed(self, before, self.weight)

    def cut_off(self, reason: str, now_ms: int) -> None:
        """The broker needs the memory: end the session with an ERROR. A client that does not read will not see it."""
        self.session.kick(reason, now_ms)
        if self.weight.output_bytes:
            self.session.out.clear()
            self.cut()
        else:
            self.mark_dirty()
            self._turns.schedule()
        self.weigh()

    def mark_dirty(self) -> None:
        """Flush this connection at the end of the turn."""
        if not self._dirty:
            self._dirty = True
            self._turns.dirty.append(self)

    def flush(self, durable_lsn: int, now_ms: int) -> None:
        """Write what is durable, and close when the session is over and everything is written."""
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
        self.weigh()
        if self._eof or session.is_closing:
            self._end(now_ms)

    def _end(self, now_ms: int) -> None:
        """The client sends no more, or the session is over: close once everything is written."""
        session = self.session
        if self._eof and not session.is_closing and session.blocked_by is None and not self.in_line:
            session.lost(now_ms)
        if session.is_closing and not session.out:
            self._close(now_ms)

    def _begin_flow(self, transport: asyncio.Transport, parts: list[Part]) -> None:
        """From now on all output goes through the flow, a little at a time: many clients may be slow at once."""
        assert self._turns.large is not None
        flow = self._flow = Outflow(self._turns.large, self)
        flow.is_paused = not self.writable
        self.writable = False
        transport.set_write_buffer_limits(HIGH_BYTES)
        self._flow_on(flow, transport, parts)

    def _flow_on(self, flow: Outflow, transport: asyncio.Transport, parts: list[Part]) -> None:
        """Send what the client accepts, and end the flow when it is empty."""
        flow.add(parts)
        self._turns.stats.bytes_out += flow.pump(transport)
        if flow.failure is not None and not transport.is_closing():
            warn(f"warning: a large body cannot be read, its consumer's connection is closed: {flow.failure}")
            transport.abort()
        elif flow.is_done:
            self._flow = None
            self.linger_until_ms = 0
            transport.set_write_buffer_limits(WRITE_HIGH_BYTES, WRITE_LOW_BYTES)
            self.writable = not flow.is_paused
            if self.writable:
                self.session.subscriptions.make_room()
            self._turns.schedule()
        elif flow.waiting_bytes > self.session.service.limits.unsent_bytes_max:
            transport.abort()  # no ERROR can be told in the middle of a frame

    def _give_up_on_unread(self, now_ms: int) -> None:
        """The client does not read: send an ERROR after the waiting output, and give it the linger time to read."""
        limit = self.session.service.limits.unsent_bytes_max
        reason = f"Client reads too slowly: more than {limit} bytes wait for it (maxUnsentBytes of the acceptor)"
        self.session.kick(reason, now_ms)
        if self._transport is not None:
            self._transport.write(b"".join(self.session.out.take(0)))  # type: ignore[arg-type]

    def _close(self, now_ms: int) -> None:
        """Signal the end of output, and wait briefly for the client to close: closing at once could reset the
        connection. A flow still continues as long as the client keeps reading.
        """
        transport = self._transport
        if transport is None:
            return
        if self._eof and self._flow is None:
            transport.close()
            return
        if self.linger_until_ms:
            return
        self.linger_until_ms = self._turns.broker.clock.steady_ms(now_ms) + LINGER_MS
        if self._flow is None:
            try:
                transport.write_eof()
            except OSError:  # the client has gone before: with a reset, if it had not read everything
                transport.abort()
                return
        self._watch(self.linger_until_ms)

    def _watch(self, due_ms: int) -> None:
        self._turns.watches.add(self, due_ms)

    def _watch_beats(self, now_ms: int) -> None:
        beat_ms = self.session.next_beat_ms()
        if beat_ms is None:
            self._turns.watches.forget(self)
        else:
            self._watch(max(beat_ms, self._turns.broker.clock.steady_ms(now_ms) + 1))

    def look(self, now_ms: int) -> None:
        """A watched time has come: heart-beats, a missing handshake, or the end of a linger."""
        transport = self._transport
        session = self.session
        if transport is None:
            return
        if self.linger_until_ms:
            if self._flow is None or not self._flow.has_moved():
                transport.abort()
                return
            self.linger_until_ms = self._turns.broker.clock.steady_ms(now_ms) + LINGER_MS
            self._watch(self.linger_until_ms)
        elif session.is_open:
            if self.in_line:
                session.pulse.note_alive(now_ms)  # what came is not carried out yet, but came
            session.beat(now_ms)
            self._watch_beats(now_ms)
            self.mark_dirty()
        elif not session.is_closing:
            limit_ms = self._acceptance.handshake_ms
            session.kick(f"No CONNECT frame within {limit_ms} ms (handshakeTimeout of the acceptor)", now_ms)
            self.mark_dirty()

    def leave(self, now_ms: int, *, failed: bool = True) -> None:
        """The client is gone: the session ends, even if a step of that fails; see ``Session.lost``."""
        try:
            self.session.lost(now_ms, failed=failed)
        except StorageError:
            raise
        except Exception as error:
            self._turns.stats.faults.note(self.peer, "lost", error)
            self._turns.broker.step_broke_off(now_ms)

    def lost(self, now_ms: int) -> None:
        """The socket is gone: the session ends, its output is dropped, and neither the session nor the turns refer to
        the connection any more. May be called twice.
        """
        self.leave(now_ms)
        turns, session = self._turns, self.session
        session.out.clear()
        session.state.owner = None
        self._inbox = b""
        turns.waiting.discard(self)
        turns.blocked.discard(self)
        turns.watches.forget(self)
        if self._is_held:
            self._is_held = False
            turns.guard.went(self)
            self.weight = NOTHING

    def fail(self, now_ms: int) -> None:
        """A step failed: the connection ends now and counts nowhere any more, whatever its socket does."""
        self.lost(now_ms)
        transport = self._transport
        self._forget_socket()
        if transport is not None:
            self._end_socket(transport.abort, transport.close)

    def shut(self, now_ms: int) -> None:
        """The broker stops: unsettled messages stay unsettled without counting an attempt, and the socket closes when
        all written bytes have left.
        """
        self.leave(now_ms, failed=False)
        if self._transport is not None:
            self._end_socket(self._transport.close, self._transport.abort)

    def cut(self) -> None:
        """Close without waiting for unwritten output."""
        transport = self._transport
        if transport is not None:
            self._end_socket(transport.abort, transport.close)

    def _end_socket(self, *ways: Callable[[], None]) -> None:
        """Close the socket by the first of these ways that works."""
        for way in ways:
            try:
                way()
                return
            except Exception as error:
                self._turns.stats.faults.note(self.peer, "end", error)
        self._forget_socket()


def _shown_address(peer: tuple[Any, ...] | None) -> str:
    """A socket's address as host:port; empty for None."""
    if not peer:
        return ""
    host, port = peer[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
