"""A small blocking STOMP client: sends transactions and reads receipts, over one connection at a time."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from artemis_py.errors import PipelineError, StompError
from artemis_py.security.client_login import ClientLogin
from artemis_py.security.client_tls import ClientTls
from artemis_py.spark.acceptors import (
    NOT_NOW,
    Endpoint,
    LostError,
    has_more,
    is_passing,
    opened,
    received,
    refused_connection,
)
from artemis_py.stomp.client import ROUTING, Client, ServerFrame, frame

TRANSACTION: Final = "t"
"""The name of every transaction of the client: they follow each other, so one name is enough."""

UNCONFIRMED_MAX: Final = 2
"""How many transactions may be unconfirmed: the next is sent while the broker syncs the previous one."""

_NO_BEATS: Final = (0, 0)
_READ_BYTES: Final = 65536
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


class StompClient:
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
        self._pause_s = _PAUSE_FIRST_S
        self._socket: socket.socket | None = None
        self._client = Client(beats_ms=_NO_BEATS)
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
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # ---- the loop --------------------------------------------------------------------------------

    def _run(self, unconfirmed_max: int, *, is_new: bool) -> None:
        while True:
            try:
                if self._socket is None:
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
                    self._read()
                return
            except (LostError, OSError) as error:
                self._trouble = str(error) or type(error).__name__
                self.close()
                self._pause()

    def _connect(self) -> None:
        """Raises LostError when there is nobody or no room, PipelineError when the broker does not want this client."""
        endpoint = self._endpoints[self._turn % len(self._endpoints)]
        self._turn += 1
        if endpoint.has_tls and self._context is None:
            self._context = self._tls.context()
        timeout_s = min(_CONNECT_S, max(0.05, self._left_s()))
        self._socket = opened(endpoint, timeout_s, self._context if endpoint.has_tls else None)
        self._client = Client(beats_ms=_NO_BEATS)
        login, more = self._login, [(ROUTING, "true")]
        self._write(self._client.connect(endpoint.host, login.user, login.passcode, more))
        while (answer := self._next()) is None:
            self._await(writes=False)
        if answer.command != "CONNECTED":
            if is_passing(answer.reason):
                raise LostError(f"{endpoint}: {answer.reason}")
            raise refused_connection(endpoint, self._login, answer.reason)
        self._pause_s = _PAUSE_FIRST_S

    def _write(self, data: bytes) -> None:
        """Write all of it; receipts and errors that come meanwhile are taken."""
        assert self._socket is not None
        view = memoryview(data)
        while view:
            is_writable = self._await(writes=True)
            self._take_frames()
            if is_writable:
                try:
                    view = view[self._socket.send(view) :]
                except NOT_NOW:
                    continue
                except OSError:
                    self._read_last_words()
                    raise

    def _read_last_words(self) -> None:
        """The broker has closed: an ERROR may have come before."""
        assert self._socket is not None
        with contextlib.suppress(OSError):
            while data := self._socket.recv(_READ_BYTES):
                self._client.feed(data)
        self._take_frames()

    def _read(self) -> None:
        self._await(writes=False)
        self._take_frames()

    def _await(self, *, writes: bool) -> bool:
        """Wait until something came, which is read, or the socket takes bytes; tells whether it does."""
        assert self._socket is not None
        left_s = self._left_s()
        is_there = has_more(self._socket)
        wait_s = 0.0 if is_there else max(0.0, left_s)
        readable, writable, _ = select.select([self._socket], [self._socket] if writes else [], [], wait_s)
        if readable or is_there:
            data = received(self._socket, self._endpoint, _READ_BYTES)
            if data == b"":
                raise LostError(f"{self._endpoint} closed the connection")
            self._client.feed(data or b"")
        elif not writable and left_s <= 0:
            raise self._too_late("is the address full with policy BLOCK, or does the broker hang?")
        return bool(writable)

    # ---- frames ----------------------------------------------------------------------------------

    def _next(self) -> ServerFrame | None:
        try:
            return self._client.next()
        except StompError as error:
            raise LostError(f"{self._endpoint}: {error}") from None

    def _take_frames(self) -> None:
        while (answer := self._next()) is not None:
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
        elif "with other messages" in reason:
            advice = (
                ": its rows differ from the first time, or came in another order or split. If this is another run, "
                "give it another publishId. Otherwise give every partition an order (sortWithinPartitions), or raise "
                "rowsPerTransaction and bytesPerTransaction above a partition; keep both options and the number of "
                "partitions as they were"
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
        time.sleep(min(self._pause_s, max(0.0, self._left_s())))
        self._pause_s = min(2 * self._pause_s, _PAUSE_MAX_S)

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
