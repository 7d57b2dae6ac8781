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

from artemis_py.errors import PipelineError
from artemis_py.security.client_login import ClientLogin
from artemis_py.security.client_tls import ClientTls, is_final, why_refused
from artemis_py.spark.logins import NAMED
from artemis_py.spark.write.options import Endpoint

TRANSACTION: Final = "t"
"""The name of every transaction of the client: they follow each other, so one name is enough."""

UNCONFIRMED_MAX: Final = 2
"""How many transactions may be unconfirmed: the next is sent while the broker syncs the previous one."""

# ERRORs after which another connection may do: connectionsAllowed, and a connectionTtl in which Spark had no rows.
_PASSING: Final = ("This acceptor allows", "Nothing received for")
_LATER: Final = "try again later"
"""The end of an ERROR after which another connection may do: too many logins wait, or nobody can check them now."""
_NOT_NOW: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_READ_BYTES: Final = 65536
_CONNECT_S: Final = 5.0
_PAUSE_FIRST_S: Final = 0.1
_PAUSE_MAX_S: Final = 3.0
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", ":": "\\c", "\r": "\\r"})
_UNESCAPES: Final = (("\\c", ":"), ("\\n", "\n"), ("\\r", "\r"), ("\\\\", "\\"))


def escaped(text: str) -> str:
    """A header name or value with STOMP 1.2 escapes. Raises PipelineError for a NUL, which a frame cannot contain."""
    if "\0" in text:
        raise PipelineError(f"A header contains NUL, which STOMP cannot carry: {text[:80]!r}")
    return text.translate(_ESCAPES)


@dataclass(frozen=True, slots=True)
class Transaction:
    """SEND frames that take effect together, with an id that the broker commits only once."""

    commit_id: str
    digest: str
    sends: bytes

    def frames(self, receipt: int) -> bytes:
        """Everything from BEGIN to COMMIT."""
        return b"BEGIN\ntransaction:%b\n\n\0%bCOMMIT\ntransaction:%b\n_AMQ_DUPL_ID:%b\ndigest:%b\nreceipt:%d\n\n\0" % (
            TRANSACTION.encode(), self.sends, TRANSACTION.encode(), escaped(self.commit_id).encode(),
            escaped(self.digest).encode(), receipt,
        )  # fmt: skip


@dataclass(slots=True)
class Confirmed:
    """The broker's confirmations so far. ``id_cache_size`` is how many ids it remembers, None if unknown."""

    transactions: int = 0
    duplicates: int = 0
    id_cache_size: int | None = None
    ids_persisted: bool = True


class _Lost(Exception):
    """The connection is lost; unconfirmed transactions must be sent again."""


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
        self._received = b""
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
        self._received = b""

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
            except (_Lost, OSError) as error:
                self._trouble = str(error) or type(error).__name__
                self.close()
                self._pause()

    def _connect(self) -> None:
        """Raises _Lost when there is nobody or no room, PipelineError when the broker does not want this client."""
        endpoint = self._endpoints[self._turn % len(self._endpoints)]
        self._turn += 1
        try:
            self._socket = self._opened(endpoint, min(_CONNECT_S, max(0.05, self._left_s())))
        except ssl.SSLError as error:
            if is_final(error):
                raise PipelineError(f"{endpoint}: {why_refused(error, NAMED)}") from None
            raise _Lost(f"{endpoint}: {error}") from None
        except OSError as error:
            raise _Lost(f"{endpoint}: {error}") from None
        self._socket.setblocking(False)
        user, passcode = self._login.user, self._login.passcode
        login = "" if user is None else f"login:{escaped(user)}\n"
        login += "" if passcode is None else f"passcode:{escaped(passcode)}\n"
        self._write(f"CONNECT\naccept-version:1.2\nhost:{endpoint.host}\nheart-beat:0,0\n{login}\n\0".encode())
        while (frame := self._next_frame()) is None:
            self._await(writes=False)
        if frame[0] != "CONNECTED":
            reason = _reason(frame)
            if _is_passing(reason):
                raise _Lost(f"{endpoint}: {reason}")
            who = "; options user and passwordFile, or tokenFile, say who connects"
            if not self._login.is_empty:
                who = f" to {self._login} of options {'token, tokenFile' if self._login.token else 'user, password'}"
            raise PipelineError(f"{endpoint} refuses the connection{who}: {reason}")
        self._pause_s = _PAUSE_FIRST_S

    def _opened(self, endpoint: Endpoint, timeout_s: float) -> socket.socket:
        opened = socket.create_connection((endpoint.host, endpoint.port), timeout_s)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not endpoint.has_tls:
            return opened
        if self._context is None:
            self._context = self._tls.context()
        try:
            return self._context.wrap_socket(opened, server_hostname=endpoint.host)
        except BaseException:
            opened.close()
            raise

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
                except _NOT_NOW:
                    continue
                except OSError:
                    self._read_last_words()
                    raise

    def _read_last_words(self) -> None:
        """The broker has closed: an ERROR may have come before."""
        assert self._socket is not None
        with contextlib.suppress(OSError):
            while data := self._socket.recv(_READ_BYTES):
                self._received += data
        self._take_frames()

    def _read(self) -> None:
        self._await(writes=False)
        self._take_frames()

    def _await(self, *, writes: bool) -> bool:
        """Wait until something came, which is read, or the socket takes bytes; tells whether it does."""
        assert self._socket is not None
        left_s = self._left_s()
        is_there = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0
        wait_s = 0.0 if is_there else max(0.0, left_s)
        readable, writable, _ = select.select([self._socket], [self._socket] if writes else [], [], wait_s)
        if readable or is_there:
            try:
                data = self._socket.recv(_READ_BYTES)
            except _NOT_NOW:
                data = None
            except ssl.SSLError as error:
                if is_final(error):
                    raise PipelineError(f"{self._shown_endpoint()}: {why_refused(error, NAMED)}") from None
                raise
            if data == b"":
                raise _Lost(f"{self._shown_endpoint()} closed the connection")
            self._received += data or b""
        elif not writable and left_s <= 0:
            raise self._too_late("is the address full with policy BLOCK, or does the broker hang?")
        return bool(writable)

    # ---- frames ----------------------------------------------------------------------------------

    def _next_frame(self) -> tuple[str, dict[str, str]] | None:
        """The next whole frame that was received: its command and headers. No answer to a sender has a NUL in it."""
        frame, end, rest = self._received.partition(b"\0")
        if not end:
            return None
        self._received = rest
        command, *lines = frame.lstrip(b"\r\n").partition(b"\n\n")[0].decode("utf-8", "replace").split("\n")
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers.setdefault(name, value)
        return command, headers

    def _take_frames(self) -> None:
        while (frame := self._next_frame()) is not None:
            command, headers = frame
            if command == "RECEIPT":
                self._confirm(int(headers["receipt-id"]), headers)
            elif command == "ERROR":
                raise self._refusal(frame)

    def _confirm(self, number: int, headers: dict[str, str]) -> None:
        if not self._waiting or self._waiting[0][0] != number:
            raise PipelineError(f"{self._shown_endpoint()} confirmed a transaction that was not sent: {number}")
        self._waiting.popleft()
        confirmed = self.confirmed
        confirmed.transactions += 1
        confirmed.duplicates += headers.get("duplicate") == "true"
        size = headers.get("id-cache-size")
        confirmed.id_cache_size = None if size is None else int(size)
        confirmed.ids_persisted = headers.get("id-cache-persisted") != "false"
        self._renew_deadline()

    def _refusal(self, frame: tuple[str, dict[str, str]]) -> PipelineError:
        """The broker's own words, and what can be done. Raises _Lost when that is to try again."""
        reason = _reason(frame)
        if _is_passing(reason):
            raise _Lost(f"{self._shown_endpoint()}: {reason}")
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
        return PipelineError(f"{self._shown_endpoint()} refuses: {reason}{advice}")

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

    def _shown_endpoint(self) -> str:
        return str(self._endpoints[(self._turn - 1) % len(self._endpoints)])


def _is_passing(reason: str) -> bool:
    return reason.startswith(_PASSING) or reason.endswith(_LATER)


def _reason(frame: tuple[str, dict[str, str]]) -> str:
    command, headers = frame
    text = headers.get("message", command)
    for escape, plain in _UNESCAPES:
        text = text.replace(escape, plain)
    return text
