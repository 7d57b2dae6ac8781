from __future__ import annotations

import shlex
import socket
import sys

import pytest

from artemis_py.errors import PerfError
from artemis_py.perf.link import Target
from artemis_py.perf.registry import choose
from artemis_py.perf.scenario import Options, Run
from tests.kit.ports import free_port

ANSWERS = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        client, _ = server.accept()
        if client.recv(1000):
            client.sendall(b"CONNECTED\\nversion:1.2\\n\\n\\0")
"""


def start(command: list[str], port: int, limit_s: float = 30.0) -> dict[str, float]:
    options = Options(start_command=shlex.join(command), limit_s=limit_s)
    return choose(["10"])[0].run(Run(Target("127.0.0.1", port, stall_s=5), options))


def test_a_broker_is_started_timed_and_stopped() -> None:
    port = free_port()
    metrics = start([sys.executable, "-c", ANSWERS, str(port)], port)
    assert metrics["start_ms"] > 10
    assert metrics["resident_mb"] > 1
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_what_a_shell_started_is_stopped_too() -> None:
    port = free_port()
    broker = shlex.join([sys.executable, "-c", ANSWERS, str(port)])
    start(["sh", "-c", f"{broker} & wait"], port)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_command_that_ends_shows_its_last_lines() -> None:
    with pytest.raises(PerfError, match=r"exit code 3: .*broken file"):
        start(["sh", "-c", "echo broken file >&2; exit 3"], free_port())


def test_a_command_that_never_listens() -> None:
    with pytest.raises(PerfError, match=r"no CONNECTED within 0.2 s"):
        start(["sleep", "60"], free_port(), limit_s=0.2)


def test_a_command_that_does_not_exist() -> None:
    with pytest.raises(PerfError, match="cannot start"):
        start(["/no/such/broker"], free_port())


def test_a_taken_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(PerfError, match="already"):
        start(["true"], server.getsockname()[1])


def test_the_command_is_needed() -> None:
    with pytest.raises(PerfError, match="--start-command"):
        choose(["10"])[0].run(Run(Target("127.0.0.1", 1)))
