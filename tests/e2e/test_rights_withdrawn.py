"""Answers that go on for long end with the right to them: when permissions, users or roles change."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from artemis_py.storage.format.names import read_name
from tests.e2e.events.event_stream import EventStream
from tests.e2e.test_reload_security import read_again
from tests.kit import http
from tests.kit.client import StompSocket
from tests.kit.process import LOOPBACK, WAIT_S, BrokerProcess, eventually
from tests.kit.secured import USERS, basic, secured_broker

pytestmark = pytest.mark.e2e
LARGE_BYTES = 20_000_000
MINE = """
<security-setting match="mops.broker.{}"><permission type="view" roles="viewers,editors"/></security-setting>
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with secured_broker(tmp_path) as one:
        yield one


def withdraw(broker: BrokerProcess, folder: Path, permission: str, roles: str = "workers") -> None:
    """From bob, who is a viewer and a worker; ann is an editor, too, and keeps hers."""
    file = folder / "broker.xml"
    before = f'<permission type="{permission}" roles="{roles}"/>'
    read_again(broker, file.read_text("utf-8").replace(before, before.replace(roles, "editors"), 1), file)


def remove(file: Path, *texts: str) -> None:
    """As an editor does."""
    new = file.with_suffix(".new")
    kept = file.read_text()
    for text in texts:
        kept = kept.replace(text, "")
    new.write_text(kept)
    new.rename(file)


def delete_bob(broker: BrokerProcess, folder: Path) -> None:
    """From the files, as an operator does."""
    remove(folder / "artemis-users.properties", f"bob={USERS['bob']}\n")
    remove(folder / "artemis-roles.properties", "viewers=bob\n", ",bob")
    await_refused(broker)


def take_the_role_away(broker: BrokerProcess, folder: Path) -> None:
    remove(folder / "artemis-roles.properties", "viewers=bob\n")
    await_refused(broker)


def await_refused(broker: BrokerProcess) -> None:
    def status() -> int:
        try:
            return asked_for(broker, "/log", "bob")[0]
        except (HTTPException, ConnectionError):  # this answer was cut, too
            return 0

    eventually("refused", status, lambda seen: seen in (401, 403))


Withdraw = Callable[[BrokerProcess, Path], None]
withdraw_views: Withdraw = partial(withdraw, permission="view", roles="viewers,editors")
withdraw_consume: Withdraw = partial(withdraw, permission="consume")
WITHDRAWN = pytest.mark.parametrize(
    "withdraw", [withdraw_views, delete_bob, take_the_role_away], ids=["views", "delete_bob", "take_the_role_away"]
)


@WITHDRAWN
def test_a_stream_of_events(broker: BrokerProcess, tmp_path: Path, withdraw: Withdraw) -> None:
    port = broker.ports["http"]
    with (
        EventStream(port, watch=("queues",), Authorization=basic("bob")) as bob,
        EventStream(port, watch=("queues",), Authorization=basic("ann")) as ann,
    ):
        for stream in (bob, ann):
            assert stream.until("state").data["watch"] == "queues"
        withdraw(broker, tmp_path)
        told = bob.until("problem").data["error"]
        assert "permission" in told if withdraw is withdraw_views else "login has changed" in told
        assert bob.response.readline() == b""
        with StompSocket(broker.port) as client:
            client.connect(login="ann", passcode=USERS["ann"])
            client.ask("SEND", {"destination": "/queue/jobs"}, b"x")
        assert ann.until("changes").data["watch"] == "queues"
    status = 403 if withdraw in (withdraw_views, take_the_role_away) else 401
    with EventStream(port, watch=("queues",), Authorization=basic("bob")) as again:
        eventually("refused", lambda: again.status, lambda seen: seen == status)


def test_a_stream_that_lost_one_of_its_topics(tmp_path: Path) -> None:
    with (
        secured_broker(tmp_path, permissions=MINE.format("listAddresses")) as broker,
        EventStream(broker.ports["http"], watch=("queues",), Authorization=basic("bob")) as kept,
        EventStream(broker.ports["http"], watch=("queues", "addresses"), Authorization=basic("bob")) as lost,
    ):
        kept.until("state")
        file = tmp_path / "broker.xml"
        own = MINE.format("listAddresses").splitlines()[1]
        read_again(broker, file.read_text("utf-8").replace(own, own.replace("viewers,editors", "editors")), file)
        while lost.response.readline():
            pass
        with StompSocket(broker.port) as client:
            client.connect(login="ann", passcode=USERS["ann"])
            client.ask("SEND", {"destination": "/queue/jobs"}, b"x")
        kept.until("changes")


def take(broker: BrokerProcess, user: str, found: list[tuple[int, bytes]]) -> threading.Thread:
    def ask() -> None:
        path = "/messages/jobs/take?timeout=50&ack=auto"
        reply = http.ask(broker.ports["http"], "POST", path, Authorization=basic(user))
        found.append((reply.status, reply.body))

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


@pytest.mark.parametrize("withdraw", [withdraw_consume, delete_bob], ids=["consume", "delete_bob"])
def test_a_request_that_waits_for_a_message(broker: BrokerProcess, tmp_path: Path, withdraw: Withdraw) -> None:
    """The message stays on the queue, for whoever may have it."""
    refused: list[tuple[int, bytes]] = []
    waiting = take(broker, "bob", refused)
    eventually("a consumer", lambda: consumers(broker), lambda seen: seen == 1)
    withdraw(broker, tmp_path)
    waiting.join(WAIT_S)
    assert refused[0][0] == 403
    assert b"withdrawn" in refused[0][1]
    eventually("no consumer", lambda: consumers(broker), lambda seen: seen == 0)
    with StompSocket(broker.port) as client:
        client.connect(login="ann", passcode=USERS["ann"])
        client.ask("SEND", {"destination": "/queue/jobs"}, b"kept")
    taken: list[tuple[int, bytes]] = []
    take(broker, "ann", taken).join(WAIT_S)
    assert taken == [(200, b"kept")]


def asked(broker: BrokerProcess, path: str, user: str) -> Any:
    status, found = asked_for(broker, path, user)
    assert status == 200, found
    return json.loads(found)


def asked_for(broker: BrokerProcess, path: str, user: str) -> tuple[int, bytes]:
    reply = http.ask(broker.ports["http"], "GET", path, Authorization=basic(user))
    return reply.status, reply.body


def consumers(broker: BrokerProcess) -> int:
    rows = asked(broker, "/api/queues?fields=name,consumerCount", "ann")["data"]
    return int(next(row["consumerCount"] for row in rows if row["name"] == "jobs"))


@WITHDRAWN
@pytest.mark.parametrize("which", ["log", "message"])
def test_a_large_download(broker: BrokerProcess, tmp_path: Path, which: str, withdraw: Withdraw) -> None:
    """Another thread sends files of the log, and the body of a message is read piece by piece."""
    with StompSocket(broker.port) as client:
        client.connect(login="ann", passcode=USERS["ann"])
        client.ask("SEND", {"destination": "/queue/jobs", "persistent": "true"}, b"x" * LARGE_BYTES)
    row = asked(broker, "/api/queues/jobs/messages", "ann")["data"][0]
    numbers = [found.number for one in (tmp_path / "large").iterdir() if (found := read_name(one.name)) is not None]
    path = f"/log/bodies/{numbers[0]}" if which == "log" else f"/api/queues/jobs/messages/{row['messageID']}/body"
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.settimeout(WAIT_S)
        link.connect((LOOPBACK, broker.ports["http"]))
        ask = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {basic('bob')}\r\n\r\n"
        link.sendall(ask.encode())
        head = link.recv(1000)
        assert head.startswith(b"HTTP/1.1 200 "), head
        size = len(head)
        withdraw(broker, tmp_path)
        try:
            while piece := link.recv(1 << 20):
                size += len(piece)
        except ConnectionError:
            pass
    assert 0 < size < LARGE_BYTES


def test_a_replay(broker: BrokerProcess, tmp_path: Path) -> None:
    """A consumer of a queue goes on, as in Artemis."""
    with StompSocket(broker.port) as replay, StompSocket(broker.port) as consumer, StompSocket(broker.port) as ann:
        for client, user in ((replay, "bob"), (consumer, "bob"), (ann, "ann")):
            client.connect(login=user, passcode=USERS[user])
        replay.ask("SUBSCRIBE", {"id": "1", "destination": "/queue/jobs", "bookmark": "0"})
        consumer.subscribe("/queue/jobs", ack="auto")
        withdraw_consume(broker, tmp_path)
        assert "does not have permission='CONSUME'" in replay.expect("ERROR").text
        ann.ask("SEND", {"destination": "/queue/jobs", "persistent": "true"}, b"on")
        assert consumer.message().body == b"on"


@pytest.mark.parametrize("header", [{"bookmark": "0"}, {"browser": "true"}], ids=["replay", "browser"])
def test_readers_of_a_user_who_is_gone(broker: BrokerProcess, tmp_path: Path, header: dict[str, str]) -> None:
    with StompSocket(broker.port) as reader, StompSocket(broker.port) as consumer, StompSocket(broker.port) as ann:
        for client, user in ((reader, "bob"), (consumer, "bob"), (ann, "ann")):
            client.connect(login=user, passcode=USERS[user])
        reader.ask("SUBSCRIBE", {"id": "1", "destination": "/queue/jobs", **header})
        consumer.subscribe("/queue/jobs", ack="auto")
        users = tmp_path / "artemis-users.properties"  # nobody logs in over HTTP
        users.write_text(users.read_text().replace(f"bob={USERS['bob']}\n", ""))
        assert "login of this connection has changed" in reader.expect("ERROR").text
        ann.ask("SEND", {"destination": "/queue/jobs"}, b"on")
        assert consumer.message().body == b"on"


def test_a_browser(broker: BrokerProcess, tmp_path: Path) -> None:
    with StompSocket(broker.port) as browser:
        browser.connect(login="bob", passcode=USERS["bob"])
        browser.ask("SUBSCRIBE", {"id": "1", "destination": "/queue/jobs", "browser": "true"})
        withdraw(broker, tmp_path, "browse")
        assert "does not have permission='BROWSE'" in browser.expect("ERROR").text


def test_a_file_that_was_cut_ends_nothing_and_lets_nobody_in(broker: BrokerProcess, tmp_path: Path) -> None:
    """It is told in the log, by health and by a metric, until it is mended."""

    def stale() -> list[str]:
        found: dict[str, list[str]] = asked(broker, "/health/ready", "ann")
        return found.get("warnings", [])

    users = tmp_path / "artemis-users.properties"
    whole = users.read_text()
    with EventStream(broker.ports["http"], watch=("queues",), Authorization=basic("bob")) as bob:
        bob.until("state")
        for cut in (whole[:-5], "", "ann\nbob =\n", f"{whole}zoe = ENC(1024:ABCD"):
            users.write_text(cut)
            (warning,) = broker.eventually("a warning", stale, lambda found: len(found) == 1)
            assert "artemis-users.properties" in warning
            assert broker.metric("artemis_login_files_stale") == 1
            for user, password in (("ann", ""), ("zoe", "ENC(1024:ABCD"), ("eve", USERS["eve"][:-4])):
                with StompSocket(broker.port) as client:
                    client.send("CONNECT", {"accept-version": "1.2", "host": "x", "login": user, "passcode": password})
                    client.expect("ERROR")
            with StompSocket(broker.port) as client:
                client.connect(login="eve", passcode=USERS["eve"])
                client.ask("SEND", {"destination": "/queue/jobs"}, b"x")
            bob.until("changes")
            users.write_text(whole)
            broker.eventually("no warning", stale, lambda found: found == [])
        assert broker.metric("artemis_login_files_stale") == 0
    shape = r"^\S+Z ART-2011 (file=\S+) (?:line=(\d+) )?warning: .*stays in force$"
    told = re.findall(shape, broker.said, re.MULTILINE)
    assert all(file.endswith("artemis-users.properties") for file, _ in told)
    assert {"", "1"} <= {line for _, line in told}, "an empty file has no line"
