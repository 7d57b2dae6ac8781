"""Sends parts of files to sockets: one thread serves all. Without TLS no byte passes through the interpreter; with TLS
the thread reads and encrypts, too, so the event loop does neither.

The event loop only starts a transfer and learns of its end. A slow disk, and a slow or fast reader, cost the broker's
turns only the moments in which the thread needs the interpreter: two per chunk. These and the kernel's work add up, so
all transfers together have a speed limit. Transfers to the same machine have a lower one while the broker is busy,
because their readers use the processors that it needs.
"""

from __future__ import annotations

import os
import select
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from typing import Final

from artemis_py.server.http.requests import FileBody, HttpLimits

CHUNK_BYTES: Final = 1 << 20
PIECE_BYTES: Final = 1 << 17
"""How much of a file is read and encrypted at once."""
_SHORT: Final = "the file is shorter than announced"
Encrypt = Callable[[bytes], bytes]


class Transfer:
    """One body being sent. ``is_near``: the client is on this machine. ``sent_bytes`` of it are sent. A transfer
    ends when everything is sent, when it fails, or when it is cancelled.
    """

    __slots__ = (
        "_encrypt", "_encrypted", "_read_bytes", "accepted_bytes", "body", "done", "is_cancelled", "is_near",
        "sent_bytes", "sent_s", "socket_fd",
    )  # fmt: skip

    def __init__(
        self,
        socket_fd: int,
        body: FileBody,
        is_near: bool,
        done: Callable[[OSError | None], None],
        encrypt: Encrypt | None = None,
    ) -> None:
        self.socket_fd = socket_fd
        self.body = body
        self._encrypt = encrypt
        self._encrypted = memoryview(b"")
        """Of the piece last read, what the socket has not accepted yet."""
        self._read_bytes = 0
        self.is_near = is_near
        self.done = done
        self.sent_bytes = 0
        self.accepted_bytes = 0
        """What the socket has accepted, encryption included: the progress of a client that reads slowly."""
        self.sent_s = 0.0
        """When its last chunk was sent."""
        self.is_cancelled = False

    @property
    def is_complete(self) -> bool:
        """Has the socket accepted everything?"""
        return self.sent_bytes == self.body.size_bytes and not self._encrypted

    def send(self) -> int:
        """Send a chunk; returns the number of bytes of the body that it has brought. Raises OSError."""
        body = self.body
        if self._encrypt is not None:
            return self._send_encrypted(self._encrypt)
        left_bytes = body.size_bytes - self.sent_bytes
        chunk_bytes = min(left_bytes, CHUNK_BYTES)
        sent_bytes = os.sendfile(self.socket_fd, body.descriptor, body.offset + self.sent_bytes, chunk_bytes)
        if not sent_bytes and left_bytes:
            raise OSError(_SHORT)
        self.sent_bytes += sent_bytes
        self.accepted_bytes += sent_bytes
        return sent_bytes

    def _send_encrypted(self, encrypt: Encrypt) -> int:
        """Read and encrypt a piece if the one before has been accepted, and send it. A piece counts as sent when the
        socket has accepted all of it.
        """
        body = self.body
        if not self._encrypted:
            size_bytes = min(body.size_bytes - self.sent_bytes, PIECE_BYTES)
            piece = os.pread(body.descriptor, size_bytes, body.offset + self.sent_bytes)
            if not piece and size_bytes:
                raise OSError(_SHORT)
            self._read_bytes = len(piece)
            self._encrypted = memoryview(encrypt(piece))
        accepted_bytes = os.write(self.socket_fd, self._encrypted)
        self.accepted_bytes += accepted_bytes
        self._encrypted = self._encrypted[accepted_bytes:]
        if self._encrypted:
            return 0
        self.sent_bytes += self._read_bytes
        return self._read_bytes


class FileSender:
    """``send`` and ``cancel`` are for the event loop's thread. ``done`` is called there, too, through
    ``call_threadsafe``. The thread starts with the first transfer, and asks ``is_busy``. ``limits`` sets the speed.
    """

    def __init__(
        self,
        call_threadsafe: Callable[[Callable[[], None]], object],
        limits: HttpLimits,
        is_busy: Callable[[], bool],
    ) -> None:
        self._call_threadsafe = call_threadsafe
        self._limits = limits
        self._is_busy = is_busy
        self._due_s = 0.0
        """When the next chunk may be sent."""
        self._near_due_s = 0.0
        """When the next chunk to this machine may be sent."""
        self._new: deque[Transfer] = deque()
        self._under_way: set[Transfer] = set()
        self._paused: set[Transfer] = set()
        """Transfers to this machine that wait for ``_near_due_s``. The selector has the others."""
        self._is_stopping = False
        self._worker: threading.Thread | None = None

    def send(
        self,
        socket_fd: int,
        body: FileBody,
        is_near: bool,
        done: Callable[[OSError | None], None],
        encrypt: Encrypt | None = None,
    ) -> Transfer:
        """Start to send a body, which now belongs to the thread. ``socket_fd`` must be non-blocking, and nothing else
        may write to it until ``done`` is called with None or the failure. With TLS, ``encrypt`` makes records; the
        thread calls it.
        """
        transfer = Transfer(os.dup(socket_fd), body, is_near, done, encrypt)
        self._new.append(transfer)
        try:
            if self._worker is None:
                self._worker = self._start()
        except BaseException:
            self._new.remove(transfer)
            os.close(transfer.socket_fd)
            raise
        self._wake()
        return transfer

    def _start(self) -> threading.Thread:
        self._selector = selectors.DefaultSelector()
        self._wake_out, self._wake_in = socket.socketpair()
        self._wake_out.setblocking(False)
        self._wake_in.setblocking(False)
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        thread = threading.Thread(target=self._run, name="file sender", daemon=True)
        thread.start()
        return thread

    def cancel(self, transfer: Transfer) -> None:
        """Cancel a transfer; ``done`` is not called."""
        transfer.is_cancelled = True
        if self._worker is not None:
            self._wake()

    def stop(self) -> None:
        """Cancel all transfers and end the thread."""
        if self._worker is None:
            return
        self._is_stopping = True
        self._wake()
        self._worker.join()
        self._worker = None
        self._selector.close()
        self._wake_in.close()
        self._wake_out.close()

    def _wake(self) -> None:
        with suppress(BlockingIOError):
            self._wake_in.send(b"\0")

    # ---- in the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        woken = select.poll()
        woken.register(self._wake_out, select.POLLIN)
        while not self._is_stopping:
            early_s = self._due_s - time.monotonic()
            if early_s > 0:
                if woken.poll(early_s * 1000):
                    self._take_in()
                continue
            ready = [key.data for key, _ in self._selector.select(self._go_on())]
            if None in ready:
                self._take_in()
            for transfer in sorted(filter(None, ready), key=attrgetter("sent_s")):
                self._send_chunk(transfer)
                if self._due_s > time.monotonic():
                    break  # the others go first next time
        for transfer in [*self._under_way, *self._new]:
            self._release(transfer)

    def _go_on(self) -> float | None:
        """Resume paused transfers when it is time; returns the seconds until then, or None if none is paused."""
        if not self._paused:
            return None
        early_s = self._near_due_s - time.monotonic()
        if early_s > 0:
            return early_s
        paused, self._paused = self._paused, set()
        for transfer in paused:
            self._watch(transfer)
        return None

    def _watch(self, transfer: Transfer) -> None:
        """Wait until the socket accepts more; if it cannot be watched, only this transfer fails."""
        try:
            self._selector.register(transfer.socket_fd, selectors.EVENT_WRITE, transfer)
        except (OSError, ValueError, KeyError) as error:
            failure = OSError(f"cannot wait for the socket: {error}")
            self._paused.add(transfer)  # the selector does not watch it there
            self._release(transfer)
            self._call_threadsafe(lambda: self._tell(transfer, failure))

    def _pause(self, transfer: Transfer) -> None:
        self._selector.unregister(transfer.socket_fd)
        self._paused.add(transfer)

    def _take_in(self) -> None:
        """The thread was woken for new or cancelled transfers."""
        self._wake_out.recv(4096)
        while self._new:
            transfer = self._new.popleft()
            self._under_way.add(transfer)
            self._watch(transfer)
        for transfer in [one for one in self._under_way if one.is_cancelled]:
            self._release(transfer)

    def _send_chunk(self, transfer: Transfer) -> None:
        if transfer.is_cancelled:
            return
        if transfer.is_near and self._near_due_s > time.monotonic():
            self._pause(transfer)
            return
        failure: OSError | None = None
        try:
            sent_bytes = transfer.send()
            transfer.sent_s = time.monotonic()
            self._note_sent(transfer, sent_bytes)
        except BlockingIOError:
            return
        except OSError as error:
            failure = error
        if failure is not None or transfer.is_complete:
            self._release(transfer)
            self._call_threadsafe(lambda: self._tell(transfer, failure))

    def _note_sent(self, transfer: Transfer, sent_bytes: int) -> None:
        """Work out when the next chunk may be sent."""
        limits = self._limits
        if limits.file_bytes_per_second_max > 0:
            self._due_s = max(self._due_s, transfer.sent_s) + sent_bytes / limits.file_bytes_per_second_max
        if transfer.is_near and limits.near_bytes_per_second_max > 0 and self._is_busy():
            self._near_due_s = max(self._near_due_s, transfer.sent_s) + sent_bytes / limits.near_bytes_per_second_max

    @staticmethod
    def _tell(transfer: Transfer, failure: OSError | None) -> None:
        """In the event loop's thread: the transfer may have been cancelled meanwhile."""
        if not transfer.is_cancelled:
            transfer.done(failure)

    def _release(self, transfer: Transfer) -> None:
        if transfer in self._under_way:
            self._under_way.remove(transfer)
            if transfer in self._paused:
                self._paused.remove(transfer)
            else:
                self._selector.unregister(transfer.socket_fd)
        os.close(transfer.socket_fd)
        transfer.body.close()
