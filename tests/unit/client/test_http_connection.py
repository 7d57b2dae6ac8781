"""Requests of our programs over HTTP, to a server that says what the test wants."""

from __future__ import annotations

import io
import socket

import pytest

from artemis_py.client.http_connection import HttpConnection, UnansweredError, is_http_url
from artemis_py.security.client_login import ClientLogin
from tests.kit.ports import free_port
from tests.kit.process import for_each_test
from tests.kit.web_server import WebServer, web_server

WAIT_S = 10.0
NAMED = {"url": "--url"}


server = for_each_test(lambda _: web_server(b"said"))


def connection(url: str, *, stays_open: bool = False, takes_proxy: bool = False) -> HttpConnection:
    login = ClientLogin("ann", "secret")
    return HttpConnection(url, login, None, WAIT_S, NAMED, stays_open=stays_open, takes_proxy=takes_proxy)


def test_a_request_logs_in_and_sends_json(server: WebServer) -> None:
    found = connection(f"{server.url}/base/?token=secret")
    assert found.url == f"{server.url}/base"
    assert found.answer("POST", "/x?y=z", {"More": "1"}, b"{}") == (200, b"said")
    [(method, path, headers, body)] = server.asked
    assert (method, path, body) == ("POST", "/base/x?y=z", b"{}")
    assert headers["Authorization"] == "Basic YW5uOnNlY3JldA=="
    assert (headers["Content-Type"], headers["More"]) == ("application/json", "1")


def test_a_stream_goes_out_as_it_is_read(server: WebServer) -> None:
    headers = {"Content-Type": "application/jsonl", "Content-Length": "100000"}
    with connection(server.url).request("POST", "/", headers, io.BytesIO(b"x" * 100_000)) as answer:
        assert answer.read() == b"said"
    assert (server.asked[0][2]["Content-Type"], len(server.asked[0][3])) == ("application/jsonl", 100_000)


@pytest.mark.parametrize("status", [404, 500])
def test_a_status_is_an_answer(server: WebServer, status: int) -> None:
    assert connection(server.url).answer("GET", f"/{status}") == (status, b"said")


def test_nobody_follows_a_redirect(server: WebServer) -> None:
    """The login is for the broker that was named."""
    with pytest.raises(UnansweredError, match="it says to ask at https://elsewhere") as refused:
        connection(server.url).answer("GET", "/301")
    assert refused.value.is_final


@pytest.mark.parametrize(("stays_open", "count"), [(True, 1), (False, 3)])
def test_how_many_connections_there_are(server: WebServer, stays_open: bool, count: int) -> None:
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


def test_a_port_that_speaks_no_tls(server: WebServer) -> None:
    with pytest.raises(UnansweredError, match="no TLS connection"):
        connection(server.url.replace("http:", "https:")).answer("GET", "/")


@pytest.mark.parametrize("takes_proxy", [True, False])
def test_the_proxy_of_the_environment(server: WebServer, monkeypatch: pytest.MonkeyPatch, takes_proxy: bool) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    url = f"http://127.0.0.1:{free_port()}"
    if takes_proxy:
        assert connection(url, takes_proxy=True).answer("GET", "/x") == (200, b"said")
        assert server.asked[0][1] == f"{url}/x"
        monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(UnansweredError, match="nothing listens"):
        connection(url, takes_proxy=takes_proxy).answer("GET", "/x")


def test_a_tunnel_through_a_proxy(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
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
