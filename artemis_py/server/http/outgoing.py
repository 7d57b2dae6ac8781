"""The response being sent on an HTTP connection: at once, in pieces, or as part of a file by another thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, Final, final

import h11

from artemis_py.server.http.channel import Channel
from artemis_py.server.http.files import FileSender, Transfer
from artemis_py.server.http.messages import FileBody, Response
from artemis_py.server.stream import Stream
from artemis_py.server.transports import ENCRYPT

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
class Outgoing:
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
