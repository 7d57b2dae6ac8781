"""What the parts of a session share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, final

from artemis_py.core.address import Address
from artemis_py.core.queue_work import QueueWork
from artemis_py.core.spreading import Placing
from artemis_py.core.transaction import Transaction
from artemis_py.core.verdicts import Verdicts
from artemis_py.stomp import writer
from artemis_py.stomp.frames import Send
from artemis_py.stomp.heartbeat import Beats
from artemis_py.stomp.outbound import Outbound
from artemis_py.stomp.service import Awaited, StompService
from artemis_py.stomp.subscription import Subscription
from artemis_py.stomp.temporaries import Client

Unfinished = QueueWork | Placing
"""What was decided and is not done."""
_NO_BEATS: Final = Beats()


@final
class Asked:
    """A SEND about which selectors are asked before it is published, the address that it goes to, and the answers."""

    __slots__ = ("address", "frame", "verdicts")

    def __init__(self, frame: Send, address: Address, verdicts: Verdicts) -> None:
        self.frame = frame
        self.address = address
        self.verdicts = verdicts


@final
class Errand:
    """What one frame of a session asks for and a turn does not finish. The session's later frames wait for it, and so
    does the frame's RECEIPT.
    """

    def __init__(
        self, works: list[Unfinished], command: str, receipt: str | None, told: list[tuple[str, str]] | None
    ) -> None:
        self._works = works
        self.command = command
        self.receipt = receipt
        self.told = told
        """What the RECEIPT says beside that."""
        self.is_told = False
        """The client was told that it is over."""

    @property
    def may_go_on(self) -> bool:
        """Is all of it over?"""
        return all(work.done for work in self._works)

    @property
    def has_failed(self) -> bool:
        """Did some of it break off? (The log says why.)"""
        return any(work.failed for work in self._works)


class SessionState(ABC):
    """Fields of a session and the answers that every part of it gives. The parts: sending, subscribing,
    acknowledging. They follow each other in one line, which is the inheritance that mypyc compiles.
    """

    __slots__ = (
        "asked", "beats", "blocked_by", "by_consumer", "client_id", "lsn_before", "lsn_written", "name", "origin",
        "out", "owner", "peer", "service", "stop_at", "subscriptions", "transactions", "unfinished", "user", "version",
    )  # fmt: skip

    def __init__(self, service: StompService, origin: int, owner: object) -> None:
        self.service = service
        self.owner = owner
        """Whoever carries the session's bytes; its consumers lead back to it."""
        self.origin = origin
        """The connection's number, which its messages carry for no-local."""
        self.name = f"s{origin}"
        self.peer = ""
        """Where the client is, as host:port; empty where nobody knows."""
        self.version = "1.2"
        self.client_id: str | None = None
        self.user: str | None = None
        self.beats = _NO_BEATS
        self.out = Outbound()
        self.subscriptions: dict[str, Subscription] = {}
        self.by_consumer: dict[int, Subscription] = {}
        self.transactions: dict[str, Transaction] = {}
        self.blocked_by: Awaited | None = None
        """What this sender waits for: a full address, a large body that is not written yet, a disk that cannot follow,
        or an ``Errand`` of its own.
        """
        self.stop_at = 0
        """Where the turn's budget must be for the session to stop."""
        self.asked: Asked | None = None
        """What selectors say of the first SEND that waits, where they are asked over several turns."""
        self.unfinished: list[Unfinished] = []
        """What the frame that is being carried out began and a turn does not finish."""
        self.lsn_written = 0
        """The highest lsn of what this session wrote; a RECEIPT waits for it."""
        self.lsn_before = 0
        """The log's last lsn before the frame that is being carried out."""

    @property
    def operations_left(self) -> int:
        """How many more messages the session may send, acknowledge and refuse in its open transactions."""
        used = sum([transaction.operation_count for transaction in self.transactions.values()])
        return self.service.limits.transaction_operations_max - used

    @property
    def too_many_operations(self) -> str:
        """Why no more of them are taken."""
        return (
            f"Open transactions hold {self.service.limits.transaction_operations_max} operations, the most allowed "
            "(maxTransactionOperations of the acceptor): commit more often"
        )

    def leave_unfinished(self, work: QueueWork | None) -> None:
        """The frame that is being carried out began something; None: it is done."""
        if work is not None:
            self.unfinished.append(work)

    def leave_begun(self) -> bool:
        """What the frame that is being carried out published may not be on all of its queues yet; True when it is
        not.
        """
        router = self.service.broker.router
        if router.begun:
            self.unfinished += router.take_begun()
        return len(self.unfinished) > 0

    def begin_errand(self, command: str, receipt: str | None, told: list[tuple[str, str]] | None) -> None:
        """What a frame asked for goes on in later turns: wait for it before anything else."""
        works, self.unfinished = self.unfinished, []
        self.blocked_by = Errand(works, command, receipt, told)

    @property
    def client(self) -> Client:
        """Who uses this connection, as far as it said."""
        return Client(self.origin, self.client_id, self.user)

    def note_written(self) -> None:
        """Remember the lsn of what the frame wrote, if it wrote anything."""
        last_lsn = self.service.broker.log.last_lsn
        if last_lsn != self.lsn_before:
            self.lsn_written = self.lsn_before = last_lsn

    def confirm(self, receipt: str, extra: list[tuple[str, str]] | None = None) -> None:
        """Answer RECEIPT, with further headers, once everything that the session wrote so far is durable."""
        self.note_written()
        self.out.parts(self.lsn_written).append(writer.receipt(receipt, self.version, extra or ()))
        self.service.traffic.went("RECEIPT")

    def confirm_run(self, receipts: list[str]) -> None:
        """Answer the receipts of frames that were carried out together."""
        self.note_written()
        version = self.version
        self.out.parts(self.lsn_written).extend([writer.receipt(receipt, version) for receipt in receipts])
        self.service.traffic.went("RECEIPT", len(receipts))

    @abstractmethod
    def refuse(self, message: str, receipt: str | None, *, syntax: bool) -> None:
        """Answer ERROR, and close where the version says so."""
