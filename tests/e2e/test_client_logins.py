"""A user whose name and password have letters that STOMP escapes elsewhere logs in with every client of ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from artemis_py.client.endpoint import Endpoint
from artemis_py.perf.link import Link, Target
from artemis_py.security.client_login import ClientLogin
from artemis_py.spark.consume.link import Access
from artemis_py.spark.consume.link import Link as ConsumerLink
from artemis_py.spark.consume.unsettled import Unsettled
from artemis_py.spark.read.options import QueueOptions
from artemis_py.spark.write.transactions import Transaction, TransactionSender
from artemis_py.stomp.client import frame
from artemis_py.stomp.wire.frames import VERSIONS
from tests.e2e.data_command import END, FIRST, a_line
from tests.kit.forks import run_text
from tests.kit.process import LOOPBACK, WAIT_S, BrokerProcess
from tests.kit.secured import basic, secured_broker

pytestmark = pytest.mark.e2e

USER = "jörg"
PASSWORD = "a:b\\c\\n\\\\:"
LOGIN = ClientLogin(USER, PASSWORD)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as broker:
        user = {"name": USER, "password": PASSWORD, "role": "editors,workers"}
        assert broker.ask("POST", "/api/users", user, Authorization=basic("ann")).status < 300
        yield broker


def test_commands(broker: BrokerProcess, tmp_path: Path) -> None:
    environment = {**os.environ, "ARTEMIS_PY_USER": USER, "ARTEMIS_PY_PASSWORD": PASSWORD}
    path = tmp_path / "in.jsonl"
    path.write_text(FIRST + a_line(address="jobs", queues=["jobs"], text="third") + END, "utf-8")
    stomp = f"stomp://{LOOPBACK}:{broker.port}"
    for words in (
        ["send", "jobs", "first", "--stomp", stomp],
        ["receive", "jobs", "--stomp", stomp],
        ["data", "imp", str(path), "--url", broker.url],
        ["browse", "jobs", "--stomp", stomp],
        ["perf", "--list"],
    ):
        done = run_text(words, environment=environment, timeout=WAIT_S)
        assert (done.returncode, done.stderr) == (0, ""), words


@pytest.mark.parametrize("version", VERSIONS)
def test_the_load_generator(broker: BrokerProcess, version: str) -> None:
    """It speaks every version; a destination with a colon is the same in each."""
    target = Target(LOOPBACK, broker.port, version=version, login=USER, passcode=PASSWORD)
    with Link(target) as link:
        link.confirmed("SEND", (("destination", "a:b\\c"), ("version", version)), version.encode())
        link.subscribe("a:b\\c")
        message = link.next_frame("MESSAGE")
        assert (message.headers["destination"], message.headers["version"]) == ("a:b\\c", version)


def test_the_sink_of_the_pipeline(broker: BrokerProcess) -> None:
    sender = TransactionSender([Endpoint(LOOPBACK, broker.port)], WAIT_S, LOGIN)
    sends = frame("SEND", [("destination", "sink"), ("transaction", "t")], b"row")
    sender.send(Transaction("a:b\\c", "digest", sends))
    assert sender.finish().transactions == 1


def test_a_stream_that_consumes(broker: BrokerProcess) -> None:
    queue = QueueOptions("jobs", (Endpoint(LOOPBACK, broker.port),), None)
    link = ConsumerLink(Access(queue, LOGIN, None, WAIT_S), Unsettled(), lambda: None)
    try:
        link.await_open()
    finally:
        link.close()
