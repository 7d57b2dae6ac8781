"""One client's STOMP session: frames in, requests to the core, frames out. No I/O and no clock of its own."""

from __future__ import annotations

from typing import Final

from artemis_py.core.consumer import Consumer
from artemis_py.core.events import UNBLOCKED
from artemis_py.core.queue import Queue
from artemis_py.errors import ArtemisError, LimitError, StorageError
from artemis_py.stomp import writer
from artemis_py.stomp.frames import AckRun, Frame, FrameError, LargeSend, Refused, Send
from artemis_py.stomp.greeting import Greeting, greet
from artemis_py.stomp.outbound import PART_BYTES, Part
from artemis_py.stomp.parser import AnyFrame, BodiedFrame, Parser
from artemis_py.stomp.sending import Sending
from artemis_py.stomp.service import StompService, turn_bytes
from artemis_py.stomp.state import Errand

_NEW: Final = "new"
_OPEN: Final = "open"
_CLOSING: Final = "closing"

FRAMES_AT_ONCE: Final = 1024
"""The most frames that are read before they are carried out."""
BYTES_PER_UNIT: Final = 1024
"""So many bytes that came cost one unit of the turn's budget, whatever they are."""
COMMAND_UNITS: Final = 10
"""What a frame costs that is no SEND, beside what it sets going."""


class Session(Sending):
    """The state of one connection from its first byte to its last.

    The server calls ``receive`` with bytes, ``write_messages`` once a turn for consumers with output, ``flush`` to
    fetch what may leave, and ``lost`` when the socket is gone. It must not read from the socket while ``blocked_by``
    is set. Each of those that carry out frames gets ``stop_at``, and stops when the turn's budget is down to that; what
    is left then (``has_more``) goes on with ``go_on``. ``now_ms`` is the date everywhere; silence is measured in steady
    time (``core/clock.py``).
    """

    __slots__ = ("_clock", "_parser", "_pending", "last_beat_ms", "last_in_ms", "state")

    def __init__(self, service: StompService, origin: int, now_ms: int, owner: object) -> None:
        super().__init__(service, origin, owner)
        self.state = _NEW
        self._clock = service.broker.clock
        self.last_in_ms = self.last_beat_ms = self._clock.steady_ms(now_ms)
        self._parser = Parser(service.connect_dialect)
        self._pending: list[tuple[AnyFrame, bytes]] = []

    # ---- input -----------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """The client was greeted and nothing ended the session yet."""
        return self.state == _OPEN

    @property
    def is_closing(self) -> bool:
        """Nothing more is read; the socket closes when everything is sent."""
        return self.state == _CLOSING

    @property
    def in_frame(self) -> bool:
        """Has the client begun a frame that it has not finished?"""
        return self._parser.in_frame

    @property
    def held_bytes(self) -> tuple[int, int, int]:
        """What is held of frames that are not complete or have to wait, of those that wait to be written, and of open
        transactions.
        """
        unfinished_bytes = self._parser.waiting_bytes
        if self._pending:
            unfinished_bytes += sum([frame.size_bytes + len(body) for frame, body in self._pending])
        unwritten_bytes = self.out.part_count * PART_BYTES
        return unfinished_bytes, unwritten_bytes, self.kept_bytes if self.transactions else 0

    @property
    def has_more(self) -> bool:
        """Did something come that can be carried out and was not yet?"""
        if self.state != _OPEN or self.blocked_by is not None:
            return False
        return bool(self._pending) or self._parser.has_more or self._parser.error is not None

    def note_alive(self, now_ms: int) -> None:
        """The client has said something, or what it says cannot be heard now."""
        self.last_in_ms = self._clock.steady_ms(now_ms)

    def receive(self, data: bytes, now_ms: int, stop_at: int = 0) -> None:
        """Take bytes from the client and carry out the frames that they complete."""
        self.last_in_ms = self._clock.steady_ms(now_ms)
        if self.state == _NEW:
            frames, data = self._parser.feed_one(data)
            if frames:
                self._greet(frames[0][0], now_ms)
            elif self._parser.error is not None:
                self._close_with(str(self._parser.error), self._parser.error.receipt)
        if self.state != _OPEN:
            return
        budget = self.service.broker.budget
        budget.spend(len(data) // BYTES_PER_UNIT)
        waits = self.blocked_by is not None or self._pending
        found = self._parser.feed(data, 0 if waits else _frames_max(budget.left - stop_at))
        self._pay_for_reading()
        if self._pending:
            self._pending.extend(found)
        else:
            self._pending = found
        self.go_on(now_ms, stop_at)

    def go_on(self, now_ms: int, stop_at: int = 0) -> None:
        """Carry out what came, until the turn's budget is down to ``stop_at``; at least one frame."""
        budget = self.service.broker.budget
        self.stop_at = stop_at
        while self.state == _OPEN and self.blocked_by is None:
            if not self._pending:
                if not self._parser.has_more:
                    break
                self._pending = self._parser.more(_frames_max(budget.left - stop_at))
                self._pay_for_reading()
            self._run(now_ms)
            if budget.left <= stop_at:
                break
        error = self._parser.error
        if error is not None and not self._pending and self.state == _OPEN and self.blocked_by is None:
            self._close_with(str(error), error.receipt)
        if self._parser.in_large_body:
            self._wait_for_disk()

    def _pay_for_reading(self) -> None:
        parser = self._parser
        self.service.broker.budget.spend(parser.read_units)
        parser.read_units = 0

    def _wait_for_disk(self) -> None:
        """The rest of a large body is read when what came of it is on its way to the disk."""
        if self.blocked_by is None:
            self.blocked_by = self.service.disk

    def _run(self, now_ms: int) -> None:
        broker = self.service.broker
        log, budget = broker.log, broker.budget
        frames = self._pending
        position = 0
        count = len(frames)
        while position < count and self.state == _OPEN:
            frame, body = frames[position]
            self.lsn_before = log.last_lsn
            budget.spend(1)
            if frame.__class__ is Send and frame.quick:
                position = self.send_run(frames, position, now_ms)
            elif frame.__class__ is Send and frame.gathers:
                position = self.keep_run(frames, position, now_ms)
            elif isinstance(frame, AckRun):
                budget.spend(len(frame.pairs))
                self._acknowledge_run(frame, now_ms)
                position += 1
            elif self._handle(frame, body, now_ms):
                position += 1
            self.note_written()
            if self.blocked_by is not None or budget.left <= self.stop_at:
                break
        self._pending = frames[position:] if self.state == _OPEN and position < count else []

    def unblock(self, now_ms: int, stop_at: int = 0) -> None:
        """Go on with what had to wait, if it need not any more."""
        if self.blocked_by is None or not self.blocked_by.may_go_on:
            return
        awaited = self.blocked_by
        if isinstance(awaited, Queue):
            self.service.broker.note_event(UNBLOCKED, awaited, {"session": self.name})
        self.blocked_by = None
        self.note_alive(now_ms)
        if isinstance(awaited, Errand):
            self._end_errand(awaited)
        self.go_on(now_ms, stop_at)

    def _acknowledge_run(self, run: AckRun, now_ms: int) -> None:
        try:
            self.acknowledge_run(run, now_ms)
        except StorageError:
            raise
        except ArtemisError as error:
            self.refuse(str(error), None, syntax=isinstance(error, FrameError) and error.syntax)
        if self.unfinished and self.state == _OPEN:
            self.begin_errand("ACK", None, None)

    def _handle(self, frame: BodiedFrame, body: bytes, now_ms: int) -> bool:
        """Carry out one frame; False when it has to wait (the session is blocked)."""
        try:
            if isinstance(frame, Send):
                if isinstance(frame, LargeSend):
                    return self.send_large(frame, now_ms)
                self.service.traffic.came("SEND")
                return self.send(frame, body, now_ms)
            if isinstance(frame, Refused):
                self.service.traffic.came("invalid")
                self.refuse(frame.reason, frame.receipt, syntax=frame.incomplete)
                return True
            return self._handle_command(frame, body, now_ms)
        except StorageError:
            raise
        except ArtemisError as error:
            receipt = frame.headers.get("receipt") if isinstance(frame, Frame) else frame.receipt
            self.refuse(str(error), receipt, syntax=isinstance(error, FrameError) and error.syntax)
            self.unfinished.clear()
            return True

    def _handle_command(self, frame: Frame, body: bytes, now_ms: int) -> bool:
        command = frame.command
        told: list[tuple[str, str]] | None = None
        self.service.traffic.came(command)
        self.service.broker.budget.spend(COMMAND_UNITS)
        if body.strip(b"\r\n"):
            raise FrameError(f"{command} has no body", syntax=True)
        if command in ("ACK", "NACK"):
            self.acknowledge(frame, now_ms, refuses=command == "NACK")
        elif command == "SUBSCRIBE":
            self.subscribe(frame.headers, now_ms)
        elif command == "UNSUBSCRIBE":
            self.unsubscribe(frame.headers, now_ms)
        elif command == "BEGIN":
            self.begin(frame.headers)
        elif command == "COMMIT":
            told = self.commit(frame.headers, now_ms)
            if told is None:
                self.service.traffic.came(command, -1)  # it comes again
                return False
        elif command == "ABORT":
            self.abort(frame.headers, now_ms)
        elif command == "DISCONNECT":
            self._leave(failed=False, now_ms=now_ms)
            self._end()
        else:
            raise FrameError("The session is already connected: a second CONNECT is not allowed", syntax=True)
        receipt = frame.headers.get("receipt")
        if self.leave_begun():
            self.begin_errand(command, receipt, told)
        elif receipt is not None:
            self.confirm(receipt, told)
        return True

    def _end_errand(self, errand: Errand) -> None:
        if errand.is_told:
            return
        errand.is_told = True
        self.lsn_written = self.lsn_before = self.service.broker.log.last_lsn
        if errand.has_failed:
            reason = f"{errand.command} was not completed because of an internal error; see the broker's log"
            self.refuse(reason, errand.receipt, syntax=False)
        elif errand.receipt is not None:
            self.confirm(errand.receipt, errand.told)

    # ---- beginning and end -----------------------------------------------------------------------

    def _greet(self, frame: AnyFrame, now_ms: int) -> None:
        if not isinstance(frame, Frame) or frame.command not in ("CONNECT", "STOMP"):
            name, receipt = "SEND", None
            if isinstance(frame, Frame):
                name, receipt = frame.command, frame.headers.get("receipt")
            elif not isinstance(frame, AckRun):
                receipt = frame.receipt
            self._close_with(f"The first frame must be CONNECT or STOMP, not {name}", receipt)
            return
        self.service.traffic.came(frame.command)
        answer = greet(frame, self.service, self.name)
        if not isinstance(answer, Greeting):
            self.out.parts().append(answer)
            self.service.traffic.went("ERROR")
            self._end()
            return
        self.version = answer.version
        try:
            self.service.broker.quota.connected(answer.login or "")
        except LimitError as error:
            self._close_with(str(error), None)
            return
        self.client_id = answer.client_id
        self.user = answer.login
        self.beats = answer.beats
        self.last_beat_ms = self._clock.steady_ms(now_ms)
        self.service.traffic.sessions_open += 1
        self.service.traffic.sessions_total += 1
        self.state = _OPEN  # from here on ``lost`` undoes what was counted
        self._introduce(answer)
        self._parser = self.service.parser(answer.version)
        self.out.parts().append(answer.frame)
        self.service.traffic.went("CONNECTED")

    def _introduce(self, greeting: Greeting) -> None:
        """Tell a log that is retained who is here."""
        log = self.service.broker.log
        if log.retains:
            fields = {"client": self.peer, "login": greeting.login, "client_id": greeting.client_id}
            known = {name: value for name, value in fields.items() if value}
            log.session_opened(self.origin, {**known, "protocol": f"STOMP {greeting.version}"})

    def refuse(self, message: str, receipt: str | None, *, syntax: bool) -> None:
        """Answer ERROR. STOMP 1.2 then closes; 1.1 only after bad syntax; 1.0 goes on."""
        if self.version == "1.2" or (syntax and self.version == "1.1"):
            self._close_with(message, receipt)
            return
        self._write_error(message, receipt)

    def _write_error(self, message: str, receipt: str | None) -> None:
        self.out.parts().append(writer.error(message, self.version, receipt))
        self.service.traffic.went("ERROR")

    def _close_with(self, message: str, receipt: str | None) -> None:
        self._write_error(message, receipt)
        if self.state == _OPEN:
            self._leave(failed=True, now_ms=self._clock.date_ms(self.last_in_ms))
        self._end()

    def kick(self, message: str, now_ms: int) -> None:
        """Close the session from the broker's side (silence, shutdown, a limit): ERROR, then the end."""
        if self.state != _CLOSING:
            self.last_in_ms = self._clock.steady_ms(now_ms)
            self._close_with(message, None)

    def lost(self, now_ms: int, *, failed: bool = True) -> None:
        """The socket is gone: what was not settled counts as a failed delivery, unless the broker itself ends it."""
        was_open = self.state == _OPEN
        self._end()
        if was_open:
            self._leave(failed=failed, now_ms=now_ms)

    def _leave(self, *, failed: bool, now_ms: int) -> None:
        """Nothing is left of the session, whatever breaks off; the first failure is raised when everything is done."""
        failure = self.abort_all(now_ms)
        other = self.unsubscribe_all(failed=failed, now_ms=now_ms)
        self.blocked_by = None
        self.asked = None
        self.unfinished.clear()  # it goes on; nobody here waits for it
        self._pending = []
        self.service.traffic.sessions_open -= 1
        self.service.broker.quota.disconnected(self.user or "")
        failure = failure or other
        if failure is not None:
            raise failure

    def _end(self) -> None:
        """Nothing more is read: what came of a frame that is not finished goes, whoever waits for the end."""
        self.state = _CLOSING
        self._parser.forget()

    # ---- output ----------------------------------------------------------------------------------

    def write_messages(self, consumer: Consumer) -> None:
        """Turn a consumer's outbox into frames. Each waits for its message's record."""
        subscription = self.by_consumer.get(consumer.id)
        if subscription is None:
            return
        awaited = self.blocked_by
        if isinstance(awaited, Errand) and awaited.may_go_on:  # what comes of it stands behind its RECEIPT
            self._end_errand(awaited)
            if self.state != _OPEN:
                return
        handed, entries = consumer.handed, consumer.outbox
        if handed:  # taken when they are written: what breaks off before goes back
            subscription.writer.write(handed, self.out.parts())
            consumer.handed = []
            self.service.traffic.went("MESSAGE", len(handed))
        if entries:
            lsn = max(entry.message.lsn for entry in entries)
            subscription.writer.write(entries, self.out.parts(lsn))
            consumer.outbox = []
            self.service.traffic.went("MESSAGE", len(entries))
            subscription.queue.sent(consumer, entries)

    def make_room(self) -> None:
        """The client reads again: every consumer may be sent a turn's worth."""
        for subscription in self.by_consumer.values():
            self.make_room_for(subscription.consumer)

    def make_room_for(self, consumer: Consumer) -> None:
        """This consumer may be sent a turn's worth again."""
        consumer.room_bytes = turn_bytes(len(self.by_consumer))
        if consumer.parked:
            subscription = self.by_consumer.get(consumer.id)
            if subscription is not None:
                subscription.queue.wake(consumer)

    def flush(self, durable_lsn: int) -> list[Part]:
        """What may leave now, in order."""
        return self.out.take(durable_lsn)

    # ---- silence ---------------------------------------------------------------------------------

    def next_beat_ms(self) -> int | None:
        """The steady time at which ``beat`` has something to do, or None."""
        due: int | None = None
        if self.beats.send_ms:
            due = self.last_beat_ms + self.beats.every_ms
        if self.beats.ttl_ms and self.blocked_by is None:
            dead = self.last_in_ms + self.beats.ttl_ms
            due = dead if due is None else min(due, dead)
        return due

    def beat(self, now_ms: int) -> None:
        """Send a heart-beat that is due; end the session when the client has been silent for too long."""
        if self.state != _OPEN:
            return
        steady_ms = self._clock.steady_ms(now_ms)
        silent_ms = steady_ms - self.last_in_ms
        if self.beats.ttl_ms and self.blocked_by is None and silent_ms >= self.beats.ttl_ms:
            self.kick(f"Nothing received for {silent_ms} ms; the agreed limit is {self.beats.ttl_ms} ms", now_ms)
        elif self.beats.send_ms and steady_ms >= self.last_beat_ms + self.beats.every_ms:
            self.last_beat_ms = steady_ms
            self.out.parts().append(b"\n")


def _frames_max(units: int) -> int:
    """How many frames to read for so many units: no frame costs less than one."""
    return min(max(units, 1), FRAMES_AT_ONCE)
