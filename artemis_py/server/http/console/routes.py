"""``/console/``: the files of Artemis' console, and what it asks for beside Jolokia: who is there, log in, log out."""

from __future__ import annotations

import asyncio
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.login import Login
from artemis_py.server.console_sessions import BASE, IDLE_MS_MAX, Sessions, cookie
from artemis_py.server.gate import SecurityGate
from artemis_py.server.http.console.war import War
from artemis_py.server.http.json_body import parse_json
from artemis_py.server.http.messages import Answer, Handler, Request, Response, json_response, text_response
from artemis_py.server.http.routing import Route

_PRINCIPALS: Final = "org.apache.activemq.artemis.spi.core.security.jaas."
_PUBLIC: Final = "public"
"""Whom the console takes for somebody who need not log in."""
_FORM: Final = {
    "method": "form",
    "name": "User credentials",
    "type": "json",
    "url": f"{BASE}/auth/login",
    "logoutUrl": f"{BASE}/auth/logout",
    "userField": "username",
    "passwordField": "password",
}
_FIXED: Final[dict[str, object]] = {"plugin": [], "proxy/enabled": False, "keycloak/enabled": False, "auth/config": {}}


def console_war_routes(path: str | None, gate: SecurityGate | None, loop: asyncio.AbstractEventLoop) -> list[Route]:
    """The routes of the console that is at a path; none without it."""
    if path is None:
        return []
    war = War(path, BASE)

    def file(request: Request) -> Answer:
        return loop.run_in_executor(None, war.answer, request.path[len(BASE) :])

    def to_page(_request: Request) -> Response:
        return Response(HTTPStatus.FOUND, "text/plain", b"", (("Location", f"{BASE}/"),))

    logins = _Logins(gate, loop)
    asked: dict[str, dict[str, Handler]] = {
        "user": {"GET": logins.user},
        "auth/config/login": {"GET": logins.ways},
        "auth/config/session-timeout": {"GET": logins.timeout},
        "auth/login": {"POST": logins.begin},
        "auth/logout": {"GET": logins.end, "POST": logins.end},
        "refresh": {"GET": logins.user},
        **{path: {"GET": partial(_fixed, value)} for path, value in _FIXED.items()},
    }
    routes = [Route(f"{BASE}/{path}", handlers, needs_login=False) for path, handlers in asked.items()]
    return [
        *routes,
        Route(BASE, {"GET": to_page}, needs_login=False),
        Route(f"{BASE}/*", {"GET": file}, needs_login=False),
    ]


def _fixed(value: object, _request: Request) -> Response:
    return json_response(HTTPStatus.OK, value)


class _Logins:
    """Who is there. Without a gate nobody logs in."""

    def __init__(self, gate: SecurityGate | None, loop: asyncio.AbstractEventLoop) -> None:
        self._gate = gate
        self._loop = loop

    @property
    def _sessions(self) -> Sessions | None:
        return None if self._gate is None else self._gate.sessions

    def user(self, request: Request) -> Response:
        """The name of whoever is there."""
        if self._sessions is None:
            return json_response(HTTPStatus.OK, _PUBLIC)
        identity = self._sessions.identity_of(request.method, request.path, request.headers)
        if identity is None:
            return text_response(HTTPStatus.FORBIDDEN, "nobody has logged in")
        return json_response(HTTPStatus.OK, identity.user)

    def ways(self, _request: Request) -> Response:
        """How one may log in."""
        return json_response(HTTPStatus.OK, [] if self._gate is None else [_FORM])

    def timeout(self, _request: Request) -> Response:
        """After how many seconds an idle session ends; -1: never."""
        return json_response(HTTPStatus.OK, {"timeout": -1 if self._gate is None else IDLE_MS_MAX // 1000})

    def begin(self, request: Request) -> Answer:
        """Log in with user and password."""
        gate = self._gate
        if gate is None:
            return json_response(HTTPStatus.OK, _principals(Identity(_PUBLIC, frozenset())))
        if "origin" not in request.headers and request.headers.get("sec-fetch-site") not in (None, "same-origin"):
            return text_response(HTTPStatus.FORBIDDEN, "only the console may log in here")
        try:
            sent = parse_json(request.body)
        except ValueError:
            sent = None
        user, password = (sent.get("username"), sent.get("password")) if isinstance(sent, dict) else (None, None)
        if not isinstance(user, str) or not isinstance(password, str):
            return text_response(HTTPStatus.BAD_REQUEST, "send username and password in a JSON object")
        answer: asyncio.Future[Response] = self._loop.create_future()
        login: Login | None = None

        def decided() -> None:
            if login is not None and login.may_go_on and not answer.done():
                if login.identity is None:
                    gate.refusals.note(login, user, request.peer)
                answer.set_result(_logged_in(gate.sessions, login, request))

        login = gate.desk.begin(_given(user, password, request), decided)
        decided()
        answer.add_done_callback(partial(_give_up, login))
        return answer

    def end(self, request: Request) -> Response:
        """Log out: the console does so with a link. Only its own pages send the cookie, so nobody else's can."""
        is_there = self._sessions is not None and self._sessions.end(request.headers)
        headers = (("Location", f"{BASE}/"),)
        return Response(
            HTTPStatus.FOUND, "text/plain", b"", (cookie("", is_secure=False), *headers) if is_there else headers
        )


def _given(user: str, password: str, request: Request) -> Credentials:
    return Credentials(user, password, peer=request.peer, address=request.address, acceptor=request.acceptor)


def _give_up(login: Login, answer: asyncio.Future[Response]) -> None:
    login.is_given_up = answer.cancelled()


def _logged_in(sessions: Sessions, login: Login, request: Request) -> Response:
    identity = login.identity
    if identity is None:
        status = HTTPStatus.TOO_MANY_REQUESTS if login.is_open else HTTPStatus.FORBIDDEN
        return text_response(status, login.refusal)
    is_secure = request.headers.get("origin", "").startswith("https://")
    answer = json_response(HTTPStatus.OK, _principals(identity))
    return Response(
        answer.status, answer.content_type, answer.body, (cookie(sessions.begin(identity), is_secure=is_secure),)
    )


def _principals(identity: Identity) -> dict[str, Any]:
    names = [("UserPrincipal", identity.user), *(("RolePrincipal", role) for role in sorted(identity.roles))]
    return {"credentials": [], "principals": [{"name": name, "type": _PRINCIPALS + type} for type, name in names]}
