"""One client's WebSocket between its socket and its session."""

from __future__ import annotations

import asyncio
from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.server.body_pieces import PIECE_BYTES
from artemis_py.server.client import Client
from artemis_py.server.client_socket import WRITE_HIGH_BYTES
from artemis_py.server.framing import Flow
from artemis_py.server.websocket.codes import INVALID, NORMAL, POLICY, TOO_BIG
from artemis_py.server.websocket.handshake import Handshake
from artemis_py.server.websocket.inbound import Inbound
from artemis_py.server.websocket.messages import Messages, close_frame, echoed_close, pong_frame
from artemis_py.server.websocket.outflow import MessageOutflow
from artemis_py.server.websocket.rules import WebSocketRules
from artemis_py.stomp.session.session import Session
from artemis_py.stomp.wire.outbound import Part
from artemis_py.storage.bodies.store import LargeStore

HANDSHAKE_UNITS: Final = 200
"""What answering the request costs of a turn's budget."""
PAYLOAD_BYTES: Final = 16384
"""How much payload is gathered before the session gets it."""
PONG_BYTES_MAX: Final = WRITE_HIGH_BYTES + PIECE_BYTES
"""With more waiting for the client, a PING is not answered: a client must not pile up answers."""
PING_MS: Final = 30_000
"""How often a client without heart-beats gets a PING: proxies close what is silent for a minute."""


@final
class WebSocket:
    """Takes what the client sends, and wraps what it gets. It begins with the handshake.

    CLOSE counts as the end of the client's sending side. Until somebody takes the session's output, nothing is written
    but the answer to the handshake, PONG and the answer to CLOSE.
    """

    __slots__ = ("_budget", "_client", "_handshake", "_inbound", "_messages", "_rules")

    def __init__(self, client: Client, rules: WebSocketRules) -> None:
        self._client = client
        self._rules = rules
        self._budget: Budget = client.session.service.broker.budget
        self._handshake: Handshake | None = Handshake(rules)
        self._inbound: Inbound | None = None
        self._messages: Messages | None = None
        """None before the handshake, and for good if the client was turned away."""

    # ---- input -----------------------------------------------------------------------------------

    @property
    def has_more(self) -> bool:
        """Is there input that can be carried out and was not yet?"""
        session, inbound = self._client.session, self._inbound
        if session.has_more:
            return True
        if inbound is None or session.blocked_by is not None or session.is_closing:
            return False
        return inbound.has_more or inbound.code > 0

    @property
    def held_bytes(self) -> tuple[int, int, int]:
        """What is held in memory: of the input, of frames to be written, and of open transactions."""
        input_bytes, output_bytes, kept_bytes = self._client.session.held_bytes
        if self._inbound is not None:
            input_bytes += self._inbound.held_bytes
        elif self._handshake is not None:
            input_bytes += self._handshake.held_bytes
        return input_bytes, output_bytes, kept_bytes

    def receive(self, data: bytes, now_ms: int, stop_at: int = 0) -> None:
        """Take bytes, and carry out what the turn's budget allows down to ``stop_at``; at least a little."""
        if self._handshake is not None:
            data = self._shake_hands(self._handshake, data, now_ms)
        if self._inbound is not None:
            self._inbound.add(data)
            self.go_on(now_ms, stop_at)

    def go_on(self, now_ms: int, stop_at: int = 0) -> None:
        """Carry out what was received, until the budget is down to ``stop_at``."""
        session, inbound, budget = self._client.session, self._inbound, self._budget
        session.pulse.note_alive(now_ms)  # frames without payload, too, show that the client lives
        if session.has_more:
            session.go_on(now_ms, stop_at)
        if inbound is None:
            return
        while inbound.has_more and session.blocked_by is None and not session.has_more and not session.is_closing:
            payload = self._read(inbound, budget, stop_at)
            if payload:
                self._hand_on(session, inbound, payload, now_ms, stop_at)
            if budget.left <= stop_at:
                break
        self._answer(session, inbound, now_ms)

    def _read(self, inbound: Inbound, budget: Budget, stop_at: int) -> bytes:
        """The next payload: enough of it that frames of STOMP are carried out together, if the budget allows."""
        gathered: list[bytes] = []
        gathered_bytes = 0
        while inbound.has_more and gathered_bytes < PAYLOAD_BYTES:
            payload = inbound.read()
            budget.spend(inbound.units)
            inbound.units = 0
            gathered.append(payload)
            gathered_bytes += len(payload)
            if budget.left <= stop_at:
                break
        return b"".join(gathered)

    def _shake_hands(self, handshake: Handshake, data: bytes, now_ms: int) -> bytes:
        """Take bytes of the request; returns those behind it."""
        rest = handshake.take(data)
        if not handshake.response:
            return b""
        self._budget.spend(HANDSHAKE_UNITS)
        self._handshake = None
        self._write(handshake.response)
        if handshake.protocol is None:
            self._client.session.lost(now_ms)
            return b""
        self._client.session.pulse.ping_ms = PING_MS
        self._inbound = Inbound(handshake.protocol, self._rules.frame_bytes_max)
        self._messages = Messages(self._rules.frame_bytes_max, handshake.protocol.extensions)
        if self._rules.is_text is not None:
            self._messages.is_text = self._rules.is_text
        return rest

    def _hand_on(self, session: Session, inbound: Inbound, payload: bytes, now_ms: int, stop_at: int) -> None:
        if not session.is_open and self._rules.is_text is None and self._messages is not None:
            self._messages.is_text = inbound.is_text is not False
        session.receive(payload, now_ms, stop_at)

    def _answer(self, session: Session, inbound: Inbound, now_ms: int) -> None:
        """React to the frames that are not for the session."""
        if inbound.close is not None:
            if self._messages is not None and not self._messages.is_ended:
                self._write(echoed_close(inbound.close))
                self._messages.is_ended = True
                self._client.eof_received()
        elif inbound.code:
            if session.has_more or session.blocked_by is not None:
                return  # what came before is carried out first
            session.kick(inbound.reason, now_ms)
        elif inbound.pong is not None:
            self._write(pong_frame(inbound.pong), is_needed=False)
            inbound.pong = None

    # ---- output ----------------------------------------------------------------------------------

    def _write(self, data: bytes, *, is_needed: bool = True) -> None:
        """Write between messages, or between the fragments of one: a client that reads nothing gets only what it
        needs.
        """
        transport: asyncio.Transport | None = self._client.socket.transport
        if transport is None or (self._messages is not None and self._messages.is_ended):
            return
        if is_needed or transport.get_write_buffer_size() < PONG_BYTES_MAX:
            transport.write(data)

    def join(self, parts: list[Part]) -> bytes:
        """The bytes of whole STOMP frames. Raises TypeError if a large body is among them."""
        if self._messages is not None:
            self._messages.pings = self._client.session.pulse.pings
            return self._messages.join(parts)
        handshake, self._handshake = self._handshake, None
        if handshake is None:
            return b""
        handshake.give_up("The request did not come to its end")
        return handshake.response

    def flow(self, large: LargeStore, owner: object) -> Flow:
        """A flow for output with large bodies."""
        assert self._messages is not None  # only a session that was greeted gets any
        return MessageOutflow(self._messages, large, owner)

    def farewell(self, code: int | None = None) -> bytes:
        """CLOSE, once. ``code`` None: what the end of the session suggests."""
        messages = self._messages
        if messages is None or messages.is_ended:
            return b""
        messages.is_ended = True
        reason = ""
        if code is None:
            reason = _message_of(messages.error)
            code = self._code(self._client.session, is_error=bool(reason))
        return close_frame(code, reason)

    def _code(self, session: Session, *, is_error: bool) -> int:
        if self._inbound is not None and self._inbound.code:
            return self._inbound.code
        unreadable = session.unreadable
        if unreadable is not None:
            return TOO_BIG if unreadable.too_large else INVALID
        return POLICY if is_error else NORMAL


def _message_of(error: bytes) -> str:
    """What an ERROR frame says; empty if there is none."""
    return error.partition(b"\n\n")[2].rstrip(b"\0\n").decode()
