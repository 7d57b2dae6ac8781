"""Reads requests of an HTTP connection: the current one, from its first byte until it is answered."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Final, NamedTuple, final

import h11

from artemis_py.server.http.connection_limit import HttpClient
from artemis_py.server.http.requests import (
    HEAD_END,
    Answer,
    HttpLimits,
    Request,
    Response,
    doubt_in,
    oddity_in,
    text_response,
)
from artemis_py.server.http.routing import Route, Routes
from artemis_py.terminal_output import escaped

log = logging.getLogger(__name__)
_INTERNAL_ERROR: Final = text_response(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error")
_NEVER: Final = frozenset({"TRACE", "TRACK", "CONNECT"})
"""Methods that mirror a request or open a tunnel."""
_BODY_BYTES_PER_MS_MIN: Final = 64
"""How fast a large body must arrive."""
_SMALL_LINES_BYTES: Final = 8 << 20
"""So many bytes of small messages may be imported together, besides one of the largest."""
_READ_ALONE: Final = (("Allow", "GET, HEAD"),)


@final
class Refusal(NamedTuple):
    """Why a request is not served; the connection ends with it."""

    status: int
    reason: str


def request_of(event: h11.Request) -> Request:
    """The request without its body. Of a target with scheme and host (as sent to proxies), the path is used."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in event.headers:
        name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    authorization = headers.pop("authorization", None)
    target = event.target.decode("latin-1")
    _scheme, is_absolute, rest = target.partition("://")
    authority: str | None = None
    if is_absolute and not target.startswith("/"):
        authority = re.split("[/?]", rest, maxsplit=1)[0]
        rest = rest[len(authority) :]
        target = rest if rest.startswith("/") else "/" + rest
    path, _, query = target.partition("?")
    method = event.method.decode("ascii")
    return Request(method, path, query, headers, authority=authority, authorization=authorization)


@final
class RequestReader:
    """At most one request; what a client sends ahead waits in h11's buffer.

    ``hold`` adds bytes to what the broker holds for clients, and says why no more may be held, if so.
    """

    def __init__(
        self,
        machine: h11.Connection,
        limits: HttpLimits,
        routes: Routes,
        now_ms: Callable[[], int],
        hold: Callable[[int], str | None],
    ) -> None:
        self.request: Request | None = None
        self.route: Route | None = None
        """The route that answers it; None if there is none."""
        self.denial: Response | None = None
        """The answer instead of the route's, to a client that may not have that."""
        self._machine = machine
        self._limits = limits
        self._routes = routes
        self._now_ms = now_ms
        self._hold = hold
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._held_bytes = 0
        """What the body takes beyond what every connection is counted with."""
        self._is_chunked = False
        self._between = b""
        """A CR between two chunks whose LF has not come yet."""
        self._checked_bytes = 0
        """How much of a head that is not complete has been checked."""
        self._since_ms: int | None = None
        """When the first byte of an incomplete request arrived."""

    @property
    def is_waiting(self) -> bool:
        """Is there no complete request to answer?"""
        return self._machine.their_state in (h11.IDLE, h11.SEND_BODY)

    @property
    def wants_body(self) -> bool:
        """Does the answer have a body?"""
        return self.request is None or self.request.method != "HEAD"

    @property
    def takes_body(self) -> bool:
        """Does a handler want this request's body? Otherwise it is counted and dropped."""
        if self.route is None or self.request is None or self.denial is not None:
            return False
        return self.route.takes_body(self.request.method)

    def takes_too_long(self, now_ms: int) -> bool:
        """Has a request begun but not arrived completely in time? A large body has time for its size."""
        since_ms = self._since_ms
        limit_ms = self._limits.request_ms_max + self._body_bytes // _BODY_BYTES_PER_MS_MIN
        return self.is_waiting and since_ms is not None and now_ms - since_ms >= limit_ms

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """What comes next of a request. Raises h11.RemoteProtocolError for one that cannot be read, or not in one way
        only, which h11 is more lenient about.
        """
        machine = self._machine
        if machine.their_state is h11.IDLE:
            self._check_head()
        elif machine.their_state is h11.SEND_BODY and self._is_chunked:
            return self._next_of_chunks()
        return machine.next_event()

    def _next_of_chunks(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """As ``next_event``; what stands between the chunks is as strict as a head."""
        machine = self._machine
        before = machine.trailing_data[0]
        event = machine.next_event()
        data_bytes = len(event.data) if isinstance(event, h11.Data) else 0
        between = self._between + before[: len(before) - len(machine.trailing_data[0]) - data_bytes]
        self._between = b"\r" if not data_bytes and between.endswith(b"\r") else b""
        doubt = oddity_in(between)
        if not doubt and isinstance(event, h11.EndOfMessage) and event.headers:
            doubt = "headers follow the last chunk; send them before the body"
        if doubt:
            raise h11.RemoteProtocolError(doubt)
        return event

    def _check_head(self) -> None:
        """Refuse a head whose end is doubtful, as soon as it can be seen."""
        data = self._machine.trailing_data[0]
        end = data.find(HEAD_END)
        head = data if end < 0 else data[: end + len(HEAD_END)]
        doubt = oddity_in(head, self._checked_bytes)
        self._checked_bytes = max(len(head) - len(HEAD_END), 0) if end < 0 else 0
        if not doubt and end >= 0:
            doubt = doubt_in(head)
        if doubt:
            raise h11.RemoteProtocolError(doubt)

    def receive(self, data: bytes) -> None:
        """Bytes arrived."""
        if self._since_ms is None and self.is_waiting:
            self._since_ms = self._now_ms()
        self._machine.receive_data(data)

    def begin(self, event: h11.Request) -> Refusal | None:
        """The head of a request arrived: find the route that answers it."""
        self.request = request = request_of(event)
        self._is_chunked = "transfer-encoding" in request.headers
        self._between = b""
        self._body_bytes = 0
        self._body = []
        self.route = self.denial = None
        # h11 looks at its limit only while the head is incomplete; this one holds however the bytes were split.
        head_bytes = len(event.target) + sum(len(name) + len(value) for name, value in event.headers)
        if head_bytes > self._limits.head_bytes_max:
            return Refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too large")
        found = self._routes.find(request.path)
        if found is not None:
            self.route, parameters = found
            self.request = replace(request, parameters=parameters)
        announced = request.headers.get("content-length", "")
        return (
            self._too_large()
            if announced.isascii() and announced.isdigit() and int(announced) > self._bytes_max
            else None
        )

    @property
    def _bytes_max(self) -> int:
        """The largest body of this request."""
        limits, route = self._limits, self.route
        if not self._takes_message:
            return limits.body_bytes_max
        if route is None or not route.takes_lines:
            return limits.message_bytes_max
        return limits.message_bytes_max * 3 // 2 + _SMALL_LINES_BYTES

    @property
    def _takes_message(self) -> bool:
        route, request = self.route, self.request
        if route is None or request is None or not (route.takes_messages or route.takes_lines):
            return False
        return route.takes_body(request.method)

    def _too_large(self) -> Refusal:
        advice = " (maxBodyBytes of the acceptor)" if self._takes_message else ""
        reason = f"the body is too large: at most {self._bytes_max} bytes are allowed{advice}"
        return Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason)

    def take(self, data: bytes | bytearray) -> Refusal | None:
        """A part of the body arrived."""
        self._body_bytes += len(data)
        if self._body_bytes > self._bytes_max:
            return self._too_large()
        if self.takes_body:
            self._body.append(bytes(data))
            if self._body_bytes > self._limits.body_bytes_max:
                self._held_bytes += len(data)
                reason = self._hold(len(data))
                if reason is not None:
                    return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, reason)
        return None

    def let_go(self) -> None:
        """The body is held no more."""
        self._body = []
        if self._held_bytes:
            self._hold(-self._held_bytes)
            self._held_bytes = 0

    def answer(self, client: HttpClient, acceptor: str, is_gone: Callable[[], bool]) -> Answer:
        """The request of a client is complete: its route's response."""
        assert self.request is not None
        is_large = self._body_bytes > self._limits.body_bytes_max
        request = replace(
            self.request,
            body=b"" if is_large else b"".join(self._body),
            parts=self._body if is_large else (),
            identity=client.identity,
            user=client.user,
            address=client.address,
            acceptor=acceptor,
            is_gone=is_gone,
        )
        self._body = []
        if self.denial is not None:
            return self.denial
        if request.method in _NEVER:
            return text_response(HTTPStatus.METHOD_NOT_ALLOWED, f"nothing here takes {request.method}", _READ_ALONE)
        if self.route is None:
            return text_response(HTTPStatus.NOT_FOUND, f"no such path: {request.path}")
        handler = self.route.handler(request.method)
        if handler is None:
            allowed = self.route.allowed
            return text_response(
                HTTPStatus.METHOD_NOT_ALLOWED, f"method not allowed; use {allowed}", (("Allow", allowed),)
            )
        try:
            return handler(request)
        except Exception as error:
            return self.failed(error)

    def failed(self, error: BaseException) -> Response:
        """The answer when a handler has failed, which is logged."""
        assert self.request is not None
        log.error("the handler of %s failed", escaped(self.request.path), exc_info=error)
        return _INTERNAL_ERROR

    def end(self, now_ms: int) -> None:
        """The request was answered; the next one may begin."""
        self.let_go()
        self.request = None
        self._since_ms = now_ms if self._machine.trailing_data[0] else None
