"""COMMIT with an id: what happens when it is repeated, on the same connection or on another one."""

from __future__ import annotations

import pytest

from tests.kit.frames import ServerFrame
from tests.kit.in_process import InProcessBroker, configuration

pytestmark = pytest.mark.wire


class Producer:
    """A greeted client that sends transactions."""

    def __init__(self, world: InProcessBroker, name: str, version: str = "1.2") -> None:
        self.world = world
        self.client = world.client(name).greet(version=version)

    def commit(self, *bodies: str, id: str | None = None, digest: str | None = None, to: str = "q") -> ServerFrame:
        """One transaction; returns what its COMMIT is answered with."""
        sends = "".join(f"SEND\ndestination:/queue/{to}\ntransaction:t\n\n{body}\0" for body in bodies)
        lines = "" if id is None else f"_AMQ_DUPL_ID:{id}\n"
        lines += "" if digest is None else f"digest:{digest}\n"
        commit = f"COMMIT\ntransaction:t\nreceipt:r\n{lines}\n\0"
        [answer] = self.client.says(f"BEGIN\ntransaction:t\n\n\0{sends}{commit}")
        return answer

    def counted(self, queue: str = "q") -> int:
        return self.world.broker.queues[queue].contents.counters.added


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_repeated_transaction_is_left_out_whole_and_confirmed(version: str) -> None:
    world = InProcessBroker(configuration())
    first = Producer(world, "a", version)
    answer = first.commit("1", "2", id="batch-1")
    assert (answer.command, answer.header("receipt-id"), answer.header("duplicate")) == ("RECEIPT", "r", "false")
    answer = first.commit("1", "2", id="batch-1")
    assert (answer.command, answer.header("receipt-id"), answer.header("duplicate")) == ("RECEIPT", "r", "true")
    answer = Producer(world, "b", version).commit("3", id="batch-1", to="other")
    assert (answer.command, answer.header("duplicate")) == ("RECEIPT", "true")
    assert first.counted() == 2
    assert first.commit("3", id="batch-2").header("duplicate") == "false"
    assert first.counted() == 3


def test_the_receipt_says_how_many_ids_are_remembered() -> None:
    world = InProcessBroker(configuration())
    answer = Producer(world, "a").commit("1", id="one")
    assert (answer.header("id-cache-size"), answer.header("id-cache-persisted")) == ("20000", "true")


def test_without_an_id_nothing_is_remembered_and_the_receipt_is_bare() -> None:
    world = InProcessBroker(configuration())
    producer = Producer(world, "a")
    for _ in range(2):
        answer = producer.commit("1")
        assert (answer.command, answer.header("duplicate")) == ("RECEIPT", None)
    assert producer.counted() == 2


def test_other_messages_under_the_same_id_are_refused() -> None:
    world = InProcessBroker(configuration())
    producer = Producer(world, "a", "1.1")
    producer.commit("1", id="one", digest="d1")
    answer = producer.commit("2", id="one", digest="d2")
    assert (answer.command, answer.header("receipt-id")) == ("ERROR", "r")
    assert "with other messages" in str(answer.header("message"))
    assert producer.commit("1", id="one", digest="d1").header("duplicate") == "true"
    assert producer.counted() == 1


def test_what_a_repeated_transaction_acknowledged_comes_back() -> None:
    """As at ABORT: nothing of it happens."""
    world = InProcessBroker(configuration())
    producer = Producer(world, "a")
    producer.commit("1", id="one")
    client = producer.client
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
