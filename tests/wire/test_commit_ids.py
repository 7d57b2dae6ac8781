"""COMMIT with an id: what happens when it is repeated, on the same connection or on another one."""

from __future__ import annotations

import pytest

from tests.kit.frames import ServerFrame
from tests.kit.in_process import Client, InProcessBroker, configuration

pytestmark = pytest.mark.wire


def commit(
    client: Client, *bodies: str, id: str | None = None, digest: str | None = None, to: str = "q"
) -> ServerFrame:
    """One transaction; returns what its COMMIT is answered with."""
    sends = "".join(f"SEND\ndestination:/queue/{to}\ntransaction:t\n\n{body}\0" for body in bodies)
    lines = "" if id is None else f"_AMQ_DUPL_ID:{id}\n"
    lines += "" if digest is None else f"digest:{digest}\n"
    [answer] = client.says(f"BEGIN\ntransaction:t\n\n\0{sends}COMMIT\ntransaction:t\nreceipt:r\n{lines}\n\0")
    return answer


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_repeated_transaction_is_left_out_whole_and_confirmed(version: str) -> None:
    world = InProcessBroker(configuration())
    first = world.client("a").greet(version=version)
    answer = commit(first, "1", "2", id="batch-1")
    assert (answer.command, answer.header("receipt-id"), answer.header("duplicate")) == ("RECEIPT", "r", "false")
    answer = commit(first, "1", "2", id="batch-1")
    assert (answer.command, answer.header("receipt-id"), answer.header("duplicate")) == ("RECEIPT", "r", "true")
    answer = commit(world.client("b").greet(version=version), "3", id="batch-1", to="other")
    assert (answer.command, answer.header("duplicate")) == ("RECEIPT", "true")
    assert world.queue("q").contents.counters.added == 2
    assert commit(first, "3", id="batch-2").header("duplicate") == "false"
    assert world.queue("q").contents.counters.added == 3


def test_the_receipt_says_how_many_ids_are_remembered() -> None:
    world = InProcessBroker(configuration())
    answer = commit(world.client("a").greet(), "1", id="one")
    assert (answer.header("id-cache-size"), answer.header("id-cache-persisted")) == ("20000", "true")


def test_without_an_id_nothing_is_remembered_and_the_receipt_is_bare() -> None:
    world = InProcessBroker(configuration())
    client = world.client("a").greet()
    for _ in range(2):
        answer = commit(client, "1")
        assert (answer.command, answer.header("duplicate")) == ("RECEIPT", None)
    assert world.queue("q").contents.counters.added == 2


def test_other_messages_under_the_same_id_are_refused() -> None:
    world = InProcessBroker(configuration())
    client = world.client("a").greet(version="1.1")
    commit(client, "1", id="one", digest="d1")
    answer = commit(client, "2", id="one", digest="d2")
    assert (answer.command, answer.header("receipt-id")) == ("ERROR", "r")
    assert "with other messages" in str(answer.header("message"))
    assert commit(client, "1", id="one", digest="d1").header("duplicate") == "true"
    assert world.queue("q").contents.counters.added == 1


def test_what_a_repeated_transaction_acknowledged_comes_back() -> None:
    """As at ABORT: nothing of it happens."""
    world = InProcessBroker(configuration())
    client = world.client("a").greet()
    commit(client, "1", id="one")
    client.send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client-individual\n\n\0")
    world.settle()
    [message] = client.collect()
    client.collect().clear()
    ack = message.header("ack")
    client.send(f"BEGIN\ntransaction:t\n\n\0ACK\nid:{ack}\ntransaction:t\n\n\0".encode())
    client.send(b"COMMIT\ntransaction:t\n_AMQ_DUPL_ID:one\nreceipt:r\n\n\0")
    world.settle()
    frames = client.collect()
    assert [frame.command for frame in frames] == ["RECEIPT", "MESSAGE"]
    assert frames[1].header("redelivered") == "true"
