"""Who may use a route: what a client shows, who that is, and what is granted, with a desk under the test's control."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import pytest

from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.login import Login
from artemis_py.security.rights import Authorizer
from artemis_py.server.events.server_sent_events import Listener
from artemis_py.server.http.authentication import Authentication, credentials_of
from artemis_py.server.http.requests import HttpLimits, Request, Response
from artemis_py.server.http.response_writer import SAFETY
from artemis_py.server.http.routing import Route
from tests.kit.documents import load_core
from tests.kit.fake_loop import FakeTransport
from tests.kit.secured import basic
from tests.kit.stepped_http import SteppedHttp, answer, answers, asked

USERS: Final = {"ann": "s3cret:€", "bob": "other"}
ROLES: Final = {"ann": frozenset({"editors"}), "bob": frozenset({"viewers"}), "guest": frozenset({"guests"})}
TOKEN: Final = "eyJh.bGci.OiJ-_9=="
NOBODY: Final = Credentials(None, peer="10.0.0.1")
SECRETS: Final = (USERS["ann"], TOKEN, "s3cret", base64.b64encode(b"ann:nope").decode())


@dataclass(eq=False)
class SmallDesk:
    """Decides at once, or when the test says so."""

    waits: bool = False
    has_guest: bool = False
    waiting: list[tuple[Login, Credentials, Callable[[], None]]] = field(default_factory=list)
    seen: list[Credentials] = field(default_factory=list)

    def begin(self, credentials: Credentials, wake: Callable[[], None]) -> Login:
        login = Login()
        self.seen.append(credentials)
        self.waiting.append((login, credentials, wake))
        if not self.waits:
            self.let_go()
        return login

    def let_go(self) -> None:
        """Decides all that wait."""
        for login, credentials, wake in self.waiting:
            user = "ann" if credentials.user is None and credentials.password == TOKEN else credentials.user
            if user is None and self.has_guest:
                user = "guest"
            elif user is None or (USERS.get(user) != credentials.password and credentials.password != TOKEN):
                login.refusal, user = "User name or password is invalid", None
            if user is not None:
                login.identity = Identity(user, ROLES[user])
            if self.waits:
                wake()
        self.waiting.clear()


SETTINGS: Final = """
<security-settings>
  <security-setting match="mops.#">
    <permission type="view" roles="editors,viewers"/><permission type="edit" roles="editors"/>
  </security-setting>
  <security-setting match="own.broker.getLog"><permission type="view" roles="guests"/></security-setting>
  <security-setting match="mops.queue.bobs own.pause"><permission type="edit" roles="viewers"/></security-setting>
</security-settings>
"""
AUTHORIZER: Final = Authorizer(load_core(SETTINGS))


def keep(request: Request) -> Response:
    return Response(200, "text/plain", request.body)


ROUTES: Final = [
    Route("/log", {"GET": keep}, {"GET": "broker.getLog"}),
    Route("/cursor/{name}", {"GET": keep, "PUT": keep}, {"GET": "broker.getLogCursor", "PUT": "broker.setLogCursor"}),
    Route("/queues/{queue}/pause", {"POST": keep}, {"POST": "queue.{queue}.pause"}),
    Route("/forgotten", {"GET": keep}),
    Route("/metrics", {"GET": keep}, {"GET": "broker.getMetrics"}, is_open=True),
]


def world(desk: SmallDesk, *open_paths: str, limits: HttpLimits | None = None, names: bool = False) -> SteppedHttp:
    paths = frozenset(open_paths)
    authentication = Authentication(desk, AUTHORIZER, open_paths=paths, domain="web", checks_names=names)
    return SteppedHttp(ROUTES, limits, authentication)


WHO: Final[Mapping[str, bytes]] = {
    "nobody": b"X: y",
    "wrong": b"Authorization: %b" % basic("ann", "nope").encode(),
    "unknown": b"Authorization: %b" % basic("eve", "s3cret").encode(),
    "viewer": b"Authorization: %b" % basic("bob", USERS["bob"]).encode(),
    "editor": b"Authorization: %b" % basic("ann", USERS["ann"]).encode(),
    "token": b"authorization:  bearer  " + TOKEN.encode(),
}


@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [
        ("GET", "/log", (401, 401, 401, 200, 200, 200)),
        ("HEAD", "/log", (401, 401, 401, 200, 200, 200)),
        ("GET", "/cursor/c", (401, 401, 401, 200, 200, 200)),
        ("PUT", "/cursor/c", (401, 401, 401, 403, 200, 200)),
        ("POST", "/queues/jobs/pause", (401, 401, 401, 403, 200, 200)),
        ("POST", "/queues/bobs%20own/pause", (401, 401, 401, 200, 403, 403)),
        ("POST", "/queues/%7Bqueue%7D/pause", (401, 401, 401, 403, 200, 200)),
        ("GET", "/forgotten", (401, 401, 401, 403, 403, 403)),
        ("GET", "/metrics", (200, 200, 200, 200, 200, 200)),
        ("DELETE", "/log", (405, 405, 405, 405, 405, 405)),
        ("TRACE", "/log", (405, 405, 405, 405, 405, 405)),
        ("TRACE", "/nowhere", (405, 405, 405, 405, 405, 405)),
        ("GET", "/nowhere", (404, 404, 404, 404, 404, 404)),
    ],
)
@pytest.mark.parametrize("waits", [False, True])
def test_each_route_is_for_those_who_may(method: str, path: str, statuses: tuple[int, ...], waits: bool) -> None:
    body = b"kept" if method == "PUT" else b""
    for (who, header), status in zip(WHO.items(), statuses, strict=True):
        desk = SmallDesk(waits=waits)
        http = world(desk, "metrics")
        transport = http.talk(asked(method, path, header, body=body))
        desk.let_go()
        http.loop.run()
        found, headers, text = answer(transport, method)
        assert found == status, (who, method, path)
        assert ("www-authenticate" in headers) == (status == 401)
        assert not any(secret.encode() in transport.taken for secret in SECRETS)
        assert all(headers[name.lower()] == value for name, value in SAFETY)
        assert (text == body) == (status == 200 or method == "HEAD")
        assert not transport.closed


def test_words_say_what_to_do() -> None:
    http = world(SmallDesk())
    assert b"log in with a user and password" in answer(http.talk(asked("GET", "/log")))[2]
    assert b"User name or password is invalid" in answer(http.talk(asked("GET", "/log", WHO["wrong"])))[2]
    text = answer(http.talk(asked("PUT", "/cursor/c", WHO["viewer"])))[2].decode()
    assert "User: bob does not have permission='EDIT' on address mops.broker.setLogCursor; " in text
    assert text.strip().endswith(
        "; to grant it, write in the security-setting mops.# of broker.xml: "
        '<permission type="edit" roles="editors,viewers"/>'
    )


def test_what_the_desk_is_given() -> None:
    desk = SmallDesk()
    http = world(desk)
    http.talk(asked("GET", "/log", WHO["editor"]))
    assert desk.seen == [Credentials("ann", USERS["ann"], domain="web")]
    assert answer(http.talk(asked("GET", "/log", b"Authorization: %b" % basic("", "x").encode())))[0] == 401
    assert desk.seen[-1] == Credentials("", "x", domain="web")


@pytest.mark.parametrize(
    "text",
    [
        "", "Basic", "Basic ", "Basic YW5u", "Basic !!!!", "Basic YW5uOg", "Digest YW5uOng=",
        "Basic YW5uOng=, Basic YQ==",
        "Basic " + base64.b64encode(b"ann:\xff\xfe").decode(), "Basic " + base64.b64encode(b"ann:a\nb").decode(),
        "Basic " + base64.b64encode(b"an\0n:ab").decode(), "Bearer a b", "Bearer a,b", "\x00", "Basic YW5uOng=\x00",
    ],
)  # fmt: skip
def test_headers_that_say_nothing(text: str) -> None:
    assert credentials_of(text, NOBODY) is None


def test_a_request_waits_for_its_login_and_holds_nobody_else() -> None:
    desk = SmallDesk(waits=True)
    http = world(desk, "metrics")
    connection, transport = http.connect()
    connection.data_received(asked("PUT", "/cursor/c", WHO["editor"], body=b"0123456789")[:-4])
    http.loop.run()
    assert (transport.reading, transport.taken) == (False, b"")
    connection.data_received(b"6789" + asked("GET", "/log", WHO["viewer"]))  # what the socket had already
    assert transport.taken == b""
    assert answer(http.talk(asked("GET", "/metrics")))[0] == 200
    http.loop.now_ms += HttpLimits().request_ms_max
    http.acceptor.tick(http.loop.now_ms)
    assert not transport.closed, "not the client is slow, but the login"
    desk.let_go()
    http.loop.run()
    assert len(desk.waiting) == 1, "one request at a time"
    desk.let_go()
    http.loop.run()
    assert [found[0] for found in answers(transport.taken, "PUT", "GET")] == [200, 200]


def test_a_client_that_leaves_is_forgotten() -> None:
    desk = SmallDesk(waits=True)
    http = world(desk)
    connection, transport = http.connect()
    connection.data_received(asked("GET", "/log", WHO["editor"]))
    connection.connection_lost(None)
    assert desk.waiting[0][0].is_given_up
    desk.let_go()
    http.loop.run()
    assert (transport.taken, http.requests) == (b"", [])


def test_a_body_is_not_asked_for_before_the_login() -> None:
    desk = SmallDesk(waits=True)
    http = world(desk)
    for header, starts in (("wrong", b"HTTP/1.1 401 "), ("viewer", b"HTTP/1.1 403 "), ("editor", b"HTTP/1.1 100 ")):
        transport = http.talk(asked("PUT", "/cursor/c", WHO[header], b"Expect: 100-continue", b"Content-Length: 4"))
        assert transport.taken == b""
        desk.let_go()
        http.loop.run()
        assert transport.taken.startswith(starts)
        assert transport.closed == (header != "editor")


def test_a_guest_without_the_right_is_asked_who_it_is() -> None:
    http = world(SmallDesk(has_guest=True))
    assert answer(http.talk(asked("GET", "/log")))[0] == 401


def test_another_prefix_has_other_permissions() -> None:
    authentication = Authentication(SmallDesk(has_guest=True), AUTHORIZER, prefix="own")
    http = SteppedHttp(ROUTES, authentication=authentication)
    assert answer(http.talk(asked("GET", "/log")))[0] == 200
    assert answer(http.talk(asked("GET", "/log", WHO["editor"])))[0] == 403


def test_a_desk_that_cannot_tell_now_is_asked_again_later() -> None:
    desk = SmallDesk(waits=True)
    http = world(desk)
    transport = http.talk(asked("GET", "/log", WHO["editor"]))
    [(login, _, wake)] = desk.waiting
    login.refusal, login.is_open = "Too many logins are waiting; try again later", True
    wake()
    http.loop.run()
    status, headers, text = answer(transport)
    assert (status, headers["retry-after"], b"try again later" in text) == (503, "5", True)


def test_strangers_take_no_place_of_those_who_logged_in() -> None:
    limits = HttpLimits(connections_max=4, spare_connections=0, strangers_per_peer_max=3)
    http = world(SmallDesk(), limits=limits)
    friend, kept = http.connect()
    friend.data_received(asked("GET", "/log", WHO["viewer"]))
    http.loop.run()
    http.loop.now_ms += 1000
    strangers = [http.connect()[1] for _ in range(20)]
    assert [one.closed for one in strangers] == [True] * 17 + [False] * 3
    for number in range(20):
        http.connect(partial(FakeTransport, peer=(f"10.0.0.{number}", 1)))
    assert not kept.closed
    assert http.acceptor.connections_open == limits.connections_max
    friend.data_received(asked("GET", "/log", WHO["viewer"]))
    http.loop.run()
    assert [found[0] for found in answers(kept.taken, "GET", "GET")] == [200, 200]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/log", [b"Origin: http://evil.example"], 403),
        ("/log", [b"Sec-Fetch-Site: cross-site", b"Sec-Fetch-Mode: no-cors", b"Sec-Fetch-Dest: image"], 403),
        ("/log", [b"Sec-Fetch-Site: same-site", b"Sec-Fetch-Mode: cors"], 403),
        ("/log", [b"Sec-Fetch-Site: cross-site", b"Sec-Fetch-Mode: navigate", b"Sec-Fetch-Dest: iframe"], 403),
        ("/log", [b"Sec-Fetch-Site: cross-site", b"Sec-Fetch-Mode: navigate", b"Sec-Fetch-Dest: document"], 200),
        ("/log", [b"Sec-Fetch-Site: none", b"Sec-Fetch-Mode: navigate"], 200),
        ("/log", [b"Origin: http://broker", b"Sec-Fetch-Site: same-origin"], 200),
        ("/metrics", [b"Origin: http://evil.example"], 403),
    ],
)
def test_a_page_of_another_site_cannot_use_a_browser_s_login(path: str, headers: list[bytes], status: int) -> None:
    desk = SmallDesk()
    found = answer(world(desk, "metrics").talk(asked("GET", path, WHO["editor"], *headers)))
    assert found[0] == status
    assert (desk.seen == []) == (status == 403), "a page cannot even try passwords"


@pytest.mark.parametrize("names", [False, True])
def test_a_page_that_took_the_name_reads_no_metrics_where_names_are_checked(names: bool) -> None:
    data = b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    assert answer(world(SmallDesk(), "metrics", names=names).talk(data))[0] == (403 if names else 200)


def test_no_password_is_in_a_repr_or_in_the_log_of_a_handler_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    def fails(request: Request) -> Response:
        raise RuntimeError(repr(request))

    authentication = Authentication(SmallDesk(), AUTHORIZER)
    http = SteppedHttp([Route("/fails", {"GET": fails}, {"GET": "broker.getLog"})], authentication=authentication)
    with caplog.at_level(logging.DEBUG):
        transport = http.talk(asked("GET", "/fails", WHO["editor"]))
    assert answer(transport)[0] == 500
    said = caplog.text + transport.taken.decode()
    assert "the handler of /fails failed" in said
    header = WHO["editor"].split()[-1].decode()
    assert header not in said
    assert "s3cret" not in said


def test_a_user_and_password_in_the_target_are_not_repeated() -> None:
    data = b"GET http://ann:s3cret@evil.example/echo HTTP/1.1\r\nHost: %s\r\n\r\n"
    for host, wanted in ((b"broker", 400), (b"ann:s3cret@evil.example", 403)):
        status, _, text = answer(world(SmallDesk()).talk(data % host))
        assert (status, b"s3cret" in text) == (wanted, False)


# ---- long answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("user", "changed"), [("bob", "bob"), ("guest", "")])
def test_a_stream_ends_with_its_reason_when_its_user_may_not_have_it_any_more(user: str, changed: str) -> None:
    """A regular end without a word looks like a broker that stops."""
    left, may_have = list[Listener](), {"bob", "guest"}
    stream = Listener(frozenset(), left.append)
    route = Route(
        "/events",
        {"GET": lambda _: Response(200, "text/event-stream", stream)},
        checks_itself=True,
        still_may=lambda request: request.user in may_have,
    )
    here = SteppedHttp([route], None, Authentication(SmallDesk(), AUTHORIZER, domain="web"))
    connection, transport = here.connect()
    login = basic(user, USERS.get(user, TOKEN)).encode()
    connection.data_received(asked("GET", "/events", b"Authorization: %b" % login))
    here.loop.run()
    stream.put(b"event: before\ndata: {}\n\n")
    here.loop.run()
    may_have.remove("guest")
    here.acceptor.recheck_rights({changed})
    here.acceptor.recheck_rights({changed})
    here.loop.run()
    ((status, _, body),) = answers(transport.taken, "GET")
    assert (status, left, transport.closed) == (200, [stream], True)
    before, problem = body.decode().split("\n\n", 1)
    assert before == "event: before\ndata: {}"
    assert problem.startswith('event: problem\ndata: {"error": "the permission for this ')
    assert ("the login has changed" in problem) is bool(changed)
