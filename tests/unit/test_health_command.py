"""``artemis-py health``: what it prints and returns for each answer that a port may give."""

from __future__ import annotations

import json
import socket

import pytest

from artemis_py.cli.main import main
from tests.kit.process import for_each_test
from tests.kit.web_server import WebServer, web_server

WAITS = {"status": "DOWN", "reason": "it waits for the lock", "warnings": ["a certificate expires in 3 days"]}


port = for_each_test(lambda _: web_server(b'{"status": "UP"}'))


def test_up(port: WebServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", port.url]) == 0
    assert capsys.readouterr().out == "UP\n"
    [(_, path, headers, _)] = port.asked
    assert (path, headers.get("Authorization")) == ("/health/ready", None)


def test_down_with_its_reason_and_warnings(port: WebServer, capsys: pytest.CaptureFixture[str]) -> None:
    port.status, port.contents = 503, [json.dumps(WAITS).encode()]
    assert main(["health", port.url + "/"]) == 1
    assert capsys.readouterr().out == "DOWN: it waits for the lock\nwarning: a certificate expires in 3 days\n"


def test_json(port: WebServer, capsys: pytest.CaptureFixture[str]) -> None:
    port.status, port.contents = 503, [json.dumps(WAITS).encode()]
    assert main(["health", port.url, "--live", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == WAITS
    assert port.asked[0][1] == "/health/live"


def test_a_login(port: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARTEMIS_PY_PASSWORD", "secret")
    assert main(["health", port.url, "--user", "sam"]) == 0
    [(_, path, headers, _)] = port.asked
    assert (path, headers["Authorization"]) == ("/health/ready", "Basic c2FtOnNlY3JldA==")


def test_a_login_that_is_refused(port: WebServer, capsys: pytest.CaptureFixture[str]) -> None:
    port.status, port.contents = 401, [b"log in"]
    assert main(["health", port.url]) == 1
    said = capsys.readouterr().err
    assert f"{port.url.removeprefix('http://')} answers with HTTP status 401: log in" in said


def test_something_else_on_the_port(port: WebServer, capsys: pytest.CaptureFixture[str]) -> None:
    port.contents = [b"<html>"]
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
