"""Writes responses to an HTTP connection: whole ones, in pieces, parts of files, and streams."""

from __future__ import annotations

import asyncio
import logging
import select
from collections.abc import Callable, Iterator
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, Final, final

import h11

from artemis_py.server.http.disconnects import DisconnectWatch
from artemis_py.server.http.file_sender import FileSender, Transfer
from artemis_py.server.http.requests import FileBody, Response, Stream
from artemis_py.server.transports import ENCRYPT, break_cycle

# ---- channel ---------------------------------------------------------------------------------------------------------
#
# The socket of one HTTP connection, from its start until the connection is to end.


@final
class Channel:
    """``transport`` is for output; None once the connection is to end.

    ``last_activity_ms`` is when the connection was accepted or last sent something. Input is no activity: a client
    cannot hold the connection by sending one byte a minute.
    """

    def __init__(self, now_ms: Callable[[], int], disconnects: DisconnectWatch | None) -> None:
        self.transport: asyncio.Transport | None = None
        self.may_write = True
        """Does the client read?"""
        self.is_left = False
        """Has the client closed its side while it is watched?"""
        self.last_activity_ms = now_ms()
        self._now_ms = now_ms
        self._disconnects = disconnects
        self._socket: asyncio.Transport | None = None
        self._watched = -1
        """The socket that ``disconnects`` watches; -1: none."""

    def open(self, transport: asyncio.Transport) -> None:
        """The socket is open."""
        self._socket = self.transport = transport

    def forget(self) -> None:
        """The socket is gone."""
        self.unwatch()
        if self._socket is not None:
            break_cycle(self._socket)
            self._socket = None
        self.transport = None

    def write(self, data: bytes) -> None:
        """Send bytes, if there are any and the client is not gone."""
        if data and self.transport is not None:
            self.transport.write(data)
            self.note_activity()

    def note_activity(self) -> None:
        """The client accepted output, or gets some."""
        self.last_activity_ms = self._now_ms()

    @property
    def _descriptor(self) -> int:
        found = None if self.transport is None else self.transport.get_extra_info("socket")
        return -1 if found is None else int(found.fileno())

    def watch(self, gone: Callable[[], None], *, is_sent_something: bool = False) -> None:
        """Have ``gone`` called when the client is gone, although nothing is read; see ``DisconnectWatch``."""

        def left(is_gone: bool) -> None:
            self.is_left = True
            if is_gone:
                gone()

        descriptor = self._descriptor
        if self._disconnects is not None and self._watched < 0 <= descriptor:
            self._disconnects.watch(descriptor, left, is_sent_something=is_sent_something)
            self._watched = descriptor

    def unwatch(self) -> None:
        """It is read again, or the connection ends."""
        if self._disconnects is not None and self._watched >= 0:
            self._disconnects.forget(self._watched)
            self._watched = -1
            self.is_left = False

    def has_lost_client(self) -> bool:
        """Has the client closed its side by now?"""
        descriptor = self._descriptor
        if descriptor < 0:
            return True
        state = select.poll()
        state.register(descriptor, select.POLLRDHUP)
        return bool(state.poll(0))

    def pause_reading(self) -> None:
        """Stop reading."""
        if self.transport is not None:
            self.transport.pause_reading()

    def close(self) -> None:
        """End the connection after sending the written output."""
        self.unwatch()
        if self.transport is not None:
            self.transport.close()
            self.transport = None

    def abort(self) -> None:
        """End the connection at once, without sending the rest; also one that was closed, whose client does not read
        that.
        """
        self.unwatch()
        self.transport = None
        if self._socket is not None:
            self._socket.abort()

    def take(self) -> asyncio.Transport | None:
        """The transport, for a caller that ends it in another way; nothing is written to it any more."""
        self.unwatch()
        transport, self.transport = self.transport, None
        return transport


# ---- outgoing --------------------------------------------------------------------------------------------------------
#
# The response being sent on an HTTP connection: at once, in pieces, or as part of a file by another thread.


log = logging.getLogger(__name__)
SAFETY: Final = (
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
)
"""Headers of every response that has no others of these names: a browser takes it for nothing but what it is, keeps it
nowhere, and puts it into no other page.
"""


def close_body(response: Response) -> None:
    """Close a body that will not be sent."""
    if isinstance(response.body, FileBody | Stream):
        response.body.close()


def is_near(peer: Any, own: Any) -> bool:
    """Is the client on this machine? ``peer`` and ``own`` are the addresses of its socket, None if it is gone. A proxy
    on this machine counts as local.
    """
    return bool(peer and own) and (peer[0] == own[0] or ip_address(peer[0]).is_loopback)


@final
class ResponseWriter:
    """At most one response: the part not yet handed to the channel."""

    def __init__(self, machine: h11.Connection, channel: Channel, files: FileSender) -> None:
        self.pieces: Iterator[bytes] | None = None
        """The pieces that follow."""
        self.file: FileBody | None = None
        """The body to send after the head."""
        self.stream: Stream | None = None
        """The body that goes on. Meanwhile the connection is read, to notice that the client leaves."""
        self._machine = machine
        self._channel = channel
        self._files = files
        self._transfer: Transfer | None = None
        self._transferred_bytes = 0

    @property
    def is_transferring(self) -> bool:
        """Is the thread sending a part of a file?"""
        return self._transfer is not None

    @property
    def is_under_way(self) -> bool:
        """Is a response being sent that is not complete?"""
        parts = (self.stream, self.pieces, self.file, self._transfer)
        return any(part is not None for part in parts)

    def begin(self, response: Response, *, with_body: bool, closes: bool) -> None:
        """Send the head, and the body if it is complete. The first piece of a body in pieces follows in a later step,
        and a part of a file after the head. ``closes`` announces that the connection ends after it.
        """
        body = response.body
        own = {name for name, _ in response.headers}
        safety = [header for header in SAFETY if header[0] not in own]
        headers = [("Content-Type", response.content_type), *safety, *response.headers]
        if isinstance(body, bytes | FileBody) and response.status != HTTPStatus.NO_CONTENT:
            headers.append(("Content-Length", str(len(body))))
        if closes:
            headers.append(("Connection", "close"))
        reason = HTTPStatus(response.status).phrase
        head = h11.Response(status_code=response.status, headers=headers, reason=reason.encode())
        output = self._machine.send(head) or b""
        if not with_body or not body or response.status == HTTPStatus.NOT_MODIFIED:
            close_body(response)
            output += self._machine.send(h11.EndOfMessage()) or b""
        elif isinstance(body, bytes):
            output += self._machine.send(h11.Data(data=body)) or b""
            output += self._machine.send(h11.EndOfMessage()) or b""
        elif isinstance(body, FileBody):
            self.file = body
            if self._channel.transport is not None:
                self._channel.transport.set_write_buffer_limits(
                    high=0
                )  # "may write" then means that everything was sent
        elif isinstance(body, Stream):
            self.stream = body
        else:
            self.pieces = body
        self._channel.write(output)
        if self.stream is None:
            self._channel.pause_reading()

    def send_piece(self, pieces: Iterator[bytes]) -> bool:
        """Send the next piece, or the end; False if there is none and the response remains incomplete."""
        try:
            piece = next(pieces, None)
        except Exception:
            log.exception("a response failed")
            return False
        if piece is None:
            self.pieces = None
            self._end()
        elif piece:
            self._channel.write(self._machine.send(h11.Data(data=piece)) or b"")
        return True

    def send_of_stream(self, stream: Stream) -> bool:
        """Send what the stream has now; False if it has nothing."""
        data = stream.take()
        if data:
            self._channel.write(self._machine.send(h11.Data(data=data)) or b"")
        return bool(data)

    def end_stream(self) -> None:
        """The broker ends the stream, if there is one."""
        if self.stream is not None:
            self._end()
            self.stream.close()
            self.stream = None

    def send_file(self, body: FileBody, done: Callable[[OSError | None], None]) -> None:
        """Hand the body to the thread that sends files. ``done`` is called at the end, with None or the failure."""
        transport = self._channel.transport
        assert transport is not None
        self._machine.send_with_data_passthrough(h11.Data(data=body))  # type: ignore[arg-type]  # as h11 has it: only len
        self._transferred_bytes = 0
        near = is_near(transport.get_extra_info("peername"), transport.get_extra_info("sockname"))
        socket_fd = transport.get_extra_info("socket").fileno()
        self._transfer = self._files.send(socket_fd, body, near, done, transport.get_extra_info(ENCRYPT))
        self.file = None

    def file_sent(self, failure: OSError | None) -> bool:
        """The thread is done with it; False if it failed and the response remains incomplete."""
        self._transfer = None
        if failure is not None or self._channel.transport is None:
            return False
        self._channel.transport.set_write_buffer_limits()
        self._channel.note_activity()
        self._end()
        return True

    def note_progress(self, now_ms: int) -> None:
        """A part of a file sent by the thread also counts as activity."""
        if self._transfer is not None and self._transfer.accepted_bytes != self._transferred_bytes:
            self._transferred_bytes = self._transfer.accepted_bytes
            self._channel.last_activity_ms = now_ms

    def _end(self) -> None:
        self._channel.write(self._machine.send(h11.EndOfMessage()) or b"")

    def give_up(self) -> None:
        """The client is gone: drop the rest of the response."""
        self.pieces = None
        if self.stream is not None:
            self.stream.close()
            self.stream = None
        if self.file is not None:
            self.file.close()
            self.file = None
        if self._transfer is not None:
            self._files.cancel(self._transfer)
            self._transfer = None
