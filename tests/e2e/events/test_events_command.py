"""``artemis-py events``: lines that people read, and what comes when the broker is started again."""

from __future__ import annotations

import json
import os
import subprocess
from functools import partial
from pathlib import Path
from select import select

import pytest

from tests.e2e.management.told import ADDRESSES, Told
from tests.kit.forks import program
from tests.kit.ports import free_port
from tests.kit.process import STOMP, configuration, eventually, running

pytestmark = pytest.mark.e2e


printing = partial(program, "events", env={**os.environ, "TZ": "UTC"})


def line_with(process: subprocess.Popen[str], word: str) -> str:
    """The next line that has the word."""
    assert process.stdout is not None
    while word not in (line := process.stdout.readline()):
        assert line, process.stderr and process.stderr.read()
    return line


def test_a_line_for_each_event(told: Told) -> None:
    with printing("--url", told.broker.url, "--json") as heard, printing("--url", told.broker.url) as process:
        line_with(heard, "hello")
        eventually("it tells of a client", lambda: _is_told_of_a_client(told, process), bool)
        told.client(client_id="a b=\x1b[31m").close()
        line = line_with(process, "SESSION_CREATED")
        assert 'clientID="a b=' in line
        assert "\x1b" not in line
        assert line[2] == line[5] == ":"
        event = json.loads(line_with(heard, "SESSION_CREATED"))
        assert (event["event"], event["protocol"]) == ("notification", "STOMP")


def _is_told_of_a_client(told: Told, process: subprocess.Popen[str]) -> bool:
    """Has the command printed anything by now? It says nothing when it begins to listen."""
    assert process.stdout is not None
    told.client(client_id="a b=\x1b[31m").close()
    return bool(select([process.stdout], [], [], 0)[0])


def test_only_some_types(told: Told) -> None:
    with printing("--url", told.broker.url, "--type", "SESSION_CLOSED", "--json") as process:
        line_with(process, "hello")
        told.client().close()
        assert json.loads(line_with(process, "type"))["type"] == "SESSION_CLOSED"


def test_it_ends_with_the_broker_unless_it_follows(tmp_path: Path) -> None:
    port = free_port()
    text = configuration({"stomp": STOMP, "http": f"tcp://127.0.0.1:{port}?protocols=HTTP"}, addresses=ADDRESSES)
    url = f"http://127.0.0.1:{port}"
    with running(text, tmp_path) as broker, printing("--url", url, "--json") as once:
        line_with(once, "hello")
        with printing("--url", url, "--json", "--follow") as follows:
            line_with(follows, "hello")
            assert broker.stop() == 0
            assert once.wait(120) == 0
            with running(text, tmp_path) as again:
                line_with(follows, "hello")
                Told(again).client(client_id="new").close()
                assert json.loads(line_with(follows, "SESSION_CREATED"))["clientID"] == "new"


def test_what_goes_wrong_is_said(told: Told) -> None:
    for words, text in (
        (("--type", "NOTHING"), "no notifications of type 'NOTHING'"),
        (("--url", "http://127.0.0.1:1"), "nothing listens there"),
    ):
        with printing("--url", told.broker.url, *words) as process:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 1
            assert text in errors
            assert "Traceback" not in errors
