"""Whether a request is let in, decided when its head has arrived: before its body is read, and before its handler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import final

from artemis_py.security.login import Login
from artemis_py.server.http.client import HttpClient
from artemis_py.server.http.incoming import Refusal
from artemis_py.server.http.messages import Request, Response
from artemis_py.server.http.routing import Route
from artemis_py.server.http.site import Site
from artemis_py.server.transports import CLIENT_CERTIFICATE


@final
class Admission:
    """The current request of one connection. While a login is awaited, nothing more of the connection is read."""

    __slots__ = ("_go_on", "_has_shown", "_login", "_request", "_route", "_site", "response")

    def __init__(self, site: Site, go_on: Callable[[], None]) -> None:
        self.response: Response | None = None
        """The answer to a request that is not let in."""
        self._site = site
        self._go_on = go_on
        self._login: Login | None = None
        self._request: Request | None = None
        self._route: Route | None = None
        self._has_shown = False

    @property
    def is_awaited(self) -> bool:
        """Is a login under way?"""
        return self._login is not None

    def refusal(self, request: Request, route: Route, client: HttpClient) -> Refusal | None:
        """Why the connection ends with this request, whoever sent it: there is no room, or a web page is behind it."""
        site = self._site
        if not site.crowd.may_have(route, client):
            return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections are reading the log; try again later")
        doors = site.doors
        has_names = not route.is_open or (doors is not None and doors.checks_names)
        reason = site.hosts.refusal(request, route.pages) if has_names else None
        if reason is None and request.authorization is not None:
            reason = site.hosts.page_refusal(request, route.pages)
        return None if reason is None else Refusal(HTTPStatus.FORBIDDEN, reason)

    def begin(self, request: Request, route: Route, client: HttpClient, transport: asyncio.Transport) -> None:
        """Decide, or begin to; then ``is_awaited``, and ``go_on`` is called later."""
        self.response = client.user = client.identity = None
        doors = self._site.doors
        if doors is None or not doors.is_shut(route, request.method):
            return
        certificate: bytes | None = transport.get_extra_info(CLIENT_CERTIFICATE)
        self._has_shown = request.authorization is not None or certificate is not None
        self._request, self._route = request, route
        found = doors.knock(request, client.peer, certificate, self._woken)
        if isinstance(found, Response):
            self.response = found
            return
        self._login = found
        if found.may_go_on:
            self.decide(client)

    def _woken(self) -> None:
        """A login is decided: perhaps that of an earlier request of a client that did not wait for it."""
        if self._login is not None and self._login.may_go_on:
            self._go_on()

    def decide(self, client: HttpClient) -> None:
        """The login is decided: ``response`` says whether the request is."""
        login, doors = self._login, self._site.doors
        request, route = self._request, self._route
        assert login is not None
        assert doors is not None
        assert request is not None
        assert route is not None
        self._login = None
        client.is_known = client.is_known or (login.identity is not None and self._has_shown)
        client.identity = login.identity
        client.user = None if login.identity is None else login.identity.user
        self.response = doors.answer(request, route, login, client.peer, has_shown=self._has_shown)

    def forget(self) -> None:
        """The client is gone. Nothing refers to its connection any more, so reference counting alone frees it."""
        if self._login is not None:
            self._login.is_given_up = True
        self._login = self._request = self._route = None
        self._go_on = _do_nothing


def _do_nothing() -> None:
    """Nobody waits for the login any more."""
