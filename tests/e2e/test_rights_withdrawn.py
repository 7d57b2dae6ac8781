"""Answers that go on for long end with the right to them: when permissions, users or roles change."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path

import pytest

from artemis_py.storage.format.names import read_name
from tests.e2e.events.event_stream import EventStream
from tests.e2e.test_reload_security import read_again
from tests.kit.client import connected, refused
from tests.kit.process import LOOPBACK, WAIT_S, BrokerProcess, eventually, for_each_test
from tests.kit.secured import USERS, basic, secured_broker

pytestmark = pytest.mark.e2e
LARGE_BYTES = 20_000_000
MINE = """
<security-setting match="mops.broker.{}"><permission type="view" roles="viewers,editors"/></security-setting>
"""


broker = for_each_test(secured_broker)


def withdraw(broker: BrokerProcess, folder: Path, permission: str, roles: str = "workers") -> None:
    """From bob, who is a viewer and a worker; ann is an editor, too, and keeps hers."""
    file = folder / "broker.xml"
    before = f'<permission type="{permission}" roles="{roles}"/>'
    read_again(broker, file.read_text("utf-8").replace(before, before.replace(roles, "editors"), 1), file)


def withdraw_login(broker: BrokerProcess, folder: Path, lines: Mapping[str, str]) -> None:
    """These texts leave the files of users and roles, as an operator edits them; then bob is refused."""
    for name, text in lines.items():
        file = folder / f"artemis-{name}.properties"
        (folder / "new").write_text(re.sub(text, "", file.read_text()))
        (folder / "new").rename(file)
    while True:
        with suppress(HTTPException, ConnectionError):  # this answer was cut, too
            if broker.ask("GET", "/log", Authorization=basic("bob")).status in (401, 403):
                return


Withdraw = Callable[[BrokerProcess, Path], None]
withdraw_views: Withdraw = partial(withdraw, permission="view", roles="viewers,editors")
withdraw_consume: Withdraw = partial(withdraw, permission="consume")
delete_bob: Withdraw = partial(withdraw_login, lines={"users": f"bob={USERS['bob']}\n", "roles": "viewers=bob\n|,bob"})
take_the_role_away: Withdraw = partial(withdraw_login, lines={"roles": "viewers=bob\n"})
WITHDRAWN = pytest.mark.parametrize(
    "withdraw", [withdraw_views, delete_bob, take_the_role_away], ids=["views", "delete_bob", "take_the_role_away"]
)


@WITHDRAWN
def test_a_stream_of_events(broker: BrokerProcess, tmp_path: Path, withdraw: Withdraw) -> None:
    with (
        EventStream(broker, "queues", Authorization=basic("bob")) as bob,
        EventStream(broker, "queues", Authorization=basic("ann")) as ann,
    ):
        for stream in (bob, ann):
            assert stream.until("state").data["watch"] == "queues"
        withdraw(broker, tmp_path)
        told = bob.until("problem").data["error"]
        assert "permission" in told if withdraw is withdraw_views else "login has changed" in told
        assert bob.response.readline() == b""
        with connected(broker.port, login="ann", passcode=USERS["ann"]) as client:
            client.ask("SEND", {"destination": "/queue/jobs"}, b"x")
        assert ann.until("changes").data["watch"] == "queues"
    status = 403 if withdraw in (withdraw_views, take_the_role_away) else 401
    with EventStream(broker, "queues", Authorization=basic("bob")) as again:
        eventually("refused", lambda: again.status, lambda seen: seen == status)


def test_a_stream_that_lost_one_of_its_topics(tmp_path: Path) -> None:
    with (
        secured_broker(tmp_path, permissions=MINE.format("listAddresses")) as broker,
        EventStream(broker, "queues", Authorization=basic("bob")) as kept,
        EventStream(broker, "queues", "addresses", Authorization=basic("bob")) as lost,
    ):
        kept.until("state")
        file = tmp_path / "broker.xml"
        own = MINE.format("listAddresses").splitlines()[1]
        read_again(broker, file.read_text("utf-8").replace(own, own.replace("viewers,editors", "editors")), file)
        while lost.response.readline():
            pass
        with connected(broker.port, login="ann", passcode=USERS["ann"]) as client:
            client.ask("SEND", {"destination": "/queue/jobs"}, b"x")
        kept.until("changes")


TAKE = "/messages/jobs/take?timeout=50&ack=auto"


@pytest.mark.parametrize("withdraw", [withdraw_consume, delete_bob], ids=["consume", "delete_bob"])
def test_a_request_that_waits_for_a_message(broker: BrokerProcess, tmp_path: Path, withdraw: Withdraw) -> None:
    """The message stays on the queue, for whoever may have it."""
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(broker.ask, "POST", TAKE, Authorization=basic("bob"))
        broker.await_metric(1, "artemis_consumer_count", queue="jobs")
        withdraw(broker, tmp_path)
        refused = waiting.result(WAIT_S)
    assert refused.status == 403
    assert b"withdrawn" in refused.body
    broker.await_metric(0, "artemis_consumer_count", queue="jobs")
    with connected(broker.port, login="ann", passcode=USERS["ann"]) as client:
        client.ask("SEND", {"destination": "/queue/jobs"}, b"kept")
    taken = broker.ask("POST", TAKE, Authorization=basic("ann"))
    assert taken.answer == (200, b"kept")


@WITHDRAWN
@pytest.mark.parametrize("which", ["log", "message"])
def test_a_large_download(broker: BrokerProcess, tmp_path: Path, which: str, withdraw: Withdraw) -> None:
    """Another thread sends files of the log, and the body of a message is read piece by piece."""
    with connected(broker.port, login="ann", passcode=USERS["ann"]) as client:
        client.ask("SEND", {"destination": "/queue/jobs", "persistent": "true"}, b"x" * LARGE_BYTES)
    listed = broker.ask("GET", "/api/queues/jobs/messages", Authorization=basic("ann"))
    row = listed.json["data"][0]
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
    with (
        connected(broker.port, login="bob", passcode=USERS["bob"]) as replay,
        connected(broker.port, login="bob", passcode=USERS["bob"]) as consumer,
        connected(broker.port, login="ann", passcode=USERS["ann"]) as ann,
    ):
        replay.ask("SUBSCRIBE", {"id": "1", "destination": "/queue/jobs", "bookmark": "0"})
        consumer.subscribe("/queue/jobs", ack="auto")
        withdraw_consume(broker, tmp_path)
        assert "does not have permission='CONSUME'" in replay.expect("ERROR").text
        ann.ask("SEND", {"destination": "/queue/jobs", "persistent": "true"}, b"on")
        assert consumer.message().body == b"on"


@pytest.mark.parametrize("header", [{"bookmark": "0"}, {"browser": "true"}], ids=["replay", "browser"])
def test_readers_of_a_user_who_is_gone(broker: BrokerProcess, tmp_path: Path, header: dict[str, str]) -> None:
    with (
        connected(broker.port, login="bob", passcode=USERS["bob"]) as reader,
        connected(broker.port, login="bob", passcode=USERS["bob"]) as consumer,
        connected(broker.port, login="ann", passcode=USERS["ann"]) as ann,
    ):
        reader.ask("SUBSCRIBE", {"id": "1", "destination": "/queue/jobs", **header})
        consumer.subscribe("/queue/jobs", ack="auto")
        users = tmp_path / "artemis-users.properties"  # nobody logs in over HTTP
        users.write_text(users.read_text().replace(f"bob={USERS['bob']}\n", ""))
        assert "login of this connection has changed" in reader.expect("ERROR").text
        ann.ask("SEND", {"destination": "/queue/jobs"}, b"on")
        assert consumer.message().body == b"on"


def test_a_browser(broker: BrokerProcess, tmp_path: Path) -> None:
    with connected(broker.port, login="bob", passcode=USERS["bob"]) as browser:
        browser.ask("SUBSCRIBE", {"id": "1", "destination": "/queue/jobs", "browser": "true"})
        withdraw(broker, tmp_path, "browse")
        assert "does not have permission='BROWSE'" in browser.expect("ERROR").text


def test_a_file_that_was_cut_ends_nothing_and_lets_nobody_in(broker: BrokerProcess, tmp_path: Path) -> None:
    """It is told in the log, by health and by a metric, until it is mended."""

    health = partial(broker.ask, "GET", "/health/ready", Authorization=basic("ann"))
    users = tmp_path / "artemis-users.properties"
    whole = users.read_text()
    with EventStream(broker, "queues", Authorization=basic("bob")) as bob:
        bob.until("state")
        for cut in (whole[:-5], "", "ann\nbob =\n", f"{whole}zoe = ENC(1024:ABCD"):
            users.write_text(cut)
            (warning,) = broker.eventually("a warning", lambda: health().json.get("warnings", []), bool)
            assert "artemis-users.properties" in warning
            assert broker.metric("artemis_login_files_stale") == 1
            for user, password in (("ann", ""), ("zoe", "ENC(1024:ABCD"), ("eve", USERS["eve"][:-4])):
                refused(broker.port, login=user, passcode=password)
            with connected(broker.port, login="eve", passcode=USERS["eve"]) as client:
                client.ask("SEND", {"destination": "/queue/jobs"}, b"x")
            bob.until("changes")
            users.write_text(whole)
            broker.eventually("no warning", lambda: health().json.get("warnings", []), lambda found: found == [])
        assert broker.metric("artemis_login_files_stale") == 0
    shape = r"^\S+Z ART-2011 (file=\S+) (?:line=(\d+) )?warning: .*stays in force$"
    told = re.findall(shape, broker.said, re.MULTILINE)
    assert all(file.endswith("artemis-users.properties") for file, _ in told)
    assert {"", "1"} <= {line for _, line in told}, "an empty file has no line"
