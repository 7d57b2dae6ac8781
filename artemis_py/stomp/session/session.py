"""One client's STOMP session: frames in, requests to the core, frames out. No I/O and no clock of its own."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.addresses.address import Address
from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.events import CLOSED, ERROR
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Awaited
from artemis_py.errors import ArtemisError, StorageError
from artemis_py.pending_output import PART_BYTES
from artemis_py.stomp.heartbeat import Heartbeat
from artemis_py.stomp.service import StompService
from artemis_py.stomp.session.acknowledge import Acknowledging
from artemis_py.stomp.session.connect import PendingLogin, enter
from artemis_py.stomp.session.publish import Publishing
from artemis_py.stomp.session.state import Remainder, SessionState, UnfinishedFrame
from artemis_py.stomp.session.subscriptions import Subscriptions
from artemis_py.stomp.session.transactions import Transactions
from artemis_py.stomp.wire.frames import AckRun, AnyFrame, BodiedFrame, Frame, FrameError, LargeSend, Refused, Send
from artemis_py.stomp.wire.parser import Parser

# ---- input -----------------------------------------------------------------------------------------------------------
#
# What a client sent and its session has not carried out yet.


FRAMES_AT_ONCE: Final = 1024
"""The most frames that are read before they are carried out."""
BYTES_PER_UNIT: Final = 1024
"""Received bytes cost one unit of the turn's budget for each so many, whatever they are."""
NO_FRAMES: Final[list[tuple[AnyFrame, bytes]]] = []
"""Instead of an empty list of its own for each connection that is idle. Nobody adds to it."""


@final
class Input:
    """Bytes that were not parsed, and frames that wait."""

    __slots__ = ("_budget", "frames", "parser")

    def __init__(self, parser: Parser, budget: Budget) -> None:
        self.parser = parser
        self._budget = budget
        self.frames = NO_FRAMES
        """Frames to be carried out next, each with its body."""

    @property
    def held_bytes(self) -> int:
        """What is held in memory."""
        held_bytes = self.parser.waiting_bytes
        if self.frames:
            held_bytes += sum([frame.size_bytes + len(body) for frame, body in self.frames])
        return held_bytes

    def add(self, data: bytes, stop_at: int, *, waits: bool) -> None:
        """Take in bytes from the client, and read the frames that the budget has units for down to ``stop_at``; none
        if the session ``waits`` or has frames already.
        """
        budget, parser = self._budget, self.parser
        budget.left -= len(data) // BYTES_PER_UNIT
        frames_max = 0
        if not waits and not self.frames:  # no frame costs less than a unit
            frames_max = min(max(budget.left - stop_at, 1), FRAMES_AT_ONCE)
        found = parser.feed(data, frames_max)
        budget.left -= parser.read_units
        parser.read_units = 0
        if self.frames:
            self.frames.extend(found)
        elif found:
            self.frames = found

    def read_on(self, stop_at: int) -> None:
        """Read the next frames, when those before are carried out and the parser has more."""
        budget, parser = self._budget, self.parser
        self.frames = parser.more(min(max(budget.left - stop_at, 1), FRAMES_AT_ONCE))
        budget.left -= parser.read_units
        parser.read_units = 0


# ---- commands --------------------------------------------------------------------------------------------------------
#
# Carries out the frames that have no body, and confirms them.


COMMAND_UNITS: Final = 10
"""What a frame other than SEND costs, besides the work that it starts."""


@final
class Commands:
    """What one client asks for with ACK, NACK, SUBSCRIBE, UNSUBSCRIBE, BEGIN, COMMIT and ABORT. It does not end the
    session: DISCONNECT is the session's own.
    """

    __slots__ = ("_acknowledging", "_state", "_subscriptions", "_transactions")

    def __init__(
        self,
        state: SessionState,
        subscriptions: Subscriptions,
        transactions: Transactions,
        acknowledging: Acknowledging,
    ) -> None:
        self._state = state
        self._subscriptions = subscriptions
        self._transactions = transactions
        self._acknowledging = acknowledging

    def begin(self, frame: Frame, body: bytes) -> None:
        """Count a frame and what it costs. Raises FrameError for a body."""
        self._state.service.traffic.frames_in[frame.command] += 1
        self._state.broker.budget.spend(COMMAND_UNITS)
        if body.strip(b"\r\n"):
            raise FrameError(f"{frame.command} has no body", syntax=True)

    def execute(self, frame: Frame, now_ms: int) -> bool:
        """Do what a frame asks for, and confirm it; False if it has to wait and come again. Raises ArtemisError."""
        command, headers = frame.command, frame.headers
        extra: list[tuple[str, str]] | Remainder | None = None
        if command in ("ACK", "NACK"):
            extra = self._acknowledging.acknowledge(frame, now_ms, refuses=command == "NACK")
            if command == "NACK":
                self._state.service.foreign.check(command, headers, self._state.who)
        elif command == "SUBSCRIBE":
            self._subscriptions.subscribe(headers, now_ms)
        elif command == "UNSUBSCRIBE":
            self._subscriptions.unsubscribe(headers, now_ms)
            self._state.service.foreign.check(command, headers, self._state.who)
        elif command == "BEGIN":
            self._transactions.begin(headers)
        elif command == "COMMIT":
            extra = self._transactions.commit(headers, now_ms)
            if extra is None:
                self._state.service.traffic.frames_in[command] -= 1  # it comes again
                return False
        elif command == "ABORT":
            self._transactions.abort(headers, now_ms)
        else:
            raise FrameError("The session is already connected: a second CONNECT is not allowed", syntax=True)
        self.confirm(frame, extra)
        return True

    def confirm(self, frame: Frame, extra: list[tuple[str, str]] | Remainder | None = None) -> None:
        """Answer with a RECEIPT if the client asked for one: at once, or when the work that is left is done."""
        receipt = frame.headers.get("receipt")
        if self._state.has_unfinished():
            self._state.wait_for_unfinished(frame.command, receipt, extra)
        elif receipt is not None:
            self._state.confirm(receipt, extra)


# ---- session ---------------------------------------------------------------------------------------------------------
#
# One client's STOMP session: frames in, requests to the core, frames out. No I/O and no clock of its own.


@final
class Session:
    """One connection from its first byte to its last. It reads frames and has its parts carry them out.

    The server calls ``receive`` with bytes, ``write_messages`` once a turn for consumers with output, takes from
    ``out`` what may leave, and calls ``lost`` when the socket is gone. It must not read from the socket while
    ``blocked_by`` is set. Methods that carry out frames get ``stop_at``, and stop when the turn's budget is down to
    that; ``go_on`` continues with the rest (``has_more``). ``now_ms`` is the date everywhere.
    """

    __slots__ = (
        "_acknowledging", "_commands", "_input", "_publishing", "heartbeat", "is_closing", "is_open", "out",
        "producers", "service", "state", "subscriptions", "transactions",
    )  # fmt: skip

    def __init__(self, service: StompService, origin: int, now_ms: int, owner: object) -> None:
        self.service = service
        self.state = SessionState(service, origin, owner, now_ms)
        self.out = self.state.out
        self.heartbeat = Heartbeat(service.broker.clock, now_ms)
        self.subscriptions = Subscriptions(self.state)
        self.transactions = Transactions(self.state)
        self._acknowledging = Acknowledging(self.state, self.subscriptions, self.transactions)
        self._commands = Commands(self.state, self.subscriptions, self.transactions, self._acknowledging)
        self._publishing = Publishing(self.state, self.transactions)
        self.producers = self._publishing.producers
        """To which addresses the client has sent lately."""
        self._input = Input(Parser(service.connect_dialect), service.broker.budget)
        self.is_open = False
        """Was the client greeted, and has the session not ended?"""
        self.is_closing = False
        """Is nothing more read? The socket closes when everything is sent."""

    # ---- what the server asks --------------------------------------------------------------------

    @property
    def unreadable(self) -> FrameError | None:
        """Why nothing more of the client's bytes can be read."""
        return self._input.parser.error

    @property
    def blocked_by(self) -> Awaited | None:
        """What the session waits for before it goes on."""
        return self.state.blocked_by

    @property
    def has_more(self) -> bool:
        """Is there input that can be carried out and was not yet?"""
        if not self.is_open or self.state.blocked_by is not None:
            return False
        waiting, parser = self._input, self._input.parser
        return bool(waiting.frames) or bool(parser.unread) or parser.error is not None

    @property
    def is_at_rest(self) -> bool:
        """Was all of the client's input carried out, and is no transaction open? Then nothing is held in memory but
        what waits in ``out``.
        """
        waiting = self._input
        parser = waiting.parser
        if waiting.frames or parser.unread or parser.start or parser.unfinished is not None:
            return False
        return parser.error is None and not self.transactions.by_name

    @property
    def held_bytes(self) -> tuple[int, int, int]:
        """What the session holds in memory: of its input, of frames to be written, and of open transactions."""
        kept_bytes = self.transactions.held_bytes if self.transactions.by_name else 0
        return self._input.held_bytes, self.out.part_count * PART_BYTES, kept_bytes

    # ---- input -----------------------------------------------------------------------------------

    def receive(self, data: bytes, now_ms: int, stop_at: int = 0) -> None:
        """Take bytes from the client and carry out the frames that they complete."""
        self.heartbeat.note_alive(now_ms)
        if not self.is_open and not self.is_closing and self.state.blocked_by is None:
            parser = self._input.parser
            frames, data = parser.feed_one(data)
            entry = enter(frames[0][0], self.state) if frames else None
            if entry is not None:
                self._input.parser = self.service.parser(entry.greeting.version)
                if entry.may_go_on:
                    self._enter(entry, now_ms)
                else:
                    self.state.blocked_by = entry
            elif frames:
                self._end()
            elif parser.error is not None:
                self._break_off(parser.error)
            else:
                return
        if not self.is_closing:
            self._input.add(data, stop_at, waits=self.state.blocked_by is not None)
            if self.service.foreign.found:
                self.service.foreign.tell_found(self.state.who)
            self.go_on(now_ms, stop_at)

    def go_on(self, now_ms: int, stop_at: int = 0) -> None:
        """Carry out what was received, until the turn's budget is down to ``stop_at``; at least one frame."""
        state, waiting = self.state, self._input
        budget = state.broker.budget
        state.stop_at = stop_at
        while self.is_open and state.blocked_by is None and (waiting.frames or waiting.parser.unread):
            if not waiting.frames:
                waiting.read_on(stop_at)
                if self.service.foreign.found:
                    self.service.foreign.tell_found(state.who)
            self._run(now_ms)
            if budget.left <= stop_at:
                break
        error = waiting.parser.error
        if error is not None and not waiting.frames and self.is_open and state.blocked_by is None:
            self._break_off(error)
        if waiting.parser.unfinished is not None and waiting.parser.in_large_body and state.blocked_by is None:
            state.blocked_by = self.service.disk

    def _run(self, now_ms: int) -> None:
        """Carry out the frames that were read, until one has to wait or the budget is spent."""
        state = self.state
        log, budget = state.broker.log, state.broker.budget
        frames = self._input.frames
        position, count = 0, len(frames)
        while position < count and self.is_open:
            frame, body = frames[position]
            state.lsn_before = log.last_lsn
            budget.left -= 1
            if isinstance(frame, Send) and frame.quick:
                position = self._publishing.send_run(frames, position, now_ms)
            elif isinstance(frame, Send) and frame.gathers:
                position = self._publishing.keep_run(frames, position, now_ms)
            elif isinstance(frame, AckRun):
                self._acknowledge_run(frame, now_ms)
                if not frame.acks:
                    position += 1
            elif self._handle(frame, body, now_ms):
                position += 1
            if state.has_ended:
                self._close()
            if log.last_lsn != state.lsn_before:
                state.note_written()
            if state.blocked_by is not None or budget.left <= state.stop_at:
                break
        self._input.frames = frames[position:] if self.is_open and position < count else NO_FRAMES

    def unblock(self, now_ms: int, stop_at: int = 0) -> None:
        """Go on with what had to wait, if it need not wait any more."""
        awaited = self.state.blocked_by
        if awaited is None or not awaited.may_go_on:
            return
        if isinstance(awaited, (Queue, Address)):
            self.state.tell_of_room(awaited)
        self.state.blocked_by = None
        self.heartbeat.note_alive(now_ms)
        if isinstance(awaited, UnfinishedFrame):
            self._answer(awaited)
        elif isinstance(awaited, PendingLogin):
            self._enter(awaited, now_ms)
        self.go_on(now_ms, stop_at)

    def _acknowledge_run(self, run: AckRun, now_ms: int) -> None:
        try:
            self._acknowledging.acknowledge_run(run, now_ms)
        except StorageError:
            raise
        except ArtemisError as error:
            self.refuse(str(error), run.receipt, syntax=isinstance(error, FrameError) and error.syntax)

    def _handle(self, frame: BodiedFrame, body: bytes, now_ms: int) -> bool:
        """Carry out one frame; False if it has to wait."""
        try:
            if isinstance(frame, LargeSend):
                return self._publishing.send_large(frame, now_ms)
            if isinstance(frame, Send):
                self.service.traffic.frames_in["SEND"] += 1
                return self._publishing.send(frame, body, now_ms)
            if isinstance(frame, Refused):
                self.service.traffic.frames_in["invalid"] += 1
                self.refuse(frame.reason, frame.receipt, syntax=frame.incomplete)
                return True
            return self._handle_command(frame, body, now_ms)
        except StorageError:
            raise
        except ArtemisError as error:
            receipt = frame.headers.get("receipt") if isinstance(frame, Frame) else frame.receipt
            self.refuse(str(error), receipt, syntax=isinstance(error, FrameError) and error.syntax)
            self.state.unfinished.clear()
            return True

    def _handle_command(self, frame: Frame, body: bytes, now_ms: int) -> bool:
        self._commands.begin(frame, body)
        if frame.command != "DISCONNECT":
            return self._commands.execute(frame, now_ms)
        self._leave(failed=False, now_ms=now_ms)
        self._end()
        self._commands.confirm(frame)
        return True

    def _answer(self, frame: UnfinishedFrame) -> None:
        self.state.answer(frame)
        if self.state.has_ended:
            self._close()

    # ---- beginning and end -----------------------------------------------------------------------

    def _enter(self, entry: PendingLogin, now_ms: int) -> None:
        """The login is decided: open the session, or refuse the client."""
        refusal = entry.admit(self.state)
        if refusal:
            if not entry.refusal:  # no refused login, of which the log is told elsewhere
                self.state.note(ERROR, refusal)
            self._close_with(refusal, None)
        else:
            self.is_open = True  # from here on ``lost`` undoes what was counted
            entry.welcome(self.state, self.heartbeat, now_ms)

    def refuse(self, message: str, receipt: str | None, *, syntax: bool) -> None:
        """Answer with an ERROR, after which the session may have ended."""
        self.state.refuse(message, receipt, syntax=syntax)
        if self.state.has_ended:
            self._close()

    def _close_with(self, message: str, receipt: str | None) -> None:
        self.state.answer_error(message, receipt)
        self._close()

    def _break_off(self, error: FrameError) -> None:
        """Nothing more of the client's bytes can be read."""
        self.state.note(ERROR, str(error))
        self._close_with(str(error), error.receipt)

    def _close(self) -> None:
        """The client got an ERROR: the session ends."""
        if self.is_open:
            self._leave(failed=True, now_ms=self.heartbeat.last_in_ms)
        self._end()

    def kick(self, message: str, now_ms: int) -> None:
        """Close the session from the broker's side (silence, shutdown, a limit): ERROR, then the end."""
        if not self.is_closing:
            self.heartbeat.note_alive(now_ms)
            self.state.note(CLOSED, message)
            self._close_with(message, None)

    def lost(self, now_ms: int, *, failed: bool = True) -> None:
        """The socket is gone: unsettled messages count as failed deliveries; not so if the broker ends the session."""
        was_open = self.is_open
        self._end()
        if was_open:
            self._leave(failed=failed, now_ms=now_ms)

    def _leave(self, *, failed: bool, now_ms: int) -> None:
        """Undo everything of the session, whatever fails. Raises the first failure when everything is done."""
        failure = self.transactions.abort_all(now_ms)
        other = self.subscriptions.close_all(failed=failed, now_ms=now_ms)
        self._publishing.forget()
        self._input.frames = NO_FRAMES
        self.state.leave()
        failure = failure or other
        if failure is not None:
            raise failure

    def _end(self) -> None:
        """Nothing more is read; forget the unfinished frame."""
        self.is_open, self.is_closing = False, True
        self._input.parser.forget()
        awaited = self.state.blocked_by
        if isinstance(awaited, PendingLogin):
            awaited.give_up()
            self.state.blocked_by = None

    def write_messages(self, consumer: Consumer) -> None:
        """Write a consumer's outbox as frames."""
        subscription = self.subscriptions.by_consumer.get(consumer.id)
        if subscription is None:
            return
        awaited = self.state.blocked_by
        if isinstance(awaited, UnfinishedFrame) and awaited.may_go_on:  # its RECEIPT comes first
            self._answer(awaited)
            if not self.is_open:
                return
        self.subscriptions.write_messages(subscription)

    def beat(self, now_ms: int) -> None:
        """Send a heart-beat that is due; end the session if the client has been silent for too long, or if its login
        has ended.
        """
        if not self.is_open:
            return
        why_over = self.heartbeat.why_over(now_ms, hears=self.state.blocked_by is None)
        if why_over:
            self.kick(why_over, now_ms)
        elif self.heartbeat.take_beat(now_ms):
            self.out.parts().append(b"\n")
