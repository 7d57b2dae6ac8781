"""The sessions of the console, and the files of a war."""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.login import Login
from artemis_py.server.http.artemis_console import War, console_war_routes
from artemis_py.server.http.messages import Request, Response
from artemis_py.server.logins import console_sessions as sessions
from artemis_py.server.logins.console_sessions import IDLE_MS_MAX, LIFETIME_MS_MAX, Sessions, cookie
from artemis_py.server.security import Security

ANN = Identity("ann", frozenset({"amq"}))


class Clock:
    """A clock that the test moves."""

    now_ms = 1_000

    def __call__(self) -> int:
        return self.now_ms


def asked(token: str, method: str = "GET", path: str = "/console/jolokia", **headers: str) -> Request:
    sent = {
        "cookie": f"other=1; artemis_console={token}",
        **{name.replace("_", "-"): text for name, text in headers.items()},
    }
    return Request(method, path, headers=sent)


def who(known: Sessions, request: Request) -> Identity | None:
    return known.identity_of(request.method, request.path, request.headers)


def test_a_session_is_found_by_its_cookie_alone() -> None:
    clock = Clock()
    known = Sessions(clock, clock)
    token = known.begin(ANN)
    assert who(known, asked(token)) is ANN
    assert who(known, asked(token + "x")) is None
    assert who(known, asked("")) is None
    assert who(known, Request("GET", "/console/user")) is None
    assert who(known, Request("GET", "/console/user", headers={"cookie": 'artemis_console="\\x;;=,'})) is None


def test_a_cookie_counts_below_the_console_and_for_changes_of_its_own_pages() -> None:
    """Whether an Origin is the broker's own is checked before."""
    clock = Clock()
    known = Sessions(clock, clock)
    token = known.begin(ANN)
    assert who(known, asked(token, path="/api/queues")) is None
    assert who(known, asked(token, path="/consoles/x")) is None
    assert who(known, asked(token, "POST")) is None
    assert who(known, asked(token, "POST", sec_fetch_site="same-site")) is None
    assert who(known, asked(token, "POST", sec_fetch_site="same-origin")) is ANN
    assert who(known, asked(token, "POST", origin="http://localhost:8161")) is ANN


def test_a_session_ends() -> None:
    clock = Clock()
    known = Sessions(clock, clock)
    token = known.begin(ANN)
    clock.now_ms += IDLE_MS_MAX
    assert who(known, asked(token)) is ANN
    clock.now_ms += IDLE_MS_MAX + 1
    assert who(known, asked(token)) is None
    token = known.begin(ANN)
    for _ in range(LIFETIME_MS_MAX // IDLE_MS_MAX):
        clock.now_ms += IDLE_MS_MAX
        assert who(known, asked(token)) is ANN
    clock.now_ms += 1
    assert who(known, asked(token)) is None
    short = known.begin(Identity("bob", frozenset(), expires_ms=clock.now_ms + 5))
    clock.now_ms += 5
    assert who(known, asked(short)) is None
    token = known.begin(ANN)
    known.end(asked(token).headers)
    assert who(known, asked(token)) is None
    assert len(known) == 0


def test_sessions_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "SESSIONS_MAX", 2)
    clock = Clock()
    known = Sessions(clock, clock)
    first, second = known.begin(ANN), known.begin(ANN)
    assert who(known, asked(first)) is ANN
    known.begin(ANN)
    assert who(known, asked(second)) is None
    assert who(known, asked(first)) is ANN


def test_the_cookie() -> None:
    name, value = cookie("t", is_secure=True)
    assert name == "Set-Cookie"
    assert value == "artemis_console=t; Path=/console/; HttpOnly; SameSite=Strict; Secure"
    assert cookie("", is_secure=False)[1].endswith("SameSite=Strict; Max-Age=0")


FILES = {
    "index.html": b'<head><base href="/hawtio/"></head>',
    "static/js/main.js": b"main",
    "hawtconfig.json": b"{}",
    "WEB-INF/web.xml": b"secret",
    "META-INF/MANIFEST.MF": b"secret",
}


@pytest.fixture(params=["zip", "folder"])
def war(request: pytest.FixtureRequest, tmp_path: Path) -> War:
    """The same files packed and unpacked; a secret lies beside them."""
    (tmp_path / "secret").write_text("secret")
    path = tmp_path / "console.war"
    if request.param == "zip":
        with zipfile.ZipFile(path, "w") as packed:
            for name, data in FILES.items():
                packed.writestr(name, data)
        return War(str(path), "/console")
    for name, data in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    (path / "link").symlink_to(tmp_path / "secret")
    return War(str(path), "/console")


@pytest.mark.parametrize(
    ("path", "type", "body"),
    [
        ("/static/js/main.js", "text/javascript", b"main"),
        ("/hawtconfig.json", "application/json", b"{}"),
        ("/", "text/html; charset=utf-8", b'<head><base href="/console/"></head>'),
        ("/index.html", "text/html; charset=utf-8", b'<head><base href="/console/"></head>'),
        ("/artemis/queues", "text/html; charset=utf-8", b'<head><base href="/console/"></head>'),
    ],
)
def test_the_files_of_a_war(war: War, path: str, type: str, body: bytes) -> None:
    answer = war.answer(path)
    assert (answer.status, answer.content_type, answer.body) == (200, type, body)
    assert "frame-ancestors 'none'" in dict(answer.headers)["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/none.js",
        "/WEB-INF/web.xml",
        "/web-inf/web.xml",
        "/%57EB-INF/web.xml",
        "/META-INF/MANIFEST.MF",
        "//WEB-INF/web.xml",
        "/./WEB-INF/web.xml",
        "/../secret",
        "/static/%2e%2e/%2e%2e/secret",
        "/x\\..\\secret",
        "/a%00.js",
    ],
)
def test_what_is_no_file_of_it(war: War, path: str) -> None:
    assert war.answer(path).status == 404


def test_a_link_leads_nowhere(war: War) -> None:
    body = war.answer("/link").body
    assert isinstance(body, bytes)
    assert b"secret" not in body


def test_pages_of_other_sites_log_nobody_out() -> None:
    clock = Clock()
    known = Sessions(clock, clock)
    token = known.begin(ANN)
    for site in ("cross-site", "same-site"):
        assert not known.end(asked(token, sec_fetch_site=site).headers)
    assert not known.end({})
    assert len(known) == 1
    assert known.end(asked(token, sec_fetch_site="same-origin").headers)
    assert len(known) == 0


def test_a_login_that_is_refused_is_told() -> None:
    class LoginService:
        def begin(self, credentials: Credentials, _wake: Callable[[], None]) -> Login:
            login = Login()
            if credentials.password == "right":
                login.identity = ANN
            else:
                login.refusal = "User name or password is invalid"
            return login

    told: list[tuple[str, str, str]] = []

    def note(login: Login, user: str | None, peer: str) -> None:
        told.append((user or "", peer, login.refusal))

    async def log_in(password: str) -> Response:
        security = cast(
            "Security", SimpleNamespace(logins=LoginService(), sessions=Sessions(Clock(), Clock()), note_refusal=note)
        )
        routes = console_war_routes("console.war", security, asyncio.get_running_loop())
        (route,) = [one for one in routes if one.path == "/console/auth/login"]
        handler = route.handler("POST")
        assert handler is not None
        body = json.dumps({"username": "ann", "password": password}).encode()
        answer = handler(Request("POST", route.path, body=body, peer="10.0.0.1"))
        return answer if isinstance(answer, Response) else await answer

    assert asyncio.run(log_in("right")).status == 200
    assert told == []
    assert asyncio.run(log_in("wrong")).status == 403
    assert told == [("ann", "10.0.0.1", "User name or password is invalid")]
