"""One connection of a bridge to another broker, from the socket to the last RECEIPT.

For the turns it is a client with one consumer: what the consumer gets becomes SEND frames, and a RECEIPT acknowledges
the message here. So nothing leaves the queue that the other broker has not confirmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, cast, final
from urllib.parse import quote

from artemis_py.config.checks.bridges import why_not
from artemis_py.config.settings import BridgeConfig
from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer, Reader
from artemis_py.core.dead_letters import BRIDGE_LOOP, RETRIED_HEADER, dead_letter_address_of, retried_count
from artemis_py.core.order.entry import NACKED, Entry
from artemis_py.core.publish.copies import HOPS_HEADER
from artemis_py.core.queue.queue import Queue
from artemis_py.core.recurrence import DELAY, SCHEDULED, TIME
from artemis_py.core.recurrence import NAMES as RECURRENCE_NAMES
from artemis_py.errors import ArtemisError, BrokerError, StompError
from artemis_py.message import Head, HeaderName, LargeBody, Message, encode_headers
from artemis_py.pending_output import Part, PendingOutput
from artemis_py.selector import compile_selector
from artemis_py.server.client_socket import (
    HIGH_BYTES,
    WRITE_HIGH_BYTES,
    WRITE_LOW_BYTES,
    ClientSocket,
    Outflow,
)
from artemis_py.server.turn_client import Recipient
from artemis_py.server.turns import Turns
from artemis_py.stomp.client import HEART_BEAT, Client, ServerFrame
from artemis_py.stomp.service import TURN_BYTES_MAX
from artemis_py.stomp.session.subscribe import INDIVIDUAL
from artemis_py.stomp.wire.writer import END

UNCONFIRMED_MAX: Final = 2_000
"""How many messages may be on the way, however small they are."""
FRAMES_PER_TURN: Final = 500
PARTIAL_BYTES_MAX: Final = 1 << 20
"""No frame that answers a SEND is longer."""
_TEXT_MAX: Final = 300
_AT_ONCE: Final = 0
_VERSION: Final = "1.2"
_DIGITS_MAX: Final = 20


def _is_number(receipt: str) -> bool:
    """Is it one that a bridge may have asked for?"""
    return receipt.isascii() and receipt.isdigit() and len(receipt) <= _DIGITS_MAX


def find_queue(broker: Broker, config: BridgeConfig) -> Queue:
    """The queue that a bridge forwards. Raises BrokerError where it cannot."""
    queue = broker.queues.get(config.queue_name.rpartition("::")[2])
    if queue is None:
        raise BrokerError(f"queue {config.queue_name} does not exist; create it")
    why = why_not(queue.own)
    if why:
        raise BrokerError(f"queue {config.queue_name} {why}")
    return queue


@final
@dataclass(frozen=True, slots=True)
class End:
    """Why a connection has ended. ``was_open``: it had logged in. ``refused``: the message that the other broker has
    refused; 0: none. ``stays``: a message that was refused, or goes in a loop, did not count as failed, because the
    queue has no dead-letter address. ``suspects``: how many were on the way when it refused one and did not say which;
    they go one by one. ``suspected``: the first message on the way when the other broker last closed a connection; 0:
    none. ``is_orderly``: the bridge was stopped.
    """

    reason: str
    was_open: bool
    refused: int = 0
    suspects: int = 0
    suspected: int = 0
    stays: bool = False
    is_orderly: bool = False


@final
@dataclass(frozen=True, slots=True)
class Login:
    """What CONNECT says. No ``repr`` has the password."""

    host: str
    user: str | None
    password: str | None
    client_id: str | None

    def __repr__(self) -> str:
        return f"Login({self.host!r}, {self.user!r})"


@final
class BridgeConnection(Recipient):
    """``place`` names the other broker in errors. ``suspects``: so many messages go one by one, because one of them was
    refused without a name; ``suspected``: the message over which the connection before may have been closed.
    ``connect_ms``: how long a login may take.

    ``on_open``, ``on_confirmed`` (with how many messages), ``on_loop`` (with the numbers of messages that came back,
    and what becomes of them) and ``on_end`` are called in turns, the last one once.
    """

    def __init__(  # noqa: PLR0913 - all but the first five are named where they are given
        self,
        turns: Turns,
        config: BridgeConfig,
        login: Login,
        place: str,
        log_id: str,
        *,
        connect_ms: int,
        suspects: int,
        suspected: int,
        on_open: Callable[[BridgeConnection], None],
        on_confirmed: Callable[[int], None],
        on_loop: Callable[[list[int], str], None],
        on_end: Callable[[BridgeConnection, End], None],
    ) -> None:
        self.socket = ClientSocket()
        self.is_dirty = False
        self.is_closing = False
        """Is it over?"""
        self.consumer: Consumer | None = None
        """None until the login, and when it is over."""
        self._turns = turns
        self._config = config
        self._login = login
        self._place = place
        self._log_id = log_id
        self._connect_ms = connect_ms
        self._suspects = suspects
        self._suspected = suspected
        self._on_open = on_open
        self._on_confirmed = on_confirmed
        self._on_loop = on_loop
        self._on_end = on_end
        self._origin = turns.next_origin()
        sends_ms = config.connection_ttl // 2 if config.connection_ttl > 0 else 0
        self._client = Client((_VERSION,), (sends_ms, max(config.check_period, 0)))
        self._out = PendingOutput()
        self._queue: Queue | None = None
        self._writer: _SendWriter | None = None
        self._looping: list[Entry] = []
        """What the consumer got and was not written, because this bridge has forwarded it before."""
        self._lost_because = ""
        self._was_closed = False
        """Has the other broker closed the connection? Otherwise, if it is lost, the network is to blame."""
        self._partial_bytes = 0
        self._has_heard = True
        self._heard_ms = self._sent_ms = 0
        self._login_until_ms = 0
        self._stops_until_ms = -1
        """Until when it waits for what is not confirmed, in steady ms; -1: it is not to stop."""

    @property
    def peer(self) -> str:
        return self._place

    @property
    def origin(self) -> int:
        return self._origin

    @property
    def is_open(self) -> bool:
        """Has it logged in, and is not over?"""
        return self.consumer is not None

    @property
    def is_made(self) -> bool:
        """Is there a connection: with TLS, is the handshake done?"""
        return self.socket.transport is not None

    @property
    def unconfirmed_count(self) -> int:
        """How many messages are on the way."""
        return 0 if self.consumer is None else len(self.consumer.held)

    # ---- called by the loop ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.socket.transport = made = cast(asyncio.Transport, transport)
        made.set_write_buffer_limits(WRITE_HIGH_BYTES, WRITE_LOW_BYTES)
        self._sent_ms = self._heard_ms = now_ms = self._turns.broker.clock.steady_ms(self._turns.clock_ms())
        self._login_until_ms = now_ms + self._connect_ms
        login = self._login
        more = [("client-id", login.client_id)] if login.client_id is not None else []
        try:
            made.write(self._client.connect(login.host, login.user, login.password, more))
        except StompError as error:
            self._lost_because = str(error)
        self._wake()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._turns.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._client.feed(bytes(self._turns.read_buffer[:nbytes]))
        self._partial_bytes += nbytes
        self._has_heard = True
        if self._partial_bytes >= PARTIAL_BYTES_MAX:
            self.socket.let_read(reads=False)
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.is_closing:
            self._was_closed = exc is None or isinstance(exc, ConnectionError)
            reason = getattr(exc, "strerror", None) or str(exc or "")
            self._lost_because = (
                f"the connection is lost: {reason}" if reason else "the other broker has closed the connection"
            )
            self._wake()

    def pause_writing(self) -> None:
        self.socket.pause()

    def resume_writing(self) -> None:
        if self.socket.resume():
            self._make_room()
        else:
            self._turns.output.mark_dirty(self)
        self._turns.schedule()

    def _wake(self) -> None:
        """Have the next turn look at what the loop has brought."""
        self._turns.watches.add(self, _AT_ONCE)
        self._turns.schedule()

    # ---- called in a turn ------------------------------------------------------------------------

    def check(self, now_ms: int) -> None:
        """Take in what has come, and see to heart-beats and dates."""
        steady_ms = self._turns.broker.clock.steady_ms(now_ms)
        if self._is_over() or self.socket.transport is None:
            return
        if self._has_heard:
            self._has_heard = False
            self._heard_ms = steady_ms
        has_more = self._take_frames(now_ms)
        if self._looping and not self._is_over():
            self._end_loops(now_ms)
        if self._is_over():
            return
        if self._lost_because:
            self._lost(now_ms)
            return
        if has_more:
            self.socket.let_read(reads=False)  # else what waits would grow faster than it is carried out
            self._wake()
            return
        self.socket.let_read(reads=True)
        due_ms = self._check_times(steady_ms, now_ms)
        if due_ms is not None and not self._is_over():
            self._turns.watches.add(self, due_ms)

    def _is_over(self) -> bool:
        return self.is_closing

    def _check_times(self, steady_ms: int, now_ms: int) -> int | None:
        """End it, or send a heart-beat, if it is time. Returns when it is time next."""
        client = self._client
        if self.consumer is None and self._stops_until_ms >= 0:
            self._finish(now_ms)
            return None
        if self.consumer is None:
            if steady_ms >= self._login_until_ms:
                self._end(f"no CONNECTED within {self._connect_ms} ms; is this a STOMP acceptor?", now_ms)
            return self._login_until_ms
        due: list[int] = []
        if self._stops_until_ms >= 0:
            if not self.consumer.held or steady_ms >= self._stops_until_ms:
                self._finish(now_ms)
                return None
            due.append(self._stops_until_ms)
        if client.silence_s:
            silent_ms = self._heard_ms + round(client.silence_s * 1000)
            if steady_ms >= silent_ms:
                self._end(f"the other broker has been silent for {client.silence_s:g} s", now_ms)
                return None
            due.append(silent_ms)
        if client.beat_s:
            beat_ms = round(client.beat_s * 1000)
            if steady_ms >= self._sent_ms + beat_ms:
                self._beat()
                self._sent_ms = steady_ms
            due.append(self._sent_ms + beat_ms)
        return min(due, default=None)

    def _beat(self) -> None:
        transport = self.socket.transport
        if transport is not None and self.socket.flow is None:  # else it would be in the middle of a frame
            transport.write(HEART_BEAT)

    def _take_frames(self, now_ms: int) -> bool:
        """Carry out frames, as many as a turn has time for. Returns whether there are more."""
        confirmed: list[int] = []
        refusal: ServerFrame | None = None
        broken = ""
        count = 0
        while count < FRAMES_PER_TURN:
            count += 1
            try:
                frame = self._client.next()
            except StompError as error:
                broken = str(error)
                break
            if frame is None:
                break
            self._partial_bytes = 0
            if frame.command == "RECEIPT":
                receipt = frame.headers.get("receipt-id", "")
                if _is_number(receipt):
                    confirmed.append(int(receipt))
            elif frame.command == "ERROR":
                refusal = frame
                break
            elif frame.command == "CONNECTED" and self.consumer is None:
                self._open(frame, now_ms)
                if self._is_over():
                    return False
        self._turns.broker.budget.spend(count)
        if confirmed:
            self._acknowledge(confirmed)
        if refusal is not None:
            self._refused(refusal, now_ms)
        elif broken:
            self._end(f"it does not speak STOMP {_VERSION}: {broken}", now_ms)
        elif count < FRAMES_PER_TURN and self._partial_bytes >= PARTIAL_BYTES_MAX:
            self._end(f"the other broker has sent a frame of more than {PARTIAL_BYTES_MAX} bytes", now_ms)
        return count == FRAMES_PER_TURN

    # ---- the consumer ----------------------------------------------------------------------------

    def _open(self, frame: ServerFrame, now_ms: int) -> None:
        """The other broker has let it in: attach the consumer."""
        if self._stops_until_ms >= 0:
            self._finish(now_ms)
            return
        version = frame.headers.get("version", "1.0")
        if version != _VERSION:
            self._end(f"the other broker speaks STOMP {version}, and a bridge needs {_VERSION}", now_ms)
            return
        try:
            queue = find_queue(self._turns.broker, self._config)
            self._attach(queue, now_ms)
        except ArtemisError as error:
            self._end(str(error), now_ms, is_queue=True)
            return
        self._on_open(self)

    def _attach(self, queue: Queue, now_ms: int) -> None:
        """Raises ArtemisError."""
        broker, config = self._turns.broker, self._config
        self._queue = queue
        self._writer = _SendWriter(config, self._log_id, queue.id)
        named = f"bridge {config.name}"
        backlog = queue.consumer_defaults.backlog_for(UNCONFIRMED_MAX)
        selector = None if config.filter is None else compile_selector(config.filter)
        consumer = Consumer(
            broker.next_consumer_id(),
            self,
            settles=False,
            destructive=True,
            selector=selector if selector is not None else queue.consumer_defaults.selector,
            window_bytes=config.window_bytes,
            reader=Reader(self._origin, named, None, self._place),
            backlog_max=1 if self._suspects else backlog,
        )
        broker.attach(queue, consumer, now_ms)
        audit = broker.log.audit
        known = {"client": self._place, "client_id": named, "protocol": f"STOMP {_VERSION}"}
        audit.session_opened(self._origin, known)
        if queue.durable:
            fields = {"subscription": named, "ack": INDIVIDUAL, "number": consumer.id}
            if config.filter is not None:
                fields["selector"] = config.filter
            consumer.actor = audit.consumer_opened(self._origin, queue.id, fields)
        self.consumer = consumer
        self.make_room_for(consumer)

    def _acknowledge(self, message_ids: list[int]) -> None:
        """The other broker has these messages."""
        consumer, queue = self.consumer, self._queue
        if consumer is None or queue is None:
            return
        entries = [consumer.let_go(number) for number in message_ids if number in consumer.held]
        if not entries:
            return
        queue.acknowledge(consumer, entries)
        self._on_confirmed(len(entries))
        if self._suspects:
            self._suspects = max(self._suspects - len(entries), 0)
            if not self._suspects:
                consumer.backlog_max = queue.consumer_defaults.backlog_for(UNCONFIRMED_MAX)
        if consumer.parked:
            queue.wake(consumer)
        if self._stops_until_ms >= 0:
            self._wake()

    def _end_loops(self, now_ms: int) -> None:
        """Messages have come back that this bridge has forwarded: they are dead. Without a dead-letter address they
        stay: the bridge waits until the others on the way are confirmed, and pauses, so that other consumers get them.
        """
        consumer, queue = self.consumer, self._queue
        if consumer is None or queue is None:
            return
        dead: list[int] = []
        staying: list[Entry] = []
        for entry in self._looping:
            message = entry.message
            if message.id not in consumer.held:
                continue
            if self._dead_letter_address(message) in ("", message.head.address):  # or it would be here again at once
                staying.append(entry)
            else:
                dead.append(message.id)
        self._looping = staying
        if dead:
            self._on_loop(dead, f"is a dead letter now ({BRIDGE_LOOP})")
            entries = [consumer.let_go(number) for number in dead]
            queue.release(consumer, entries, failed=True, now_ms=now_ms, sent=False, dead=BRIDGE_LOOP)
        if not staying and self.socket.writable:
            self.make_room_for(consumer)
        elif staying and len(consumer.held) == len(staying):
            numbers = [entry.message.id for entry in staying]
            self._on_loop(numbers, "stays: the queue has no dead-letter-address")
            self._end(f"bridges form a loop: message {numbers[0]} has come back", now_ms, stays=True)

    def _refused(self, frame: ServerFrame, now_ms: int) -> None:
        """An ERROR, after which the connection is over. It may say which message it is about. If not, the next
        connection sends one message at a time, until it is known.
        """
        held = {} if self.consumer is None else self.consumer.held
        receipt = frame.headers.get("receipt-id", "")
        refused = int(receipt) if _is_number(receipt) and int(receipt) in held else 0
        if not refused and self._suspects and len(held) == 1:
            refused = next(iter(held))
        if held and not refused:
            self._suspects = len(held)
        self._end(f"ERROR: {frame.text[:_TEXT_MAX]}", now_ms, refused=refused)

    def _lost(self, now_ms: int) -> None:
        """The connection is over. If the other broker closes a second one over the same first message, it may not take
        one of those on the way: they go one by one, and whichever it closes another over counts as refused.
        """
        reason, first = self._lost_because, self._first_sent() if self._was_closed else 0
        if not first or first != self._suspected:
            self._suspected = first or self._suspected
            self._end(reason, now_ms)
            return
        reason = f"{reason}, again with message {first} on the way"
        if self._suspects:
            self._end(reason, now_ms, refused=first)
        else:
            self._suspects = self.unconfirmed_count
            self._end(reason, now_ms)

    def _first_sent(self) -> int:
        """The first message on the way, if everything that was written has left; 0: there is none."""
        consumer = self.consumer
        if consumer is None or self._out:
            return 0
        unsent = {entry.message.id for entry in (*self._looping, *consumer.outbox)}
        return next((number for number in consumer.held if number not in unsent), 0)

    # ---- output ----------------------------------------------------------------------------------
    #
    # The turns ask a consumer's owner for its session, and that for its subscriptions. This is all three.

    @property
    def session(self) -> BridgeConnection:
        """Itself."""
        return self

    @property
    def subscriptions(self) -> BridgeConnection:
        """Itself."""
        return self

    def write_messages(self, consumer: Consumer) -> None:
        """Turn the consumer's outbox into SEND frames. Each waits until its message's record is durable."""
        entries, queue, writer = consumer.outbox, self._queue, self._writer
        if not entries or queue is None or writer is None:
            return
        lsn = max([entry.message.lsn for entry in entries])
        looping = writer.write(entries, self._out.parts(lsn))
        consumer.outbox = []
        if looping:
            self._looping += looping
            consumer.room_bytes = 0
            self._wake()
            left_out = set(looping)
            entries = [entry for entry in entries if entry not in left_out]
        if entries:
            queue.sent(consumer, entries)

    def make_room_for(self, consumer: Consumer) -> None:
        """The consumer may be sent a turn's worth again, unless the bridge is to stop, or has met a loop."""
        if self._stops_until_ms >= 0 or self._looping or self._queue is None:
            return
        consumer.room_bytes = TURN_BYTES_MAX
        if consumer.parked:
            self._queue.wake(consumer)

    def _make_room(self) -> None:
        if self.consumer is not None:
            self.make_room_for(self.consumer)

    def flush(self, durable_lsn: int, now_ms: int) -> bool:
        self.is_dirty = False
        socket = self.socket
        transport = socket.transport
        if transport is None or self.is_closing:
            return False
        parts = self._out.take(durable_lsn)
        if parts or socket.flow is not None:
            self._send(transport, parts, now_ms)
        return bool(self._out)

    def _send(self, transport: asyncio.Transport, parts: list[Part], now_ms: int) -> None:
        """Write what may leave; large bodies a little at a time, and the rest behind them."""
        socket = self.socket
        self._sent_ms = self._turns.broker.clock.steady_ms(now_ms)
        if socket.flow is None and not any(isinstance(part, LargeBody) for part in parts):
            transport.write(b"".join(cast(list[bytes], parts)))
            return
        flow = socket.flow
        if flow is None:
            assert self._turns.large is not None
            flow = socket.flow = Outflow(self._turns.large, self)
            flow.is_paused = not socket.writable
            socket.writable = False
            transport.set_write_buffer_limits(HIGH_BYTES)
        flow.add(parts)
        flow.pump(transport)
        if flow.failure is not None:
            self._end(f"a large body cannot be read: {flow.failure}", now_ms)
        elif flow.is_done:
            socket.flow = None
            transport.set_write_buffer_limits(WRITE_HIGH_BYTES, WRITE_LOW_BYTES)
            socket.writable = not flow.is_paused
            if socket.writable:
                self._make_room()
                self._turns.schedule()

    # ---- the end ---------------------------------------------------------------------------------

    def stop(self, now_ms: int, wait_ms: int) -> None:
        """Take no more messages, and end when all are confirmed, or after ``wait_ms``."""
        if self.is_closing:
            return
        if self.consumer is not None:
            self.consumer.room_bytes = 0
        self._stops_until_ms = self._turns.broker.clock.steady_ms(now_ms) + wait_ms
        self._wake()

    def _finish(self, now_ms: int) -> None:
        """The orderly end."""
        transport = self.socket.transport
        if transport is not None and self.socket.flow is None and self.consumer is not None:
            transport.write(self._client.frame("DISCONNECT", []))
        self._end("stopped", now_ms, is_orderly=True)

    def cut(self) -> None:
        """Send nothing more: the broker ends at once, and its next start knows what was not confirmed."""
        self.is_closing = True
        transport = self.socket.transport
        self.socket.forget()
        if transport is not None:
            transport.abort()

    def disconnect(self, reason: str, now_ms: int) -> None:
        """The broker ends it."""
        self._end(reason, now_ms)

    def fail(self, now_ms: int) -> None:
        """A step failed, which is reported."""
        self._end("a step of the bridge has failed; see the broker's log", now_ms)

    def _end(
        self,
        reason: str,
        now_ms: int,
        *,
        refused: int = 0,
        stays: bool = False,
        is_orderly: bool = False,
        is_queue: bool = False,
    ) -> None:
        """What is not confirmed goes back to its place. ``is_queue``: the reason is the queue here."""
        if self.is_closing:
            return
        self.is_closing = True
        self._turns.watches.forget(self)
        self._turns.output.forget(self)
        if refused and self.consumer is not None:
            stays = not self._dead_letter_address(self.consumer.held[refused].message)
        was_open = self.consumer is not None or is_queue
        end = End(reason, was_open, refused, self._suspects, self._suspected, stays=stays, is_orderly=is_orderly)
        try:
            self._give_back(0 if stays else refused, now_ms)
        finally:
            self.consumer = None
            self._out.clear()
            transport = self.socket.transport
            self.socket.forget()
            if transport is not None:
                if is_orderly:
                    transport.close()
                else:
                    transport.abort()
            self._on_end(self, end)

    def _dead_letter_address(self, message: Message) -> str:
        """Where a message of the queue goes when it has failed too often. Empty: nowhere, it would be deleted."""
        queue = self._queue
        if queue is None:
            return ""
        source = self._turns.broker.bindings.source_of(message, queue.reference)
        return dead_letter_address_of(queue.reference, source.settings.dead_letter_address) or ""

    def _give_back(self, refused: int, now_ms: int) -> None:
        """A broken link counts no attempt of a message. A message that the other broker has refused has failed once
        more, so that it gets to the dead letters, and does not stop all others for ever. 0: none counts as failed.
        """
        consumer, queue, broker = self.consumer, self._queue, self._turns.broker
        if consumer is None or queue is None:
            return
        if not queue.deleted:
            looping = [entry for entry in self._looping if entry.message.id in consumer.held]
            consumer.outbox = [*looping, *consumer.outbox]  # without those that an operator has removed since
            unsent = {entry.message.id for entry in consumer.outbox}
            entries = [consumer.let_go(number) for number in list(consumer.held) if number not in unsent]
            others = [entry for entry in entries if entry.message.id != refused]
            if others:
                self._release(queue, consumer, others, now_ms)
            if len(others) < len(entries):
                failed = [entry for entry in entries if entry.message.id == refused]
                queue.release(consumer, failed, failed=True, now_ms=now_ms, cause=NACKED)
        broker.detach(queue, consumer, failed=False, now_ms=now_ms)
        broker.log.audit.session_closed(self._origin)

    @staticmethod
    def _release(queue: Queue, consumer: Consumer, entries: list[Entry], now_ms: int) -> None:
        """The other broker may have them, so they are redelivered. But a queue that limits deliveries
        (``max-deliveries``) does not count these.
        """
        was_sent = queue.contents.delivery_attempts is None
        queue.release(consumer, entries, failed=False, now_ms=now_ms, sent=was_sent)


# ---- frames ----------------------------------------------------------------------------------------------------------
#
# From a message on a queue here to the SEND frame for another broker.


_DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
BRIDGES_HEADER: Final = "_ART_BRIDGES"
"""The header with the bridges that have forwarded a message, with commas between, the first one first. Artemis and
RabbitMQ hand it through.
"""
BRIDGES_MAX: Final = 16
"""So many bridges may forward a message; beyond that it is taken for a loop."""
_BRIDGES: Final = HeaderName(BRIDGES_HEADER)
_ROUTING_TYPE: Final = "destination-type"
_OF_THIS_BROKER: Final = frozenset({HOPS_HEADER, RETRIED_HEADER, SCHEDULED})
_DONE_WITH: Final = frozenset({TIME, DELAY, *RECURRENCE_NAMES})
"""The message was delivered at its time, and would wait once more."""


@final
class _SendWriter:
    """Writes the SEND frames of a bridge. The receipt that each asks for is the number of the message here.

    ``log_id`` and ``queue_id`` are part of the id by which the other broker knows a message that comes twice: a message
    may be on two queues here, and be forwarded from both. So is its date: the numbers of messages that are not
    persistent, of which no record knows, come again after a restart.

    A message says by which bridges it came. One that this bridge has forwarded before is not written again, unless an
    operator has sent it back from the dead letters.
    """

    def __init__(self, config: BridgeConfig, log_id: str, queue_id: int) -> None:
        self._destination = config.forwarding_address
        self._routing_type = config.routing_type
        self._duplicate_id = b""
        if config.use_duplicate_detection:
            self._duplicate_id = f"{_DUPLICATE_ID}:{log_id}-{queue_id}-".encode()
        self._id = f"{quote(config.name, safe='')}@{log_id}"
        self._last_head: Head | None = None
        self._last_block = b""
        """The headers of the last message: the next one often has the same. Empty: it is not to be sent."""

    def write(self, entries: Iterable[Entry], out: list[Part]) -> list[Entry]:
        """Append the frames of ``entries`` to ``out``, in parts; a large body is a part that is not bytes. Returns
        those that go in a loop, which are left out.
        """
        looping: list[Entry] = []
        for entry in entries:
            message = entry.message
            head, body = message.head, message.body
            if head is not self._last_head:
                self._last_block = self._block(head)
                self._last_head = head
            if not self._last_block:
                looping.append(entry)
                continue
            lines = b"SEND\nreceipt:%d\n" % message.id
            if self._duplicate_id:
                lines += b"%b%d-%d\n" % (self._duplicate_id, message.id, message.timestamp_ms)
            if message.expires_ms:
                lines += b"expires:%d\n" % message.expires_ms
            # Without it the other broker takes the body for a text (Artemis), and reads it up to the first NUL.
            if head.sized or (not isinstance(body, LargeBody) and b"\0" in body):
                lines += b"content-length:%d\n" % len(body)
            out += (lines, self._last_block, body, END)
        return looping

    def _block(self, head: Head) -> bytes:
        """The headers that are the same for all messages with this head; empty if they go in a loop."""
        bridges = (head.first(_BRIDGES) or "").split(",")
        if (self._id in bridges or len(bridges) >= BRIDGES_MAX) and not retried_count(head):
            return b""
        passed = [bridge for bridge in bridges if bridge not in ("", self._id)]
        return encode_headers([*self._headers(head), (BRIDGES_HEADER, ",".join([*passed, self._id]))])

    def _headers(self, head: Head) -> list[tuple[str, str]]:
        sent = list(head.headers())
        left_out = {"destination", _ROUTING_TYPE, BRIDGES_HEADER, *_OF_THIS_BROKER, *_DONE_WITH}
        if self._duplicate_id:
            left_out.add(_DUPLICATE_ID)
        if any(name == "JMSXGroupID" for name, _ in sent):
            left_out.add("_AMQ_GROUP_ID")  # the same once more
        headers = [("destination", self._destination or head.address)]
        routing_type = head.routing_type if self._routing_type == "PASS" else self._routing_type
        if routing_type is not None and routing_type != "STRIP":
            headers.append((_ROUTING_TYPE, routing_type))
        return headers + [(name, value) for name, value in sent if name not in left_out]
