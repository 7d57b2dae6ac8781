"""``/console/``: the files of Artemis' own console, and what it needs beside Jolokia: log in, log out."""

from __future__ import annotations

import asyncio
import mimetypes
import re
import zipfile
from functools import partial
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any, Final, final
from urllib.parse import unquote

from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.login import Login
from artemis_py.server.http.messages import Answer, Handler, Request, Response, json_response, parse_json, text_response
from artemis_py.server.http.routing import Route
from artemis_py.server.logins.console_sessions import BASE, IDLE_MS_MAX, Sessions, cookie
from artemis_py.server.security import Security

# ---- files -----------------------------------------------------------------------------------------------------------
#
# The files of the console: a ``console.war``, packed or unpacked.


_FILE_BYTES_MAX: Final = 32 * 1024 * 1024
_INDEX: Final = "index.html"
_PRIVATE: Final = frozenset({"WEB-INF", "META-INF"})
_BASE: Final = re.compile(rb'<base href="[^"]*"')
_TYPES: Final = {".js": "text/javascript", ".json": "application/json", ".woff2": "font/woff2", ".ico": "image/x-icon"}
_POLICY: Final = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; worker-src 'self' blob:; frame-ancestors 'none'; form-action 'self'"
)
_HEADERS: Final = (("Content-Security-Policy", _POLICY),)
_KEPT: Final = (("Content-Security-Policy", _POLICY), ("Cache-Control", "private, max-age=3600"))


@final
class War:
    """Reads a war: a zip, or a folder. ``base`` is the path under which it is served."""

    def __init__(self, path: str, base: str) -> None:
        self._path = Path(path)
        self._base = base

    def answer(self, path: str) -> Response:
        """The file of a path below the base, as it is in a request; the console's page for one that only the console
        knows. For a thread: it reads files.
        """
        name = unquote(path).strip("/")
        parts = PurePosixPath(name).parts
        if "\\" in name or "\0" in name or ".." in parts or (parts and parts[0].upper() in _PRIVATE):
            return text_response(HTTPStatus.NOT_FOUND, "no such file")
        found = self._read(name) if name and name != _INDEX else None
        if found is not None:
            suffix = PurePosixPath(name).suffix.lower()
            type = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
            return Response(HTTPStatus.OK, type, found, _KEPT if parts[0] == "static" else _HEADERS)
        index = None if PurePosixPath(name).suffix and name != _INDEX else self._read(_INDEX)
        if index is None:
            return text_response(HTTPStatus.NOT_FOUND, "no such file")
        page = _BASE.sub(b'<base href="%s"' % f"{self._base}/".encode(), index, count=1)
        return Response(HTTPStatus.OK, "text/html; charset=utf-8", page, _HEADERS)

    def _read(self, name: str) -> bytes | None:
        """A file; None if there is none of a reasonable size."""
        try:
            if self._path.is_dir():
                return self._of_folder(name)
            with zipfile.ZipFile(self._path) as war:
                entry = war.getinfo(name)
                return None if entry.is_dir() or entry.file_size > _FILE_BYTES_MAX else war.read(entry)
        except (OSError, KeyError, zipfile.BadZipFile):
            return None

    def _of_folder(self, name: str) -> bytes | None:
        file = (self._path / name).resolve()
        if not file.is_relative_to(self._path.resolve()) or not file.is_file():
            return None
        return None if file.stat().st_size > _FILE_BYTES_MAX else file.read_bytes()


# ---- routes ----------------------------------------------------------------------------------------------------------
#
# What the console asks for beside Jolokia: who has logged in, log in, log out.


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


def console_war_routes(path: str | None, security: Security | None, loop: asyncio.AbstractEventLoop) -> list[Route]:
    """The routes of the console that is at a path; none without it."""
    if path is None:
        return []
    war = War(path, BASE)

    def file(request: Request) -> Answer:
        return loop.run_in_executor(None, war.answer, request.path[len(BASE) :])

    def to_page(_request: Request) -> Response:
        return Response(HTTPStatus.FOUND, "text/plain", b"", (("Location", f"{BASE}/"),))

    logins = _Logins(security, loop)
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
    """Who is there. Without ``security`` nobody logs in."""

    def __init__(self, security: Security | None, loop: asyncio.AbstractEventLoop) -> None:
        self._security = security
        self._loop = loop

    @property
    def _sessions(self) -> Sessions | None:
        return None if self._security is None else self._security.sessions

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
        return json_response(HTTPStatus.OK, [] if self._security is None else [_FORM])

    def timeout(self, _request: Request) -> Response:
        """After how many seconds an idle session ends; -1: never."""
        return json_response(HTTPStatus.OK, {"timeout": -1 if self._security is None else IDLE_MS_MAX // 1000})

    def begin(self, request: Request) -> Answer:
        """Log in with user and password."""
        security = self._security
        if security is None:
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
                    security.note_refusal(login, user, request.peer)
                answer.set_result(_logged_in(security.sessions, login, request))

        login = security.logins.begin(_given(user, password, request), decided)
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
