"""What the parts of a session share: the client, the frames that go out to it, and what the session waits for."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.addresses.address import Address
from artemis_py.core.addresses.full_policy import note_full
from artemis_py.core.consumer import client_fields
from artemis_py.core.events import BLOCKED, ERROR, UNBLOCKED
from artemis_py.core.notifications import SESSION_CLOSED, Fields
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Awaited, Task
from artemis_py.pending_output import PendingOutput
from artemis_py.security.identity import Identity
from artemis_py.security.rights import DENIED, Permit, Rights
from artemis_py.stomp.management_requests import PendingRequest
from artemis_py.stomp.service import StompService
from artemis_py.stomp.temporaries import Client
from artemis_py.stomp.wire import writer

# ---- remainder -------------------------------------------------------------------------------------------------------
#
# What the RECEIPT of an ACK with bookmarks tells.


@final
class Remainder:
    """What a queue still has when a client has settled bookmarks, for the RECEIPT, once all tasks are done."""

    __slots__ = ("_bookmarks", "_queue")

    def __init__(self, queue: Queue, bookmarks: list[int]) -> None:
        self._queue = queue
        self._bookmarks = bookmarks

    def headers(self) -> list[tuple[str, str]]:
        """``kept``: the bookmarks that are still on the queue; ``ready``: how many messages nobody has."""
        contents = self._queue.contents
        kept = ",".join(map(str, self._queue.still_there(self._bookmarks)))
        return [("kept", kept), ("ready", str(contents.order.count + contents.paged.count))]


# ---- unfinished frame ------------------------------------------------------------------------------------------------
#
# What a frame starts and one turn does not finish.


Unfinished = Task | PendingRequest


@final
class UnfinishedFrame:
    """A frame with tasks that are not done. The session's later frames wait for them, and so does its RECEIPT."""

    def __init__(
        self,
        tasks: list[Unfinished],
        command: str,
        receipt: str | None,
        extra: list[tuple[str, str]] | Remainder | PendingRequest | None,
    ) -> None:
        self._tasks = tasks
        self.command = command
        self.receipt = receipt
        self.extra = extra
        """Further headers of the RECEIPT."""
        self.is_answered = False

    @property
    def may_go_on(self) -> bool:
        """Are all of them done?"""
        return all(task.done for task in self._tasks)

    @property
    def has_failed(self) -> bool:
        """Did one of them fail? The log says why."""
        return any(task.failed for task in self._tasks)


# ---- state -----------------------------------------------------------------------------------------------------------
#
# What the parts of a session share: the client, the frames that go out to it, and what the session waits for.


_WHY_MAX: Final = 300
_SHOWN_MAX: Final = 500


@final
class SessionState:
    """The session makes one and hands it to each of its parts. A part keeps its own fields to itself."""

    __slots__ = (
        "address", "begun_ms", "blocked_by", "broker", "certificate", "client_id", "has_ended",
        "is_outdated", "lsn_before", "lsn_written", "origin", "out", "owner", "rights", "service", "stop_at",
        "tells_routing", "unfinished", "user", "version",
    )  # fmt: skip

    def __init__(self, service: StompService, origin: int, owner: object, now_ms: int = 0) -> None:
        self.service = service
        self.broker = service.broker
        self.owner = owner
        """Whoever carries the session's bytes; its consumers lead back to it."""
        self.origin = origin
        """The connection's number, which its messages carry for no-local."""
        self.begun_ms = now_ms
        """When the client connected, in epoch ms."""
        self.address = ""
        """The client's address as host:port; empty if unknown."""
        self.version = "1.2"
        self.tells_routing = False
        """Do RECEIPTs of SENDs tell on which queues the message is? The client asks for it in CONNECT."""
        self.client_id: str | None = None
        self.user: str | None = None
        self.certificate: bytes | None = None
        """The client's verified TLS certificate as DER, until it has logged in."""
        self.rights: Rights | None = None
        """What the client may do; None where nothing is checked."""
        self.is_outdated = False
        """Has its login changed meanwhile? Then it begins to read nothing more."""
        self.out = PendingOutput()
        self.blocked_by: Awaited | None = None
        """What the session waits for before its next frame: a full address or queue, the file of a large body, a slow
        disk, or the tasks of the frame before.
        """
        self.stop_at = 0
        """The session stops when the turn's budget is down to this."""
        self.unfinished: list[Unfinished] = []
        """Tasks that the current frame started and this turn does not finish."""
        self.lsn_written = 0
        """The highest lsn that this session wrote; a RECEIPT waits for it."""
        self.lsn_before = 0
        """The log's last lsn before the current frame."""
        self.has_ended = False
        """The client got an ERROR after which nothing more is read from it."""

    @property
    def name(self) -> str:
        """The session's name, as CONNECTED tells it."""
        return f"s{self.origin}"

    @property
    def peer(self) -> str:
        """The client's IP address; empty if unknown."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def who(self) -> dict[str, str | int]:
        """For a line of the log: the client, as far as it is known."""
        return client_fields(self.origin, self.user, self.client_id, self.address, self.service.acceptor.name)

    def note(self, code: str, why: str) -> None:
        """Note for the operational log what became of the client, or of a frame."""
        self.broker.events.note(code, "", {**self.who, "why": why[:_WHY_MAX]}, kind=self.name)

    def admit(self, identity: Identity | None) -> None:
        """The client has logged in, or need not (None)."""
        self.certificate = None
        if identity is not None and self.service.authorizer is not None:
            self.rights = self.service.authorizer.rights_of(identity)

    def leave(self) -> None:
        """The session that was open is over."""
        self.blocked_by = None
        self.unfinished.clear()  # it goes on; nobody here waits for it
        self.service.traffic.sessions_open -= 1
        self.broker.quota.disconnected(self.user or "")
        self.notify(SESSION_CLOSED)

    def notify(self, type: str) -> None:
        """Send a notification: the session was created or closed."""
        broker = self.broker
        if broker.notifications.is_heard and not broker.config.suppress_session_notifications:
            fields: Fields = {
                "session": self.name,
                "connection": self.origin,
                "remoteAddress": self.address,
                "user": self.user or "",
                "clientID": self.client_id or "",
                "protocol": "STOMP",
            }
            broker.notifications.note(type, fields)

    @property
    def client(self) -> Client:
        """Who uses this connection, as far as CONNECT said."""
        return Client(self.origin, self.client_id, self.user)

    def permit(self, permission: str) -> Permit | None:
        """For one use of a destination (``send``, ``consume``, ``browse``): what the client may do there."""
        return None if self.rights is None else Permit(self.rights, permission)

    # ---- waiting ---------------------------------------------------------------------------------

    def wait_for_queue(self, queue: Queue) -> None:
        """Wait until a full queue has room."""
        self.blocked_by = queue
        self.broker.note_event(BLOCKED, queue, self.who)

    def wait_for_room(self, address: Address) -> None:
        """Wait until a full address has room."""
        self.blocked_by = address
        note_full(self.broker.events, BLOCKED, address, self)

    def tell_of_room(self, awaited: Queue | Address) -> None:
        """What the session waited for has room."""
        if isinstance(awaited, Queue):
            self.broker.note_event(UNBLOCKED, awaited, self.who)
        else:
            name = awaited.name
            self.broker.events.note(UNBLOCKED, "", {"address": name, **self.who}, kind=name)

    def leave_unfinished(self, task: Task | None) -> None:
        """Note a task that the current frame started; None if it is done."""
        if task is not None:
            self.unfinished.append(task)

    def has_unfinished(self) -> bool:
        """Is a task of the current frame not done? What it published may not be on all of its queues yet."""
        enqueuer = self.broker.enqueuer
        if enqueuer.begun:
            self.unfinished += enqueuer.take_begun()
        return len(self.unfinished) > 0

    def wait_for_unfinished(
        self, command: str, receipt: str | None, extra: list[tuple[str, str]] | Remainder | PendingRequest | None
    ) -> None:
        """Wait for the unfinished tasks of a frame."""
        tasks, self.unfinished = self.unfinished, []
        self.blocked_by = UnfinishedFrame(tasks, command, receipt, extra)

    def answer(self, frame: UnfinishedFrame) -> None:
        """Answer the frame whose tasks are done, once."""
        if frame.is_answered:
            return
        frame.is_answered = True
        self.lsn_written = self.lsn_before = self.broker.log.last_lsn
        if frame.has_failed:
            reason = f"{frame.command} was not completed because of an internal error; see the broker's log"
            self.refuse(reason, frame.receipt, syntax=False)
        elif frame.receipt is not None:
            self.confirm(frame.receipt, frame.extra)

    # ---- answers ---------------------------------------------------------------------------------

    def note_written(self) -> None:
        """Remember the lsn of what the current frame wrote, if it wrote anything."""
        last_lsn = self.broker.log.last_lsn
        if last_lsn != self.lsn_before:
            self.lsn_written = self.lsn_before = last_lsn

    def confirm(self, receipt: str, extra: list[tuple[str, str]] | Remainder | PendingRequest | None = None) -> None:
        """Answer RECEIPT once everything that the session wrote so far is durable. ``extra`` are further headers."""
        self.note_written()
        if isinstance(extra, PendingRequest) and extra.why_failed and self.tells_routing:
            extra = [*extra.headers(), ("reason", writer.escape(extra.why_failed[:_SHOWN_MAX], self.version))]
        elif isinstance(extra, Remainder | PendingRequest):
            extra = extra.headers()
        self.out.parts(self.lsn_written).append(writer.receipt(receipt, self.version, extra or ()))
        self.service.traffic.frames_out["RECEIPT"] += 1

    def confirm_run(self, receipts: list[tuple[int, str]], behind: int) -> None:
        """Answer the receipts of frames that were carried out together, each with the frame's place: of those before
        the place ``behind``.
        """
        self.note_written()
        version, parts, count = self.version, self.out.parts(self.lsn_written), 0
        for place, receipt in receipts:
            if place < behind:
                parts.append(writer.receipt(receipt, version))
                count += 1
        self.service.traffic.frames_out["RECEIPT"] += count

    def answer_error(self, message: str, receipt: str | None) -> None:
        """Answer ERROR."""
        self.out.parts().append(writer.error(message, self.version, receipt))
        self.service.traffic.frames_out["ERROR"] += 1

    def refuse(self, message: str, receipt: str | None, *, syntax: bool) -> None:
        """Answer ERROR to a frame. STOMP 1.2 then ends the session; 1.1 only after bad syntax; 1.0 goes on."""
        self.answer_error(message, receipt)
        if not message.startswith(DENIED):  # who was denied what is told already
            self.note(ERROR, message)
        if self.version == "1.2" or (syntax and self.version == "1.1"):
            self.has_ended = True
