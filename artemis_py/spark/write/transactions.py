"""Sends transactions to a broker and reads their receipts, over one connection at a time."""

from __future__ import annotations

import ssl
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from artemis_py.client.endpoint import Endpoint
from artemis_py.client.retry import Pauses
from artemis_py.client.stomp_connection import CertificateError, LostError, RefusedError, StompConnection
from artemis_py.errors import PipelineError, StompError
from artemis_py.security.client_login import ClientLogin
from artemis_py.security.client_tls import ClientTls
from artemis_py.spark.shared_options import NAMED, is_passing, refused_connection
from artemis_py.stomp.client import ROUTING, frame

TRANSACTION: Final = "t"
"""The name of every transaction of the client: they follow each other, so one name is enough."""

UNCONFIRMED_MAX: Final = 2
"""How many transactions may be unconfirmed: the next is sent while the broker syncs the previous one."""

OTHER_MESSAGES: Final = "with other messages"
"""In what the broker says of a transaction whose id it knows, and whose messages it does not."""

_NO_BEATS: Final = (0, 0)
_CONNECT_S: Final = 5.0
_PAUSE_FIRST_S: Final = 0.1
_PAUSE_MAX_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Transaction:
    """SEND frames that take effect together, with an id that the broker commits only once."""

    commit_id: str
    digest: str
    sends: bytes

    def frames(self, receipt: int) -> bytes:
        """Everything from BEGIN to COMMIT. Raises PipelineError for an id that no header can have."""
        named = ("transaction", TRANSACTION)
        end = [named, ("_AMQ_DUPL_ID", self.commit_id), ("digest", self.digest), ("receipt", str(receipt))]
        try:
            return frame("BEGIN", [named]) + self.sends + frame("COMMIT", end)
        except StompError as error:
            raise PipelineError(str(error)) from None


@dataclass(slots=True)
class Confirmed:
    """The broker's confirmations so far. ``id_cache_size`` is how many ids it remembers, None if unknown."""

    transactions: int = 0
    duplicates: int = 0
    id_cache_size: int | None = None
    ids_persisted: bool = True
    nowhere: int = 0
    """Messages that are on no queue, because none took them, or a full address dropped them."""


class TransactionSender:
    """Sends transactions in order and waits for their receipts; after a lost connection it connects to the next
    endpoint.

    ``timeout_s`` limits how long it waits without a confirmation: for a broker that is down, for room on an address
    with BLOCK, for a slow disk.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        timeout_s: float,
        login: ClientLogin | None = None,
        tls: ClientTls | None = None,
    ) -> None:
        self.confirmed = Confirmed()
        self._endpoints = endpoints
        self._timeout_s = timeout_s
        self._login = login or ClientLogin()
        self._tls = tls or ClientTls()
        self._context: ssl.SSLContext | None = None
        self._turn = 0
        self._pauses = Pauses(_PAUSE_FIRST_S, _PAUSE_MAX_S)
        self._connection: StompConnection | None = None
        self._number = 0
        self._waiting: deque[tuple[int, Transaction]] = deque()
        self._deadline_s = 0.0
        self._trouble = "no answer"

    # ---- what a writer calls ---------------------------------------------------------------------

    def send(self, transaction: Transaction) -> None:
        """Send a transaction; returns when no more than one is unconfirmed.

        Raises PipelineError if the broker refuses it, or confirms nothing in time.
        """
        self._renew_deadline()
        self._number += 1
        self._waiting.append((self._number, transaction))
        self._run(UNCONFIRMED_MAX - 1, is_new=True)

    def finish(self) -> Confirmed:
        """Wait for every receipt and close the connection. Raises PipelineError as ``send`` does."""
        self._renew_deadline()
        self._run(0, is_new=False)
        self.close()
        return self.confirmed

    def close(self) -> None:
        """Close the connection; unconfirmed transactions may or may not have been committed."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # ---- the loop --------------------------------------------------------------------------------

    def _run(self, unconfirmed_max: int, *, is_new: bool) -> None:
        while True:
            try:
                if self._connection is None:
                    if not self._waiting:
                        return
                    self._connect()
                    for number, transaction in list(self._waiting):  # some are confirmed while others are written
                        self._write(transaction.frames(number))
                elif is_new:
                    number, transaction = self._waiting[-1]
                    self._write(transaction.frames(number))
                is_new = False
                while len(self._waiting) > unconfirmed_max:
                    self._await(writes=False)
                return
            except LostError as error:
                self._trouble = str(error)
                self.close()
                self._pause()
            except CertificateError as error:
                raise PipelineError(str(error)) from None

    def _connect(self) -> None:
        """Raises LostError when there is nobody or no room, PipelineError when the broker does not want this client."""
        endpoint = self._endpoints[self._turn % len(self._endpoints)]
        self._turn += 1
        if endpoint.has_tls and self._context is None:
            self._context = self._tls.context()
        left_s = max(0.05, self._left_s())
        try:
            self._connection = StompConnection.open(
                endpoint,
                self._login,
                self._context,
                connect_s=min(_CONNECT_S, left_s),
                timeout_s=left_s,
                named=NAMED,
                beats_ms=_NO_BEATS,
                more=[(ROUTING, "true")],
            )
        except RefusedError as error:
            if is_passing(error.reason):
                raise LostError(str(error)) from None
            raise refused_connection(endpoint, self._login, error.reason) from None
        self._pauses.reset()

    def _write(self, data: bytes) -> None:
        """Write all of it; receipts and errors that come meanwhile are taken."""
        assert self._connection is not None
        view = memoryview(data)
        try:
            while view:
                if self._await(writes=True):
                    view = view[self._connection.write_some(view) :]
        except LostError:
            self._take_frames()  # an ERROR may have come before
            raise

    def _await(self, *, writes: bool) -> bool:
        """Wait until something came, which is taken, or the socket takes bytes; tells whether it does."""
        assert self._connection is not None
        is_writable = self._connection.wait(self._left_s(), writes=writes)
        self._take_frames()
        if not is_writable and self._left_s() <= 0:
            raise self._too_late("is the address full with policy BLOCK, or does the broker hang?")
        return is_writable

    # ---- frames ----------------------------------------------------------------------------------

    def _take_frames(self) -> None:
        assert self._connection is not None
        for answer in self._connection.frames():
            if answer.command == "RECEIPT":
                self._confirm(int(answer.headers["receipt-id"]), answer.headers)
            elif answer.command == "ERROR":
                raise self._refusal(answer.reason)

    def _confirm(self, number: int, headers: dict[str, str]) -> None:
        if not self._waiting or self._waiting[0][0] != number:
            raise PipelineError(f"{self._endpoint} confirmed a transaction that was not sent: {number}")
        self._waiting.popleft()
        confirmed = self.confirmed
        confirmed.transactions += 1
        confirmed.duplicates += headers.get("duplicate") == "true"
        size = headers.get("id-cache-size")
        confirmed.id_cache_size = None if size is None else int(size)
        confirmed.ids_persisted = headers.get("id-cache-persisted") != "false"
        confirmed.nowhere += int(headers.get("unrouted", "0")) + int(headers.get("dropped", "0"))
        self._renew_deadline()

    def _refusal(self, reason: str) -> PipelineError:
        """The broker's own words, and what can be done. Raises LostError when that is to try again."""
        if is_passing(reason):
            raise LostError(f"{self._endpoint}: {reason}")
        self.close()
        advice = ""
        if reason.endswith("is full"):
            advice = (
                ": consume messages, or give it address-full-policy PAGE or BLOCK; nothing of the transaction was "
                "published"
            )
        elif OTHER_MESSAGES in reason:
            advice = (
                ": its rows differ from the first time, or came in another order or split. If this is another run, "
                "give it another publishId. Otherwise repeat it with the same options and number of partitions; give "
                "every partition an order (sortWithinPartitions), or for later runs raise rowsPerTransaction and "
                "bytesPerTransaction above a partition"
            )
        elif "Open transactions hold more" in reason:
            advice = ": lower bytesPerTransaction or rowsPerTransaction"
        return PipelineError(f"{self._endpoint} refuses: {reason}{advice}")

    # ---- time ------------------------------------------------------------------------------------

    def _renew_deadline(self) -> None:
        self._deadline_s = time.monotonic() + self._timeout_s

    def _left_s(self) -> float:
        return self._deadline_s - time.monotonic()

    def _pause(self) -> None:
        """Wait before the next connection, longer each time. Raises PipelineError when the time is over."""
        if self._left_s() <= 0:
            raise self._too_late("is the broker running?")
        time.sleep(min(self._pauses.next_s(), max(0.0, self._left_s())))

    def _too_late(self, question: str) -> PipelineError:
        self.close()
        endpoints = ", ".join(map(str, self._endpoints))
        return PipelineError(
            f"{endpoints}: nothing was confirmed for {self._timeout_s:g} s ({self._trouble}): {question} The option "
            "timeout sets how long the sink waits"
        )

    @property
    def _endpoint(self) -> Endpoint:
        return self._endpoints[(self._turn - 1) % len(self._endpoints)]
