"""Requests of our programs over HTTP, to a server that says what the test wants."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from artemis_py.client.http_connection import HttpConnection, UnansweredError, is_http_url
from artemis_py.security.client_login import ClientLogin
from tests.kit.ports import free_port

WAIT_S = 10.0
NAMED = {"url": "--url"}


class Server(ThreadingHTTPServer):
    """Notes what it is asked, and answers 200, or what the path says: ``/301``."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.clients: set[tuple[str, int]] = set()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.asked.append((self.command, self.path, dict(self.headers), body))
        self.server.clients.add(self.client_address)
        status = int(self.path[1:]) if self.path[1:].isdigit() else 200
        self.send_response(status)
        self.send_header("Location", "https://elsewhere")
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"said")

    def do_POST(self) -> None:
        self.do_GET()

    def do_CONNECT(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()


def connection(url: str, *, stays_open: bool = False, takes_proxy: bool = False) -> HttpConnection:
    login = ClientLogin("ann", "secret")
    return HttpConnection(url, login, None, WAIT_S, NAMED, stays_open=stays_open, takes_proxy=takes_proxy)


def test_a_request_logs_in_and_sends_json(server: Server) -> None:
    found = connection(f"{server.url}/base/?token=secret")
    assert found.url == f"{server.url}/base"
    assert found.answer("POST", "/x?y=z", {"More": "1"}, b"{}") == (200, b"said")
    [(method, path, headers, body)] = server.asked
    assert (method, path, body) == ("POST", "/base/x?y=z", b"{}")
    assert headers["Authorization"] == "Basic YW5uOnNlY3JldA=="
    assert (headers["Content-Type"], headers["More"]) == ("application/json", "1")


def test_a_stream_goes_out_as_it_is_read(server: Server) -> None:
    headers = {"Content-Type": "application/jsonl", "Content-Length": "100000"}
    with connection(server.url).request("POST", "/", headers, io.BytesIO(b"x" * 100_000)) as answer:
        assert answer.read() == b"said"
    assert (server.asked[0][2]["Content-Type"], len(server.asked[0][3])) == ("application/jsonl", 100_000)


@pytest.mark.parametrize("status", [404, 500])
def test_a_status_is_an_answer(server: Server, status: int) -> None:
    assert connection(server.url).answer("GET", f"/{status}") == (status, b"said")


def test_nobody_follows_a_redirect(server: Server) -> None:
    """The login is for the broker that was named."""
    with pytest.raises(UnansweredError, match="it says to ask at https://elsewhere") as refused:
        connection(server.url).answer("GET", "/301")
    assert refused.value.is_final


@pytest.mark.parametrize(("stays_open", "count"), [(True, 1), (False, 3)])
def test_how_many_connections_there_are(server: Server, stays_open: bool, count: int) -> None:
    found = connection(server.url, stays_open=stays_open)
    for _ in range(3):
        found.answer("GET", "/")
    found.close()
    assert len(server.clients) == count


def test_nobody_listens() -> None:
    place = f"127.0.0.1:{free_port()}"
    url = f"http://{place}/{'long/' * 40}"
    with pytest.raises(UnansweredError, match=rf"^{place}: nothing listens there \(--url says where") as failed:
        connection(url).answer("GET", "/")
    assert failed.value.reason.startswith("nothing listens")
    assert not failed.value.is_final


def test_who_does_not_answer_in_time_is_named_with_the_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        slow = HttpConnection(f"http://127.0.0.1:{port}", ClientLogin(), None, 0.05, {})
        with pytest.raises(UnansweredError, match=rf"^127.0.0.1:{port}: no answer within 0.05 s; it may be busy"):
            slow.answer("GET", "/")


def test_a_host_that_does_not_exist_is_no_number() -> None:
    with pytest.raises(UnansweredError, match=r"^nowhere.invalid:8161: [A-Z]"):
        connection("http://nowhere.invalid:8161").answer("GET", "/")


def test_a_port_that_speaks_no_tls(server: Server) -> None:
    with pytest.raises(UnansweredError, match="no TLS connection"):
        connection(server.url.replace("http:", "https:")).answer("GET", "/")


@pytest.mark.parametrize("takes_proxy", [True, False])
def test_the_proxy_of_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch, takes_proxy: bool) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    url = f"http://127.0.0.1:{free_port()}"
    if takes_proxy:
        assert connection(url, takes_proxy=True).answer("GET", "/x") == (200, b"said")
        assert server.asked[0][1] == f"{url}/x"
        monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(UnansweredError, match="nothing listens"):
        connection(url, takes_proxy=takes_proxy).answer("GET", "/x")


def test_a_tunnel_through_a_proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", server.url.removeprefix("http://"))
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(UnansweredError):
        connection("https://far:1", takes_proxy=True).answer("GET", "/")
    assert server.asked[0][:2] == ("CONNECT", "far:1")


@pytest.mark.parametrize(
    "url", ["h:1", "http://", "http://:1", "http://h:x", "http://h:99999", "stomp://h:1", "http://["]
)
def test_what_is_no_url(url: str) -> None:
    assert not is_http_url(url)
    assert is_http_url("https://[::1]:8161/base")
