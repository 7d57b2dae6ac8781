"""Carries out the frames that have no body, and confirms them."""

from __future__ import annotations

from typing import Final, final

from artemis_py.stomp.session.acknowledging import Acknowledging
from artemis_py.stomp.session.remainder import Remainder
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.session.subscriptions import Subscriptions
from artemis_py.stomp.session.transactions import Transactions
from artemis_py.stomp.wire.frames import Frame, FrameError

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
        self._state.service.traffic.count_in(frame.command)
        self._state.broker.budget.spend(COMMAND_UNITS)
        if body.strip(b"\r\n"):
            raise FrameError(f"{frame.command} has no body", syntax=True)

    def carry_out(self, frame: Frame, now_ms: int) -> bool:
        """Do what a frame asks for, and confirm it; False if it has to wait and come again. Raises ArtemisError."""
        command, headers = frame.command, frame.headers
        extra: list[tuple[str, str]] | Remainder | None = None
        if command in ("ACK", "NACK"):
            extra = self._acknowledging.acknowledge(frame, now_ms, refuses=command == "NACK")
        elif command == "SUBSCRIBE":
            self._subscriptions.subscribe(headers, now_ms)
        elif command == "UNSUBSCRIBE":
            self._subscriptions.unsubscribe(headers, now_ms)
        elif command == "BEGIN":
            self._transactions.begin(headers)
        elif command == "COMMIT":
            extra = self._transactions.commit(headers, now_ms)
            if extra is None:
                self._state.service.traffic.count_in(command, -1)  # it comes again
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
            self._state.begin_errand(frame.command, receipt, extra)
        elif receipt is not None:
            self._state.confirm(receipt, extra)
