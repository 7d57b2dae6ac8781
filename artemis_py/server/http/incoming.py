"""The current request of an HTTP connection, from its first byte until it is answered."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Final, NamedTuple, final

import h11

from artemis_py.security.identity import Identity
from artemis_py.server.http.messages import Answer, HttpLimits, Request, Response, text_response
from artemis_py.server.http.routing import Route, Routes
from artemis_py.shown import escaped

log = logging.getLogger(__name__)
_INTERNAL_ERROR: Final = text_response(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error")
_NEVER: Final = frozenset({"TRACE", "TRACK", "CONNECT"})
"""Methods that mirror a request or open a tunnel."""
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
class Incoming:
    """At most one request; what a client sends ahead waits in h11's buffer."""

    def __init__(self, machine: h11.Connection, limits: HttpLimits, routes: Routes, now_ms: Callable[[], int]) -> None:
        self.request: Request | None = None
        self.route: Route | None = None
        """The route that answers it; None if there is none."""
        self.denial: Response | None = None
        """The answer instead of the route's, to a client that may not have that."""
        self._machine = machine
        self._limits = limits
        self._routes = routes
        self._now_ms = now_ms
        self._body: list[bytes] = []
        self._body_bytes = 0
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
        """Has a request begun but not arrived completely in time?"""
        since_ms = self._since_ms
        return self.is_waiting and since_ms is not None and now_ms - since_ms >= self._limits.request_ms_max

    def receive(self, data: bytes) -> None:
        """Bytes arrived."""
        if self._since_ms is None and self.is_waiting:
            self._since_ms = self._now_ms()
        self._machine.receive_data(data)

    def begin(self, event: h11.Request) -> Refusal | None:
        """The head of a request arrived: find the route that answers it."""
        self.request = request = request_of(event)
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
        return None

    def take(self, data: bytes | bytearray) -> Refusal | None:
        """A part of the body arrived."""
        self._body_bytes += len(data)
        if self._body_bytes > self._limits.body_bytes_max:
            return Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is too large")
        if self.takes_body:
            self._body.append(bytes(data))
        return None

    def answer(self, identity: Identity | None, user: str | None, peer: str) -> Answer:
        """The request of a user, from an IP address, is complete: its route's response."""
        assert self.request is not None
        request = replace(self.request, body=b"".join(self._body), identity=identity, user=user, peer=peer)
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
        self.request = None
        self._since_ms = now_ms if self._machine.trailing_data[0] else None
