"""One HTTP connection: bytes in, one request at a time through the routes, bytes out.

h11 handles the grammar of HTTP. This module decides the rest: which route answers, how a broken request is answered,
when the connection ends, and that nothing is written to a client that does not read. It holds at most one request; what
a client sends ahead waits in h11's buffer, and the socket is not read during a response. A response may come later (a
future), and another thread sends parts of files.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, cast

import h11

from artemis_py.server.http.files import Transfer
from artemis_py.server.http.messages import Answer, FileBody, Request, Response, text_response
from artemis_py.server.http.routing import Route
from artemis_py.server.transports import break_cycle
from artemis_py.shown import escaped

if TYPE_CHECKING:
    from artemis_py.server.http.service import HttpService

log = logging.getLogger(__name__)
_INTERNAL_ERROR: Final = text_response(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error")


def _close_body(response: Response) -> None:
    """Close a body that will not be sent."""
    if isinstance(response.body, FileBody):
        response.body.close()


def request_of(event: h11.Request) -> Request:
    """The request without its body. Of a target with scheme and host (as sent to proxies), the path is used."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in event.headers:
        name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    target = event.target.decode("latin-1")
    _scheme, is_absolute, rest = target.partition("://")
    authority: str | None = None
    if is_absolute and not target.startswith("/"):
        authority = re.split("[/?]", rest, maxsplit=1)[0]
        rest = rest[len(authority) :]
        target = rest if rest.startswith("/") else "/" + rest
    path, _, query = target.partition("?")
    return Request(event.method.decode("ascii"), path, query, headers, authority=authority)


class HttpConnection(asyncio.Protocol):
    """The protocol of one socket, created by ``HttpService.connect``.

    ``last_activity_ms`` is when the connection was accepted or last sent a response; the service closes connections
    that are idle too long. Input is no activity: a client cannot hold the connection by sending one byte a minute.
    """

    def __init__(self, service: HttpService) -> None:
        self._service = service
        self._machine = h11.Connection(h11.SERVER, max_incomplete_event_size=service.limits.head_bytes_max)
        self._transport: asyncio.Transport | None = None
        """The transport for output; None once the connection is to end."""
        self._socket: asyncio.BaseTransport | None = None
        self._request: Request | None = None
        self._route: Route | None = None
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._awaited: asyncio.Future[Response] | None = None
        self._pieces: Iterator[bytes] | None = None
        self._file: FileBody | None = None
        """The body to send after the head."""
        self._transfer: Transfer | None = None
        self._transferred_bytes = 0
        self._may_write = True
        self._step_is_due = False
        self.last_activity_ms = service.now_ms()
        self.waiting_since_ms = self.last_activity_ms
        """When the last response was sent, or the connection accepted."""
        self.is_spare = False
        self.number = 0
        """The connection's number, counted by the service."""
        self._request_since_ms: int | None = None
        """When the first byte of an incomplete request arrived."""

    # --- what the event loop calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accepts the socket, or refuses it if the service has enough."""
        self._socket = transport
        self._transport = cast(asyncio.Transport, transport)
        self.guard(self._begin_socket)

    def _begin_socket(self) -> None:
        assert self._transport is not None
        if not self._service.admit(self):
            self._transport.write(b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            self._transport.close()
            self._transport = None

    def data_received(self, data: bytes) -> None:
        """Takes bytes from the client."""
        if self._transport is None:
            return
        if self._request_since_ms is None and self.is_waiting:
            self._request_since_ms = self._service.now_ms()
        self._machine.receive_data(data)
        self.guard(self._read_events)

    def eof_received(self) -> bool:
        """The client sends no more; earlier requests are still answered."""
        if self._transport is None:
            return False
        self._machine.receive_data(b"")
        self.guard(self._read_events)
        return self._transport is not None

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone."""
        if self._socket is not None:
            break_cycle(self._socket)
            self._socket = None
        self._transport = None
        self._give_up()
        self._service.forget(self)

    def pause_writing(self) -> None:
        """The client reads too slowly: send no further piece and read no further request until it catches up."""
        self._may_write = False

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._may_write = True
        self.last_activity_ms = self._service.now_ms()
        self._step_soon()

    def guard(self, step: Callable[..., None], *arguments: object) -> None:
        """Run a step of this connection; if it fails, no other connection is affected."""
        try:
            step(*arguments)
        except Exception as error:
            self._break_off(error)

    def _break_off(self, error: Exception) -> None:
        """A step failed: the connection ends and counts nowhere any more, whatever its socket does."""
        transport, self._transport = self._transport, None
        peer = transport and shown_peer(transport)
        self._service.faults.note(peer or "of HTTP", "http", error)
        self._service.forget(self)
        self._give_up()
        for end in () if transport is None else (transport.abort, transport.close):
            try:
                end()
                return
            except Exception as other:
                self._service.faults.note(peer or "of HTTP", "end", other)

    # --- what the service calls ---

    def close(self) -> None:
        """Ends the connection; a response being sent is cut off."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        self._give_up()

    def abort(self) -> None:
        """Ends the connection at once and drops unsent bytes."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None
        self._give_up()

    @property
    def is_waiting(self) -> bool:
        """Is there no complete request to answer?"""
        return self._machine.their_state in (h11.IDLE, h11.SEND_BODY)

    def takes_too_long(self, now_ms: int) -> bool:
        """Has a request begun but not arrived completely in time?"""
        since_ms = self._request_since_ms
        return self.is_waiting and since_ms is not None and now_ms - since_ms >= self._service.limits.request_ms_max

    def refuse_late(self) -> None:
        """Refuse a request that does not arrive completely."""
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the request took too long to arrive")

    def note_progress(self, now_ms: int) -> None:
        """A part of a file sent by the thread also counts as activity."""
        if self._transfer is not None and self._transfer.sent_bytes != self._transferred_bytes:
            self._transferred_bytes = self._transfer.sent_bytes
            self.last_activity_ms = now_ms

    def _give_up(self) -> None:
        """The client is gone: drop the rest of the response."""
        self._pieces = None
        if self._awaited is not None:
            self._awaited.cancel()
            self._awaited = None
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._transfer is not None:
            self._service.files.cancel(self._transfer)
            self._transfer = None

    # --- requests ---

    def _read_events(self) -> None:
        """Continues until h11 needs more bytes or a request is complete."""
        try:
            while self._transport is not None and self._pieces is None:
                event = self._machine.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    break
                if isinstance(event, h11.ConnectionClosed):
                    self.close()
                elif isinstance(event, h11.Request):
                    self._begin(event)
                elif isinstance(event, h11.Data):
                    self._take_body(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    self._answer()
        except h11.RemoteProtocolError as error:
            reason = str(error).partition(": bytearray")[0]  # h11 shows the line as Python writes it
            self._refuse(error.error_status_hint or 400, reason)
            error.__traceback__ = None  # its frames refer to it, and to this connection

    def _begin(self, event: h11.Request) -> None:
        self._request = request = request_of(event)
        self._body_bytes = 0
        self._body = []
        self._route = None
        # h11 looks at its limit only while the head is incomplete; this one holds however the bytes were split.
        head_bytes = len(event.target) + sum(len(name) + len(value) for name, value in event.headers)
        if head_bytes > self._service.limits.head_bytes_max:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too large")
            return
        found = self._service.routes.find(request.path)
        if found is not None:
            self._route, parameters = found
            self._request = replace(request, parameters=parameters)
            if not self._may_be_answered(self._route, request):
                return
        if self._machine.they_are_waiting_for_100_continue:
            if self._takes_body:
                self._write(self._machine.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            else:
                self._refuse(HTTPStatus.EXPECTATION_FAILED, "this path takes no request body")

    def _may_be_answered(self, route: Route, request: Request) -> bool:
        """Refuses what this client may not have, or not now."""
        if not self._service.may_have(route, self):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections are reading the log; try again later")
            return False
        reason = None if route.is_open else self._service.hosts.refusal(request)
        if reason is not None:
            self._refuse(HTTPStatus.FORBIDDEN, reason)
        return reason is None

    @property
    def _takes_body(self) -> bool:
        """Does a handler want this request's body? Otherwise it is counted and dropped."""
        return self._route is not None and self._request is not None and self._route.takes_body(self._request.method)

    def _take_body(self, data: bytes | bytearray) -> None:
        self._body_bytes += len(data)
        if self._body_bytes > self._service.limits.body_bytes_max:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is too large")
        elif self._takes_body:
            self._body.append(bytes(data))

    def _answer(self) -> None:
        request = self._request
        assert request is not None
        if self._body:
            request = replace(request, body=b"".join(self._body))
            self._body = []
        answer = self._handle(request)
        if isinstance(answer, Response):
            self._send(answer, with_body=request.method != "HEAD")
            return
        self._awaited = answer
        self._pause_reading()
        answer.add_done_callback(partial(self.guard, self._answered))

    def _answered(self, awaited: asyncio.Future[Response]) -> None:
        """The awaited response is ready."""
        request = self._request
        if self._awaited is not awaited or request is None:
            if not awaited.cancelled() and awaited.exception() is None:
                _close_body(awaited.result())
            return
        self._awaited = None
        failure = awaited.exception()
        if failure is not None:
            log.error("the handler of %s failed", escaped(request.path), exc_info=failure)
            self._send(_INTERNAL_ERROR, with_body=request.method != "HEAD")
        else:
            self._send(awaited.result(), with_body=request.method != "HEAD")

    def _handle(self, request: Request) -> Answer:
        if self._route is None:
            return text_response(HTTPStatus.NOT_FOUND, f"no such path: {request.path}")
        handler = self._route.handler(request.method)
        if handler is None:
            allowed = self._route.allowed
            return text_response(
                HTTPStatus.METHOD_NOT_ALLOWED, (f"method not allowed; use {allowed}"), (("Allow", allowed),)
            )
        try:
            return handler(request)
        except Exception:
            log.exception("the handler of %s failed", escaped(request.path))
            return _INTERNAL_ERROR

    def _refuse(self, status: int, reason: str) -> None:
        """Answers an invalid request and closes: where the next request begins is unknown."""
        if self._machine.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = text_response(status, reason, (("Connection", "close"),))
            self._send(response, with_body=self._request is None or self._request.method != "HEAD")
        if self._transport is not None and self._pieces is None:
            self.close()

    # --- answers ---

    def _send(self, response: Response, *, with_body: bool) -> None:
        """Sends the head, and the body if it is complete. The first piece of a body in pieces follows in a later step,
        and a part of a file after the head.
        """
        body = response.body
        headers = [("Content-Type", response.content_type), *response.headers]
        if isinstance(body, bytes | FileBody):
            headers.append(("Content-Length", str(len(body))))
        if self._service.is_stopping:
            headers.append(("Connection", "close"))
        reason = HTTPStatus(response.status).phrase
        head = h11.Response(status_code=response.status, headers=headers, reason=reason.encode())
        output = self._machine.send(head) or b""
        if not with_body or not body:
            _close_body(response)
            output += self._machine.send(h11.EndOfMessage()) or b""
        elif isinstance(body, bytes):
            output += self._machine.send(h11.Data(data=body)) or b""
            output += self._machine.send(h11.EndOfMessage()) or b""
        elif isinstance(body, FileBody):
            self._file = body
            if self._transport is not None:
                self._transport.set_write_buffer_limits(high=0)  # then "may write" means that everything has left
        else:
            self._pieces = body
        self._write(output)
        self._pause_reading()
        self._step_soon()

    def _step_soon(self) -> None:
        """One step per round of the event loop: a client that sends many requests at once cannot stall others."""
        if not self._step_is_due and self._transport is not None:
            self._step_is_due = True
            self._service.call_soon(partial(self.guard, self._step))

    def _step(self) -> None:
        """Sends the next piece; after the last one, continues with the next request."""
        self._step_is_due = False
        if self._transport is None or not self._may_write or self._transfer is not None:
            return
        if self._file is not None:
            self._send_file(self._file)
        elif self._pieces is not None:
            self._send_piece(self._pieces)
            self._step_soon()
        elif self._machine.our_state is h11.DONE and self._machine.their_state is h11.DONE:
            self._machine.start_next_cycle()
            self._request = None
            self.waiting_since_ms = self._service.now_ms()
            self._request_since_ms = self.waiting_since_ms if self._machine.trailing_data[0] else None
            self._transport.resume_reading()
            self._read_events()
        elif self._machine.our_state in (h11.MUST_CLOSE, h11.CLOSED, h11.DONE):
            self.close()

    def _send_piece(self, pieces: Iterator[bytes]) -> None:
        try:
            piece = next(pieces, None)
        except Exception:
            # Half of the answer is out: only a cut connection tells the client that the rest is missing.
            log.exception("a response failed")
            self.abort()
            return
        if piece is None:
            self._pieces = None
            self._write(self._machine.send(h11.EndOfMessage()) or b"")
        elif piece:
            self._write(self._machine.send(h11.Data(data=piece)) or b"")

    def _send_file(self, body: FileBody) -> None:
        assert self._transport is not None
        self._machine.send_with_data_passthrough(h11.Data(data=body))  # type: ignore[arg-type]  # as h11 has it: only len
        self._transferred_bytes = 0
        transport = self._transport
        near = is_near(transport.get_extra_info("peername"), transport.get_extra_info("sockname"))
        socket_fd = transport.get_extra_info("socket").fileno()
        self._transfer = self._service.files.send(socket_fd, body, near, partial(self.guard, self._file_sent))
        self._file = None

    def _file_sent(self, failure: OSError | None) -> None:
        self._transfer = None
        if failure is not None or self._transport is None:
            # Half of the answer is out: only a cut connection tells the client that the rest is missing.
            self.abort()
            return
        self._transport.set_write_buffer_limits()
        self.last_activity_ms = self._service.now_ms()
        self._write(self._machine.send(h11.EndOfMessage()) or b"")
        self._step_soon()

    def _write(self, data: bytes) -> None:
        if data and self._transport is not None:
            self._transport.write(data)
            self.last_activity_ms = self._service.now_ms()

    def _pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()


def shown_peer(transport: asyncio.Transport) -> str:
    """The client's address as host:port; empty if the socket does not know."""
    with suppress(Exception):
        host, port = transport.get_extra_info("peername")[:2]
        return f"{host}:{port}"
    return ""


def is_near(peer: Any, own: Any) -> bool:
    """Is the client on this machine? ``peer`` and ``own`` are the addresses of its socket, None if it is gone. A proxy
    on this machine counts as local.
    """
    return bool(peer and own) and (peer[0] == own[0] or ip_address(peer[0]).is_loopback)
