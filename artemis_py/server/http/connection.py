"""One HTTP connection: whether a request is let in, and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Final, cast, final

import h11

from artemis_py.security.identity import Identity
from artemis_py.security.login import Login
from artemis_py.server.http.acceptor import HttpAcceptor
from artemis_py.server.http.connection_limit import HttpClient
from artemis_py.server.http.request_reader import Refusal, RequestReader
from artemis_py.server.http.requests import RETRY_LATER, Request, Response, text_response
from artemis_py.server.http.response_writer import Channel, ResponseWriter, close_body
from artemis_py.server.http.routing import Route
from artemis_py.server.proxy_protocol import Proxied
from artemis_py.server.transports import CLIENT_CERTIFICATE, shown_address

# ---- admission -------------------------------------------------------------------------------------------------------
#
# Whether a request is let in, decided when its head has arrived: before its body is read, and before its handler.


@final
class Admission:
    """The current request of one connection. While a login is awaited, nothing more of the connection is read."""

    __slots__ = ("_acceptor", "_go_on", "_has_credentials", "_login", "_request", "_route", "response")

    def __init__(self, acceptor: HttpAcceptor, go_on: Callable[[], None]) -> None:
        self.response: Response | None = None
        """The answer to a request that is not let in."""
        self._acceptor = acceptor
        self._go_on = go_on
        self._login: Login | None = None
        self._request: Request | None = None
        self._route: Route | None = None
        self._has_credentials = False

    @property
    def is_awaited(self) -> bool:
        """Is a login under way?"""
        return self._login is not None

    def refusal(self, request: Request, route: Route, client: HttpClient) -> Refusal | None:
        """Why the connection ends with this request, whoever sent it: there is no room, or a web page is behind it."""
        acceptor = self._acceptor
        if not acceptor.connection_limit.may_have(route, client):
            return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests are being answered; try again later")
        authentication = acceptor.authentication
        has_names = not route.is_open or (authentication is not None and authentication.checks_names)
        reason = acceptor.hosts.refusal(request, route.pages) if has_names else None
        if reason is None and request.authorization is not None:
            reason = acceptor.hosts.page_refusal(request, route.pages)
        return None if reason is None else Refusal(HTTPStatus.FORBIDDEN, reason)

    def begin(self, request: Request, route: Route, client: HttpClient, transport: asyncio.Transport) -> None:
        """Decide, or begin to; then ``is_awaited``, and ``go_on`` is called later."""
        self.response = client.user = client.identity = None
        authentication = self._acceptor.authentication
        if authentication is None or not authentication.needs_login(route, request.method):
            return
        certificate: bytes | None = transport.get_extra_info(CLIENT_CERTIFICATE)
        self._has_credentials = request.authorization is not None or certificate is not None
        self._request, self._route = request, route
        found = authentication.begin_login(request, client, self._acceptor.name, certificate, self._woken)
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
        login, authentication = self._login, self._acceptor.authentication
        request, route = self._request, self._route
        assert login is not None
        assert authentication is not None
        assert request is not None
        assert route is not None
        self._login = None
        client.is_known = client.is_known or (login.identity is not None and self._has_credentials)
        client.identity = login.identity
        client.user = None if login.identity is None else login.identity.user
        self.response = authentication.answer(
            request, route, login, client, self._acceptor.name, has_credentials=self._has_credentials
        )

    def forget(self) -> None:
        """The client is gone. Nothing refers to its connection any more, so reference counting alone frees it."""
        if self._login is not None:
            self._login.is_given_up = True
        self._login = self._request = self._route = None
        self._go_on = _do_nothing


def _do_nothing() -> None:
    """Nobody waits for the login any more."""


# ---- connection ------------------------------------------------------------------------------------------------------
#
# One HTTP connection: bytes in, one request at a time through the routes, bytes out. h11 handles the grammar of HTTP.
# This module and its parts decide the rest: which route answers, how a broken request is answered, when the
# connection ends, and that nothing is written to a client that does not read. The socket is not read during a
# response. A response may come later (a future), and another thread sends parts of files.


_READING: Final = frozenset({"GET", "HEAD"})
_MORE: Final[Mapping[int, tuple[tuple[str, str], ...]]] = {
    HTTPStatus.SERVICE_UNAVAILABLE: RETRY_LATER,
    HTTPStatus.FORBIDDEN: (("Cross-Origin-Resource-Policy", "cross-origin"),),
}
"""More headers of a refusal. A page that is refused may learn that something answers, so that it can tell its user that
it is not listed, but not what.
"""
_WITHDRAWN: Final = "the permission for this was withdrawn while the answer was being made"
_CHANGED: Final = "the permission for this may have been withdrawn: the login has changed; log in again"


@final
class HttpConnection(asyncio.Protocol):
    """The protocol of one socket, which ``ConnectionLimit`` knows as an ``HttpClient``."""

    def __init__(self, acceptor: HttpAcceptor, proxied: Proxied | None = None) -> None:
        self._acceptor = acceptor
        self._proxied = proxied
        self._machine = h11.Connection(h11.SERVER, max_incomplete_event_size=acceptor.limits.head_bytes_max)
        self._channel = Channel(acceptor.now_ms, acceptor.disconnects)
        self._reader = RequestReader(
            self._machine, acceptor.limits, acceptor.routes, acceptor.now_ms, acceptor.connection_limit.hold
        )
        self._writer = ResponseWriter(self._machine, self._channel, acceptor.files)
        self._admission = Admission(acceptor, partial(self.guard, self._go_on))
        self._awaited: asyncio.Future[Response] | None = None
        self._step_is_due = False
        self.waiting_since_ms = self._channel.last_activity_ms
        self.is_spare = False
        self.is_known = False
        self.user: str | None = None
        self.identity: Identity | None = None
        self.peer = self.address = ""
        self.number = 0

    # --- what the event loop calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the socket, or refuse it if the service is stopping."""
        self._channel.open(cast(asyncio.Transport, transport))
        proxied = self._proxied
        if proxied is None:
            self.peer, self.address = peer_address(transport), shown_peer(transport)
        else:
            self.peer, self.address = proxied.host, proxied.address
        if self._acceptor.is_stopping:
            self._channel.write(b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            self._channel.close()
        else:
            self.guard(self._acceptor.connection_limit.admit, self)

    def data_received(self, data: bytes) -> None:
        """Process bytes from the client."""
        if self._channel.transport is None:
            return
        if self._writer.stream is not None:  # nobody would answer it
            self.guard(self.abort)
            return
        self._reader.receive(data)
        self.guard(self._read_events)

    def eof_received(self) -> bool:
        """The client closed its sending side; earlier requests are still answered, but for a stream that is the end."""
        if self._channel.transport is None:
            return False
        if self._writer.stream is not None:
            self.guard(self.close)
            return False
        self._machine.receive_data(b"")
        self.guard(self._read_events)
        return self._channel.transport is not None

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone."""
        self._channel.forget()
        self._give_up()
        self._acceptor.connection_limit.forget(self)

    def pause_writing(self) -> None:
        """The client reads too slowly: send no further piece and read no further request until it catches up."""
        self._channel.may_write = False

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._channel.may_write = True
        self._channel.note_activity()
        self._step_soon()

    def guard(self, step: Callable[..., None], *arguments: object) -> None:
        """Run a step of this connection; if it fails, no other connection is affected: this one ends and counts nowhere
        any more, whatever its socket does.
        """
        try:
            step(*arguments)
            return
        except Exception as failure:
            error = failure
        transport = self._channel.take()
        peer = transport and shown_peer(transport)
        self._acceptor.faults.note(peer or "of HTTP", "http", error)
        self._acceptor.connection_limit.forget(self)
        self._give_up()
        for end in () if transport is None else (transport.abort, transport.close):
            try:
                end()
                return
            except Exception as other:
                self._acceptor.faults.note(peer or "of HTTP", "end", other)

    # --- what the service calls ---

    def close(self) -> None:
        """End the connection; a response being sent is cut off."""
        self._writer.end_stream()
        self._channel.close()
        self._give_up()

    def abort(self) -> None:
        """End the connection at once, and drop unsent bytes."""
        self._channel.abort()
        self._give_up()

    @property
    def is_waiting(self) -> bool:
        """Is there no complete request to answer, or nobody who waits for the answer?"""
        return self._reader.is_waiting or self._channel.is_left

    def check_timeouts(self, now_ms: int) -> None:
        """End the connection if it is idle too long, or its request takes too long to arrive."""
        self._writer.note_progress(now_ms)
        is_open = self._channel.transport is not None
        if is_open and self._reader.takes_too_long(now_ms) and not self._admission.is_awaited:
            late = Refusal(HTTPStatus.REQUEST_TIMEOUT, "the request took too long to arrive")
            self.guard(self._refuse, late)
        elif self._awaited is not None:  # the broker is at work, and not the client idle
            return
        elif now_ms - self._channel.last_activity_ms >= self._acceptor.limits.idle_ms_max:
            self.guard(self.abort)

    def recheck_rights(self, users: Container[str]) -> None:
        """Rights have changed, or what is known of these users: an answer under way ends if its user may not have it
        any more.
        """
        reader, authentication, identity = self._reader, self._acceptor.authentication, self.identity
        request, route = reader.request, reader.route
        is_answering = self._awaited is not None or self._writer.is_under_way
        if authentication is None or request is None or route is None or identity is None or not is_answering:
            return
        may_be_broken_off = request.method in _READING or route.still_may is not None
        is_lost = identity.user in users and may_be_broken_off
        if not is_lost and authentication.still_allows(route, request, identity):
            return
        why = _CHANGED if is_lost else _WITHDRAWN
        if self._awaited is not None:
            self._awaited.cancel()
            self._awaited = None
            self._send(text_response(HTTPStatus.FORBIDDEN, why), closes=True)
        elif self._writer.stream is not None:
            self._writer.stream.end(why)
        else:
            self.abort()  # only a cut connection tells the client that the rest is missing

    def _give_up(self) -> None:
        """The client is gone: drop the rest of the response."""
        self._reader.let_go()
        self._admission.forget()
        if self._awaited is not None:
            self._awaited.cancel()
            self._awaited = None
        self._writer.give_up()

    # --- requests ---

    def _read_events(self) -> None:
        """Continue until h11 needs more bytes or a request is complete."""
        try:
            while self._channel.transport is not None and self._writer.pieces is None:
                if self._admission.is_awaited:
                    break
                event = self._reader.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    break
                if isinstance(event, h11.ConnectionClosed):
                    self.close()
                elif isinstance(event, h11.Request):
                    self._begin(event)
                elif isinstance(event, h11.Data):
                    refusal = self._reader.take(event.data)
                    if refusal is not None:
                        self._refuse(refusal)
                elif isinstance(event, h11.EndOfMessage):
                    self._answer()
        except h11.RemoteProtocolError as error:
            reason = str(error).partition(": bytearray")[0]  # h11 quotes the line in Python's notation
            self._refuse(Refusal(error.error_status_hint or 400, reason))
            error.__traceback__ = None  # its frames refer to it, and to this connection

    def _begin(self, event: h11.Request) -> None:
        """The head of a request arrived: refuse what this client may not have, or not now."""
        reader, admission, transport = self._reader, self._admission, self._channel.transport
        refusal = reader.begin(event)
        request, route = reader.request, reader.route
        if refusal is None and request is not None:
            reader.denial = self._acceptor.cors.preflight(request)
        asks = reader.denial is not None
        if refusal is None and request is not None and route is not None and transport is not None and not asks:
            refusal = admission.refusal(request, route, self)
            if refusal is None:
                admission.begin(request, route, self, transport)
                reader.denial = admission.response
        if refusal is not None:
            self._refuse(refusal)
        elif admission.is_awaited:
            self._channel.pause_reading()
            self._channel.watch(partial(self.guard, self.abort))
        elif self._machine.they_are_waiting_for_100_continue:
            self._continue()

    def _continue(self) -> None:
        """The client asks whether to send the body."""
        if self._reader.denial is not None:
            self._send(self._reader.denial, closes=True)
        elif not self._reader.takes_body:
            self._refuse(Refusal(HTTPStatus.EXPECTATION_FAILED, "this path takes no request body"))
        else:
            self._channel.write(self._machine.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")

    def _go_on(self) -> None:
        """The awaited login is decided."""
        transport = self._channel.transport
        if transport is None:
            return
        self._admission.decide(self)
        self._reader.denial = self._admission.response
        self._channel.unwatch()
        transport.resume_reading()
        if self._machine.they_are_waiting_for_100_continue:
            self._continue()
        self._read_events()

    def _answer(self) -> None:
        answer = self._reader.answer(self, self._acceptor.name, self._channel.has_lost_client)
        if isinstance(answer, Response):
            self._send(answer)
            return
        self._awaited = answer
        self._channel.note_activity()  # it may wait as long for its answer as others may be idle
        self._channel.pause_reading()
        self._channel.watch(partial(self.guard, self.abort))
        answer.add_done_callback(partial(self.guard, self._answered))

    def _answered(self, awaited: asyncio.Future[Response]) -> None:
        """The awaited response is ready."""
        if self._awaited is not awaited or self._reader.request is None:
            if not awaited.cancelled() and awaited.exception() is None:
                close_body(awaited.result())
            return
        self._awaited = None
        failure = awaited.exception()
        self._send(awaited.result() if failure is None else self._reader.failed(failure))

    def _refuse(self, refusal: Refusal) -> None:
        """Answer an invalid request and close: where the next request begins is unknown."""
        if self._machine.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._send(text_response(refusal.status, refusal.reason, _MORE.get(refusal.status, ())), closes=True)
        if self._channel.transport is not None and self._writer.pieces is None:
            self.close()

    # --- answers ---

    def _send(self, response: Response, *, closes: bool = False) -> None:
        closes = closes or self._acceptor.is_stopping
        self._channel.unwatch()
        response = self._acceptor.cors.marked(response, self._reader.request)
        self._writer.begin(response, with_body=self._reader.wants_body, closes=closes)
        if self._writer.stream is not None:
            self._writer.stream.wake = self._step_soon
        elif self._writer.file is not None:
            self._channel.watch(partial(self.guard, self.abort), is_sent_something=True)
        self._step_soon()

    def _step_soon(self) -> None:
        """One step per round of the event loop: a client that sends many requests at once cannot stall others."""
        if not self._step_is_due and self._channel.transport is not None:
            self._step_is_due = True
            self._acceptor.call_soon(partial(self.guard, self._step))

    def _step(self) -> None:
        """Send the next piece; after the last one, continue with the next request."""
        self._step_is_due = False
        machine, writer, transport = self._machine, self._writer, self._channel.transport
        if transport is None or not self._channel.may_write or writer.is_transferring:
            return
        if writer.file is not None:
            writer.send_file(writer.file, partial(self.guard, self._file_sent))
        elif writer.stream is not None:
            if writer.send_of_stream(writer.stream):
                self._step_soon()
            elif writer.stream.is_over:
                self.close()
        elif writer.pieces is not None:
            if writer.send_piece(writer.pieces):
                self._step_soon()
            else:
                self.abort()  # only a cut connection tells the client that the rest is missing
        elif machine.our_state is h11.DONE and machine.their_state is h11.DONE:
            machine.start_next_cycle()
            self._channel.unwatch()
            self.waiting_since_ms = self._acceptor.now_ms()
            self._reader.end(self.waiting_since_ms)
            transport.resume_reading()
            self._read_events()
        elif machine.our_state in (h11.MUST_CLOSE, h11.CLOSED, h11.DONE):
            self.close()

    def _file_sent(self, failure: OSError | None) -> None:
        if self._writer.file_sent(failure):
            self._step_soon()
        else:
            self.abort()  # only a cut connection tells the client that the rest is missing


def shown_peer(transport: asyncio.BaseTransport) -> str:
    """The client's address as host:port; empty if the socket does not know."""
    with suppress(Exception):
        return shown_address(transport.get_extra_info("peername"))
    return ""


def peer_address(transport: asyncio.BaseTransport) -> str:
    """The client's IP address; empty if the socket does not know."""
    with suppress(Exception):
        return str(transport.get_extra_info("peername")[0])
    return ""
