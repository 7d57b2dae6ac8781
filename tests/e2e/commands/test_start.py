"""The first steps: a configuration is written, checked, and run."""

from __future__ import annotations

import os
import re
import signal
import urllib.request
from typing import Any

import pytest

from tests.e2e.commands.user import User
from tests.kit.process import WAIT_S, BrokerProcess

pytestmark = pytest.mark.e2e


def test_what_init_writes_is_right(alone: User) -> None:
    assert alone.printed("init") == "wrote broker.xml; start it:  artemis-py run\n"
    note, *said = alone.printed("check", "--strict").splitlines()
    assert "note[users]: artemis-users.properties does not exist yet; artemis-py run makes it" in note
    assert [line for line in said if not line.startswith("  ")] == [
        "broker.xml: valid (0 errors, 0 warnings, 1 note)",
        "would listen on 127.0.0.1:61613 for STOMP (acceptor stomp)",
        "would listen on 127.0.0.1:8161 for HTTP (acceptor http)",
    ]


def test_it_never_replaces_a_file_unasked(alone: User) -> None:
    file = alone.folder / "mine.xml"
    file.write_text("mine")
    said = alone.refused("init", "mine.xml")
    assert said == "artemis-py: mine.xml is there already, and stays as it is\n--force replaces it\n"
    assert file.read_text() == "mine"
    assert alone.printed("init", "mine.xml", "--force") == "wrote mine.xml; start it:  artemis-py run mine.xml\n"
    assert "artemis-py check mine.xml" in file.read_text()
    assert "none/x.xml cannot be written: No such file" in alone.refused("init", "none/x.xml")


def test_the_broker_does_what_the_comments_say(alone: User) -> None:
    """Also with ports from the environment."""
    alone.printed("init")
    variables = {"STOMP_PORT": "0", "HTTP_PORT": "0", "ARTEMIS_PY_NEW_PASSWORD": "chosen"}
    environment = {**os.environ, **alone.environment, **variables}
    broker = BrokerProcess(["run"], alone.folder / "log", environment=environment, folder=alone.folder, anew=True)
    try:
        broker.await_state("ready")
        line = r"^\S+Z BRK-1002 acceptor=http console: (http://127\.0\.0\.1:\d+/ui/)$"
        (console,) = re.findall(line, broker.said, re.MULTILINE)
        for url in (console, console.removesuffix("ui/")):
            with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
                assert b"<title>Artemis console</title>" in answer.read()
        with_broker = User(alone.folder, broker)
        login: dict[str, Any] = {"ARTEMIS_PY_USER": "admin", "ARTEMIS_PY_PASSWORD": "chosen"}
        sent = with_broker.printed("send", "orders", "hello", "--header", "amount=2000", **login)
        assert sent == "sent 1 message to orders: it is on queues orders, orders.large.last100\n"
        assert with_broker.printed("receive", "orders", "--body-only", **login) == "hello\n"
        shown = with_broker.printed("queue", "ls", "--fields", "name", **login)
        names = [line.split()[0] for line in shown.splitlines()[1:-1]]
        declared = ["DLQ", "ExpiryQueue", "news.archive", "news.sport", "orders", "orders.large.last100"]
        assert sorted(names) == [*declared, "ticker.last100"]
        assert broker.stop() == 0
    finally:
        broker.kill()


def test_run_without_a_file_says_what_to_do(alone: User) -> None:
    said = alone.refused("run")
    assert "run needs a configuration, and this folder has no broker.xml" in said
    assert "artemis-py init" in said


def test_run_offers_to_write_one(alone: User) -> None:
    with alone.terminal("run") as terminal:
        terminal.await_text("Write one to start with, and run it? [y/N] ")
        terminal.type("\n")
        terminal.await_text("run needs a configuration")
        assert terminal.await_end() == 1
    assert not (alone.folder / "broker.xml").exists()
    alone_with_ports = {**alone.environment, "STOMP_PORT": "0", "HTTP_PORT": "0"}
    with alone.terminal("run", environment=alone_with_ports) as terminal:
        terminal.await_text("[y/N] ")
        terminal.type("y\n")
        terminal.await_text("wrote broker.xml")
        terminal.await_text("is ready")
        terminal.signal(signal.SIGINT)
        assert terminal.await_end() == 0
    assert not (alone.folder / "data").exists()  # a first try leaves nothing behind
