"""``artemis-py health``: what it prints and returns for each answer that a port may give."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from artemis_py.cli.main import main

WAITS = {"status": "DOWN", "reason": "it waits for the lock", "warnings": ["a certificate expires in 3 days"]}


class Answers(BaseHTTPRequestHandler):
    """Answers as the server's tables say, and notes who asks."""

    def do_GET(self) -> None:
        assert isinstance(self.server, Port)
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        status, body = self.server.answer
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on standard error."""


class Port(HTTPServer):
    """A port with one answer."""

    answer = (200, b'{"status": "UP"}')

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def port() -> Iterator[Port]:
    with Port() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_up(port: Port, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", port.url]) == 0
    assert capsys.readouterr().out == "UP\n"
    assert port.asked == [("/health/ready", None)]


def test_down_with_its_reason_and_warnings(port: Port, capsys: pytest.CaptureFixture[str]) -> None:
    port.answer = (503, json.dumps(WAITS).encode())
    assert main(["health", port.url + "/"]) == 1
    assert capsys.readouterr().out == "DOWN: it waits for the lock\nwarning: a certificate expires in 3 days\n"


def test_json(port: Port, capsys: pytest.CaptureFixture[str]) -> None:
    port.answer = (503, json.dumps(WAITS).encode())
    assert main(["health", port.url, "--live", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == WAITS
    assert port.asked == [("/health/live", None)]


def test_a_login(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARTEMIS_PY_PASSWORD", "secret")
    assert main(["health", port.url, "--user", "sam"]) == 0
    assert port.asked == [("/health/ready", "Basic c2FtOnNlY3JldA==")]


def test_a_login_that_is_refused(port: Port, capsys: pytest.CaptureFixture[str]) -> None:
    port.answer = (401, b"log in")
    assert main(["health", port.url]) == 1
    said = capsys.readouterr().err
    assert f"{port.url.removeprefix('http://')} answers with HTTP status 401: log in" in said


def test_something_else_on_the_port(port: Port, capsys: pytest.CaptureFixture[str]) -> None:
    port.answer = (200, b"<html>")
    assert main(["health", port.url]) == 1
    assert "is not an HTTP acceptor of a broker: it answers b'<html>'" in capsys.readouterr().err


def test_nobody_there(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert main(["health", f"http://127.0.0.1:{taken.getsockname()[1]}"]) == 1
    assert "nothing listens there" in capsys.readouterr().err


def test_no_url(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "localhost:8161"]) == 2
    assert "localhost:8161 is not the URL of an HTTP acceptor; write http://host:port" in capsys.readouterr().err
