"""One client's STOMP session: frames in, requests to the core, frames out. No I/O and no clock of its own."""

from __future__ import annotations

from typing import Final

from artemis_py.core.consumer import Consumer
from artemis_py.core.events import UNBLOCKED
from artemis_py.core.queue import Queue
from artemis_py.errors import ArtemisError
from artemis_py.stomp import writer
from artemis_py.stomp.frames import AckRun, Frame, FrameError, LargeSend, Refused, Send
from artemis_py.stomp.greeting import Greeting, greet
from artemis_py.stomp.outbound import Part
from artemis_py.stomp.parser import AnyFrame, BodiedFrame, Parser
from artemis_py.stomp.sending import Sending
from artemis_py.stomp.service import TURN_BYTES_MAX, StompService

_NEW: Final = "new"
_OPEN: Final = "open"
_CLOSING: Final = "closing"


class Session(Sending):
    """The state of one connection from its first byte to its last.

    The server calls ``receive`` with bytes, ``write_messages`` once a turn for consumers with output, ``flush`` to
    fetch what may leave, and ``lost`` when the socket is gone. It must not read from the socket while ``blocked_by``
    is set.
    """

    __slots__ = ("_parser", "_pending", "last_beat_ms", "last_in_ms", "state")

    def __init__(self, service: StompService, origin: int, now_ms: int, owner: object) -> None:
        super().__init__(service, origin, owner)
        self.state = _NEW
        self.last_in_ms = now_ms
        self.last_beat_ms = now_ms
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

    def receive(self, data: bytes, now_ms: int) -> None:
        """Take bytes from the client and carry out the frames that they complete."""
        self.last_in_ms = now_ms
        if self.state == _NEW:
            frames, data = self._parser.feed_one(data)
            if frames:
                self._greet(frames[0][0], now_ms)
            elif self._parser.error is not None:
                self._close_with(str(self._parser.error), self._parser.error.receipt)
        if self.state != _OPEN:
            return
        frames = self._parser.feed(data)
        if self.blocked_by is not None:
            self._pending.extend(frames)
            return
        self._run(frames, now_ms)
        if self._parser.in_large_body:
            self._wait_for_disk()

    def _wait_for_disk(self) -> None:
        """The rest of a large body is read when what came of it is on its way to the disk."""
        if self.blocked_by is None:
            self.blocked_by = self.service.disk

    def _run(self, frames: list[tuple[AnyFrame, bytes]], now_ms: int) -> None:
        log = self.service.broker.log
        position = 0
        count = len(frames)
        while position < count and self.state == _OPEN:
            frame, body = frames[position]
            self.lsn_before = log.last_lsn
            if frame.__class__ is Send and frame.quick:
                position = self.send_run(frames, position, now_ms)
            elif frame.__class__ is Send and frame.gathers:
                position = self.keep_run(frames, position, now_ms)
            elif isinstance(frame, AckRun):
                self._acknowledge_run(frame, now_ms)
                position += 1
            elif self._handle(frame, body, now_ms):
                position += 1
            self.note_written()
            if self.blocked_by is not None:
                self._pending = frames[position:]
                return
        if self._parser.error is not None and self.state == _OPEN:
            self._close_with(str(self._parser.error), self._parser.error.receipt)

    def unblock(self, now_ms: int) -> None:
        """Go on with what had to wait, if it need not any more."""
        if self.blocked_by is None or not self.blocked_by.may_go_on:
            return
        if isinstance(self.blocked_by, Queue):
            self.service.broker.note_event(UNBLOCKED, self.blocked_by, {"session": self.name})
        self.blocked_by = None
        self.last_in_ms = now_ms
        pending, self._pending = self._pending, []
        self._run(pending, now_ms)

    def _acknowledge_run(self, run: AckRun, now_ms: int) -> None:
        try:
            self.acknowledge_run(run, now_ms)
        except ArtemisError as error:
            self.refuse(str(error), None, syntax=isinstance(error, FrameError) and error.syntax)

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
        except ArtemisError as error:
            receipt = frame.headers.get("receipt") if isinstance(frame, Frame) else frame.receipt
            self.refuse(str(error), receipt, syntax=isinstance(error, FrameError) and error.syntax)
            return True

    def _handle_command(self, frame: Frame, body: bytes, now_ms: int) -> bool:
        command = frame.command
        told: list[tuple[str, str]] | None = None
        self.service.traffic.came(command)
        if body:
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
            self.state = _CLOSING
        else:
            raise FrameError("The session is connected already: a second CONNECT is not allowed", syntax=True)
        receipt = frame.headers.get("receipt")
        if receipt is not None:
            self.confirm(receipt, told)
        return True

    # ---- beginning and end -----------------------------------------------------------------------

    def _greet(self, frame: AnyFrame, now_ms: int) -> None:
        if not isinstance(frame, Frame) or frame.command not in ("CONNECT", "STOMP"):
            name = frame.command if isinstance(frame, Frame) else "SEND"
            self._close_with(f"The first frame must be CONNECT or STOMP, not {name}", None)
            return
        self.service.traffic.came(frame.command)
        answer = greet(frame, self.service, self.name)
        if not isinstance(answer, Greeting):
            self.out.parts().append(answer)
            self.service.traffic.went("ERROR")
            self.state = _CLOSING
            return
        self.version = answer.version
        self.client_id = answer.client_id
        self.user = answer.login
        self.beats = answer.beats
        self.last_beat_ms = now_ms
        self._introduce(answer)
        self._parser = self.service.parser(answer.version)
        self.out.parts().append(answer.frame)
        self.service.traffic.went("CONNECTED")
        self.service.traffic.sessions_open += 1
        self.service.traffic.sessions_total += 1
        self.state = _OPEN

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
            self._leave(failed=True, now_ms=self.last_in_ms)
        self.state = _CLOSING

    def kick(self, message: str, now_ms: int) -> None:
        """Close the session from the broker's side (silence, shutdown, a limit): ERROR, then the end."""
        if self.state != _CLOSING:
            self.last_in_ms = now_ms
            self._close_with(message, None)

    def lost(self, now_ms: int, *, failed: bool = True) -> None:
        """The socket is gone: what was not settled counts as a failed delivery, unless the broker itself ends it."""
        if self.state == _OPEN:
            self._leave(failed=failed, now_ms=now_ms)
        self.state = _CLOSING

    def _leave(self, *, failed: bool, now_ms: int) -> None:
        self.abort_all(now_ms)
        self.unsubscribe_all(failed=failed, now_ms=now_ms)
        self.service.broker.log.session_closed(self.origin)
        self.blocked_by = None
        self._pending = []
        self._parser.forget()
        self.service.traffic.sessions_open -= 1

    # ---- output ----------------------------------------------------------------------------------

    def write_messages(self, consumer: Consumer) -> None:
        """Turn a consumer's outbox into frames. Each waits for its message's record."""
        subscription = self.by_consumer.get(consumer.id)
        if subscription is None:
            return
        handed, entries = consumer.handed, consumer.outbox
        if handed:
            consumer.handed = []
            subscription.writer.write(handed, self.out.parts())
            self.service.traffic.went("MESSAGE", len(handed))
        if entries:
            consumer.outbox = []
            lsn = max(entry.message.lsn for entry in entries)
            subscription.writer.write(entries, self.out.parts(lsn))
            self.service.traffic.went("MESSAGE", len(entries))
            subscription.queue.sent(consumer, entries)

    def make_room(self) -> None:
        """The client reads again: every consumer may be sent a turn's worth."""
        for subscription in self.by_consumer.values():
            self.make_room_for(subscription.consumer)

    def make_room_for(self, consumer: Consumer) -> None:
        """This consumer may be sent a turn's worth again."""
        consumer.room_bytes = TURN_BYTES_MAX
        if consumer.parked:
            subscription = self.by_consumer.get(consumer.id)
            if subscription is not None:
                subscription.queue.wake(consumer)

    def flush(self, durable_lsn: int) -> list[Part]:
        """What may leave now, in order."""
        return self.out.take(durable_lsn)

    # ---- silence ---------------------------------------------------------------------------------

    def next_beat_ms(self) -> int | None:
        """When ``beat`` has something to do, or None."""
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
        if self.beats.ttl_ms and self.blocked_by is None and now_ms >= self.last_in_ms + self.beats.ttl_ms:
            self.kick(
                f"Nothing received for {now_ms - self.last_in_ms} ms; {self.beats.ttl_ms} ms were agreed on", now_ms
            )
        elif self.beats.send_ms and now_ms >= self.last_beat_ms + self.beats.every_ms:
            self.last_beat_ms = now_ms
            self.out.parts().append(b"\n")
