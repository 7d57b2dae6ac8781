"""One STOMP connection: moves bytes between its socket and a session when the turn says so."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final, cast, final

from artemis_py.security.login import CONNECTIONS, DEADLINE, EXPIRED
from artemis_py.server.client_socket import WRITE_HIGH_BYTES, WRITE_LOW_BYTES, ClientSocket
from artemis_py.server.logins.networks import ConnectionsBeforeLogin, network_of
from artemis_py.server.proxy_protocol import Proxied
from artemis_py.server.transports import CLIENT_CERTIFICATE, shown_address
from artemis_py.server.turn_client import LIGHT_BYTES, NOTHING, Client, Weight
from artemis_py.server.turns import Turns
from artemis_py.server.websocket.protocol_detection import ProtocolDetection
from artemis_py.server.websocket.rules import GOING_AWAY, INTERNAL, WebSocketRules
from artemis_py.stomp.service import StompService
from artemis_py.stomp.session.session import Session
from artemis_py.terminal_output import many

# ---- connection count ------------------------------------------------------------------------------------------------
#
# One connection counts as open at its acceptor, and until its login among those of its peer without a login.


@final
class ConnectionCount:
    """Counts one connection once, until it ends."""

    __slots__ = ("_acceptor", "_is_counted", "_network", "is_over_limit")

    def __init__(self, acceptor: StompAcceptor) -> None:
        self._acceptor = acceptor
        self._is_counted = False
        self._network: str | None = None
        """The peer whose connections without a login include this one; None if none does."""
        self.is_over_limit = False
        """Was the connection refused because its peer has too many without a login?"""

    def add(self, peer: str) -> str | None:
        """Count the connection of the IP address ``peer``, or return why it is refused."""
        refusal = self._acceptor.admit()
        if refusal is not None:
            return refusal
        self._is_counted = True
        before_login = self._acceptor.before_login
        if before_login.each_max < 0:
            return None
        network = network_of(peer)
        if not before_login.add(network):
            self.is_over_limit = True
            return self._acceptor.why_over_limit()
        self._network = network
        return None

    def logged_in(self) -> None:
        """It is no longer a connection without a login."""
        if self._network is not None:
            self._acceptor.before_login.forget(self._network)
            self._network = None

    def end(self) -> None:
        """The connection is gone; may be called twice."""
        self.logged_in()
        if self._is_counted:
            self._is_counted = False
            self._acceptor.forget()


# ---- connection ------------------------------------------------------------------------------------------------------
#
# One STOMP connection: moves bytes between its socket and a session when the turn says so.


INBOX_BYTES_MAX: Final = 65536
"""While this many bytes wait for the connection's turn, nothing more is read."""


@final
class StompAcceptor:
    """What the connections of one listening socket share."""

    def __init__(
        self,
        turns: Turns,
        service: StompService,
        connections_max: int,
        handshake_ms: int,
        before_login: ConnectionsBeforeLogin | None = None,
        web: WebSocketRules | None = None,
    ) -> None:
        self.turns = turns
        self.service = service
        self.connections_max = connections_max
        self.handshake_ms = handshake_ms
        self.before_login = before_login or ConnectionsBeforeLogin(-1)
        self.web = web or WebSocketRules()
        self.open_count = 0
        self.next_origin = turns.next_origin

    def admit(self) -> str | None:
        """Count one more connection, or return why it is refused."""
        refusal = self._why_full()
        if refusal is None:
            self.open_count += 1
        return refusal

    def forget(self) -> None:
        """A connection that was counted is gone."""
        self.open_count -= 1

    def _why_full(self) -> str | None:
        if 0 <= self.connections_max <= self.open_count:
            return (
                f"This acceptor allows {many(self.connections_max, 'connection')}: close others, or raise its "
                "connectionsAllowed"
            )
        holdings = self.turns.guard.holdings
        if not holdings.is_full:
            return None
        holdings.refused_count += 1
        return holdings.why_full("CONNECT")

    def why_over_limit(self) -> str:
        """Count a client whose peer has too many connections without a login; returns the text of its ERROR."""
        self.turns.stats.logins.refusals[CONNECTIONS] += 1
        return self.before_login.why_full

    def why_late(self, session: Session) -> str:
        """Count a client that has not logged in in time; returns the text of its ERROR."""
        self.turns.stats.logins.refusals[DEADLINE] += 1
        missed = "No CONNECT frame" if session.blocked_by is None else "The login was not decided"
        return f"{missed} within {self.handshake_ms} ms (handshakeTimeout of the acceptor)"

    def connect(self, proxied: Proxied | None = None) -> Connection:
        """Return the protocol of a socket just accepted, or handed on by a proxy."""
        return Connection(self, proxied)


@final
class Connection(Client):
    """Reads into the one shared buffer, keeps input for the turn, and writes what the session releases. It is the
    ``Client`` of the turns.
    """

    __slots__ = ("_acceptor", "_count", "_eof", "_inbox", "_is_held", "_turns")

    def __init__(self, acceptor: StompAcceptor, proxied: Proxied | None = None) -> None:
        self._acceptor = acceptor
        self._turns = acceptor.turns
        self._count = ConnectionCount(acceptor)
        self._inbox: bytes = b""
        self._is_held = False
        """Is it in the account of memory held for clients?"""
        self._eof = self.is_dirty = self.in_line = False
        self.credit = self.period = 0
        self.weight = NOTHING
        self.socket = ClientSocket(proxied)
        self.session = Session(acceptor.service, acceptor.next_origin(), acceptor.turns.clock_ms(), self)
        self.intake = ProtocolDetection(self, acceptor.web)

    # ---- called by the loop ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.socket.transport = cast(asyncio.Transport, transport)
        try:
            self._begin(self.socket.transport)
        except Exception as error:
            self._turns.isolation.fail(self, "accept", error)

    def _begin(self, transport: asyncio.Transport) -> None:
        turns = self._turns
        turns.stats.connections.add(self)
        turns.stats.connections_total += 1
        self._is_held = True
        transport.set_write_buffer_limits(WRITE_HIGH_BYTES, WRITE_LOW_BYTES)
        state, proxied = self.session.state, self.socket.proxied
        state.address = shown_address(transport.get_extra_info("peername")) if proxied is None else proxied.address
        state.certificate = transport.get_extra_info(CLIENT_CERTIFICATE)
        turns.connected(self)
        self.socket.set_up(transport)
        acceptor = self._acceptor
        now_ms = turns.clock_ms()
        refusal = self._count.add(state.peer)
        if refusal is not None:
            self._eof = self._count.is_over_limit  # no time to read the ERROR: such connections must not add up
            self.session.kick(refusal, now_ms)
            turns.output.mark_dirty(self)
        elif acceptor.handshake_ms > 0:
            turns.watches.add(self, turns.broker.clock.steady_ms(now_ms) + acceptor.handshake_ms)
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
                self.socket.let_read(reads=False)
            return
        self._inbox = data
        if not self.in_line:
            turns.input.scheduler.add(self)
        turns.arrived(self)

    def eof_received(self) -> bool:
        """The client closed its sending side; its frames are still processed and answered."""
        self._eof = True
        if not self.in_line:
            self._turns.input.scheduler.add(self)
        self._turns.schedule()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_socket()
        self._turns.input.lost.append(self)
        self._turns.schedule()

    def _forget_socket(self) -> None:
        """The socket is gone or no longer used; may be called twice."""
        self.socket.forget()
        self._count.end()
        self._turns.stats.connections.discard(self)

    def pause_writing(self) -> None:
        self.socket.pause()

    def resume_writing(self) -> None:
        if self.socket.resume():
            try:
                self.session.subscriptions.make_room()
            except Exception as error:
                self._turns.isolation.fail(self, "room", error)
        else:
            self._turns.output.mark_dirty(self)
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
        if session.blocked_by is not None and session.is_open:
            return "blocked"
        if self.socket.is_stalled:
            return "stalled"
        return "open" if session.is_open else "new"

    def poll(self, wait_ns: int) -> bool:
        """Poll the socket for ``wait_ns`` nanoseconds, bypassing the event loop; True if bytes arrived."""
        turns = self._turns
        count = self.socket.receive(turns.read_buffer, wait_ns)
        if count:
            self._inbox = bytes(turns.read_buffer[:count])
            turns.stats.bytes_in += count
            turns.input.scheduler.add(self)
        return count > 0

    def read(self, now_ms: int, stop_at: int) -> bool:
        """Let the session process input until the turn's budget is down to ``stop_at``; True if there is more.
        Meanwhile nothing is read from the socket.
        """
        data, self._inbox = self._inbox, b""
        turns, session, intake = self._turns, self.session, self.intake
        if session.is_closing:
            turns.output.mark_dirty(self)
            return False
        state = session.state
        was_open, was_blocked = session.is_open, state.blocked_by is not None
        if data:
            if intake is session:  # known to compiled code as a class, and asked directly
                session.receive(data, now_ms, stop_at)
            else:
                intake.receive(data, now_ms, stop_at)
        elif intake.has_more:
            session.heartbeat.note_alive(now_ms)
            intake.go_on(now_ms, stop_at)
        if not was_open and session.is_open:
            self._count.logged_in()
            self._watch_pulse(now_ms)
        awaited = state.blocked_by
        if awaited is not None and not was_blocked:
            turns.input.blocked.add(self, awaited)
        has_more = False
        if self.intake is not session or not session.is_at_rest:
            has_more = self.intake.has_more
            self.weigh()
        reads = awaited is None and not has_more
        if reads is not self.socket.reads:
            self.socket.let_read(reads=reads)
        turns.output.mark_dirty(self)
        return has_more

    def unblock(self, now_ms: int, stop_at: int) -> None:
        """Let a sender continue if what it waits for is ready."""
        turns, session = self._turns, self.session
        was_open = session.is_open
        session.unblock(now_ms, stop_at)
        if not was_open and session.is_open:
            self._count.logged_in()
            self._watch_pulse(now_ms)
        turns.output.mark_dirty(self)  # also if it waits again: what it has answered goes out
        if session.blocked_by is not None:
            turns.input.blocked.add(self, session.blocked_by)
        elif not self.intake.has_more:
            self.socket.let_read(reads=not self._inbox)
        elif not self.in_line:
            turns.input.scheduler.add(self)

    def weigh(self) -> None:
        """Measure what the broker holds for the connection, and report a change."""
        if not self._is_held:
            return
        before = self.weight
        input_bytes, output_bytes, kept_bytes = self.intake.held_bytes
        input_bytes += len(self._inbox)
        output_bytes += self.socket.waiting_bytes
        if input_bytes + output_bytes + kept_bytes <= LIGHT_BYTES:
            if before is NOTHING:
                return
            self.weight = NOTHING
        else:
            self.weight = Weight(input_bytes, output_bytes, kept_bytes)
        if self.weight != before:
            self._turns.guard.weighed(self, before, self.weight)

    def disconnect(self, reason: str, now_ms: int) -> None:
        """The broker needs the memory: end the session with an ERROR. A client that does not read will not see it."""
        if self.weight.output_bytes:
            self.session.kick(reason, now_ms)
            self.session.out.clear()
            self.cut()
            self.weigh()
        else:
            self.dismiss(reason, now_ms)

    def dismiss(self, reason: str, now_ms: int) -> None:
        """End the session with an ERROR, behind what is on its way: a client that reads it gets to the ERROR."""
        self.session.kick(reason, now_ms)
        self._turns.output.mark_dirty(self)
        self._turns.schedule()
        self.weigh()

    def flush(self, durable_lsn: int, now_ms: int) -> bool:
        self.is_dirty = False
        turns, session, socket = self._turns, self.session, self.socket
        transport = socket.transport
        if transport is None:
            return bool(session.out.segments)
        segments = session.out.segments
        parts = session.out.take(durable_lsn) if segments and segments[0][0] <= durable_lsn else []
        flow = socket.flow
        if parts or flow is not None:
            turns.stats.bytes_out += socket.send(parts, session, turns.large, now_ms)
            if flow is not None and socket.flow is None:  # the flow has ended, so consumers may get more
                turns.schedule()
        if (
            self.weight is not NOTHING
            or (session.out.segments and not session.out.is_light)
            or self.intake is not session
            or socket.flow is not None
            or transport.get_write_buffer_size()
        ):
            self.weigh()
        if self._eof or session.is_closing:
            self._end(now_ms)
        return len(session.out.segments) > 0

    def _end(self, now_ms: int) -> None:
        """The client sends no more, or the session is over: close once everything is written."""
        turns, session, socket = self._turns, self.session, self.socket
        if self._eof and not session.is_closing and session.blocked_by is None and not self.in_line:
            session.lost(now_ms)
        if not session.is_closing or session.out:
            return
        if socket.close(turns.broker.clock.steady_ms(now_ms), has_left=self._eof):
            turns.watches.add(self, socket.linger_until_ms)

    def _watch_pulse(self, now_ms: int) -> None:
        turns = self._turns
        due_ms = self.session.heartbeat.next_ms(now_ms, hears=self.session.blocked_by is None)
        if due_ms is None:
            turns.watches.forget(self)
        else:
            turns.watches.add(self, max(due_ms, turns.broker.clock.steady_ms(now_ms) + 1))

    def check(self, now_ms: int) -> None:
        """A watched time has come: heart-beats, a login that ends, a missing handshake, or the end of a linger."""
        turns, session, socket = self._turns, self.session, self.socket
        if socket.transport is None:
            return
        if socket.linger_until_ms:
            if socket.linger_on(socket.transport, turns.broker.clock.steady_ms(now_ms)):
                turns.watches.add(self, socket.linger_until_ms)
        elif session.is_open:
            if self.in_line:
                session.heartbeat.note_alive(now_ms)  # the input is not processed yet, but it has arrived
            session.beat(now_ms)
            self._watch_pulse(now_ms)
            if session.heartbeat.has_ended(now_ms):
                turns.stats.logins.refusals[EXPIRED] += 1
            turns.output.mark_dirty(self)
        elif not session.is_closing:
            session.kick(self._acceptor.why_late(session), now_ms)
            turns.output.mark_dirty(self)

    def lost(self, now_ms: int) -> None:
        """The socket is gone: the session ends, its output is dropped, and neither the session nor the turns refer to
        the connection any more. So reference counting alone frees it. May be called twice.
        """
        turns, session = self._turns, self.session
        turns.isolation.end_session(session, now_ms)
        session.out.clear()
        session.state.owner = None
        self.intake = session
        self._inbox = b""
        turns.forget(self)
        if self._is_held:
            self._is_held = False
            turns.disconnected(self)
            self.weight = NOTHING

    def fail(self, now_ms: int) -> None:
        """A step failed: the connection ends now and counts nowhere any more, whatever its socket does."""
        self.lost(now_ms)
        transport = self.socket.transport
        self._turns.isolation.end_socket(self.peer, partial(self.socket.say_goodbye, INTERNAL))
        self._forget_socket()
        if transport is not None:
            self._turns.isolation.end_socket(self.peer, transport.abort, transport.close)

    def shut(self, now_ms: int) -> None:
        """The broker stops: unsettled messages stay unsettled without counting an attempt, and the socket closes when
        all written bytes have left.
        """
        isolation = self._turns.isolation
        isolation.end_session(self.session, now_ms, failed=False)
        isolation.end_socket(self.peer, partial(self.socket.say_goodbye, GOING_AWAY))
        transport = self.socket.transport
        if transport is not None and not isolation.end_socket(self.peer, transport.close, transport.abort):
            self._forget_socket()

    def cut(self) -> None:
        """Close without waiting for unwritten output."""
        transport = self.socket.transport
        if transport is not None and not self._turns.isolation.end_socket(self.peer, transport.abort, transport.close):
            self._forget_socket()
