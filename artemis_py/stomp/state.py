"""What the parts of a session share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from artemis_py.core.transaction import Transaction
from artemis_py.stomp import writer
from artemis_py.stomp.heartbeat import Beats
from artemis_py.stomp.outbound import Outbound
from artemis_py.stomp.service import Awaited, StompService
from artemis_py.stomp.subscription import Subscription

_NO_BEATS: Final = Beats()


class SessionState(ABC):
    """Fields of a session and the answers that every part of it gives. The parts: sending, subscribing,
    acknowledging. They follow each other in one line, which is the inheritance that mypyc compiles.
    """

    __slots__ = (
        "beats", "blocked_by", "by_consumer", "client_id", "lsn_before", "lsn_written", "name", "origin", "out",
        "owner", "peer", "service", "subscriptions", "temporary_addresses", "transactions", "user", "version",
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
        self.temporary_addresses: set[str] | None = None
        self.blocked_by: Awaited | None = None
        """What this sender waits for: a full address, a large body that is not written yet, or a disk that cannot
        follow.
        """
        self.lsn_written = 0
        """The highest lsn of what this session wrote; a RECEIPT waits for it."""
        self.lsn_before = 0
        """The log's last lsn before the frame that is being carried out."""

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
