"""What is counted is what is taken: each kind of thing is made many times, and the account compared with the memory
that Python allocated for it. The figures stand in docs/memory.md.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import artemis_py.server.websocket.websocket  # noqa: F401 - a broker loads it in its first second, which would be measured
from artemis_py.core.memory import (
    ADDRESSES,
    CONNECTIONS,
    GROUPS,
    HTTP,
    IDS,
    INPUT,
    OUTPUT,
    QUEUES,
    SELECTORS,
    SUBSCRIPTIONS,
    TRANSACTIONS,
)
from artemis_py.message import MESSAGE_OVERHEAD_BYTES
from artemis_py.server.client_socket import WRITE_HIGH_BYTES
from artemis_py.server.turns import READ_BYTES_MAX
from artemis_py.stomp.service import TURN_BYTES_MAX
from tests.kit.frames import frame
from tests.kit.live_server import CONNECT, Client, LiveServer

COUNT = 100
SELECTIVE = "id:{}\ndestination:/queue/q\nack:client\nselector:"
KIBIBYTE = 1024
ACCEPTOR = "maxSubscriptions=100000;maxTransactions=100000;stompMinLargeMessageSize=-1"
CORE = "<persistence-enabled>false</persistence-enabled>"
"""A broker whose connections may have much."""


@dataclass
class Cost:
    """What each of many things takes, and what is counted for it, in bytes."""

    stage: LiveServer
    taken: float = 0
    counted: float = 0

    def of_each(self, count: int = COUNT) -> Iterator[int]:
        """The numbers of things, each to be made; two come first, for what all share."""
        yield from (-1, -2)
        gc.collect()
        tracemalloc.start()
        try:
            before_bytes, counted = tracemalloc.get_traced_memory()[0], self.stage.broker.holdings.total_bytes
            yield from range(count)
            gc.collect()
            self.taken = (tracemalloc.get_traced_memory()[0] - before_bytes) / count
        finally:
            tracemalloc.stop()
        self.counted = (self.stage.broker.holdings.total_bytes - counted) / count

    def check(self, *, at_most: float = 4) -> None:
        """The account is not below what is taken, and not above ``at_most`` times that."""
        print(f"takes {self.taken:.0f} bytes, counted with {self.counted:.0f}")
        assert self.taken <= 1.1 * self.counted, f"takes {self.taken:.0f} bytes, counted with {self.counted:.0f}"
        assert self.counted <= at_most * self.taken, f"takes {self.taken:.0f} bytes, counted with {self.counted:.0f}"


def test_an_idle_connection(stage: LiveServer) -> None:
    clients: list[Client] = []
    cost = Cost(stage)
    for _ in cost.of_each():
        clients.append(stage.greeted())
    cost.check()
    assert stage.broker.holdings.of(CONNECTIONS) > 0
    for client in clients:
        client.socket.close()


@pytest.mark.parametrize(
    ("beginning", "unfinished"),
    [
        (b"", b"CONNECT\nx:" + b"y" * 15_000 + b"\n"),
        (CONNECT, b"SEND\nx:" + b"y" * 15_000 + b"\n"),
        (CONNECT, b"SEND\ndestination:/queue/q\n\n" + b"x" * 15_000),
        (CONNECT, b"SUBSCRIBE\n" + b"".join(b"h%03d:value\n" % number for number in range(400)) + b"\n"),
        (CONNECT, b"SEND\ndestination:/queue/q\nx:" + b"y" * 15_000 + b"\n\nx"),
    ],
    ids=["CONNECT", "header", "body", "many headers", "a long header and a body"],
)
def test_a_frame_that_is_not_finished(stage: LiveServer, beginning: bytes, unfinished: bytes) -> None:
    clients: list[Client] = []
    cost = Cost(stage)
    for _ in cost.of_each(20):
        client = Client(stage)
        clients.append(client)
        read = stage.server.stats.bytes_in + len(beginning + unfinished)
        client.send(beginning + unfinished)
        stage.until(lambda read=read: stage.server.stats.bytes_in >= read, "it was read")  # type: ignore[misc]
    cost.check()
    assert stage.broker.holdings.of(INPUT) >= 20 * len(unfinished)
    for client in clients:
        client.socket.close()


def test_a_subscriber_that_does_not_read(stage: LiveServer) -> None:
    """Two MiB come for each. The bound is the buffer of its socket, what one connection may be sent in a turn, and what
    one read of the sender brings: messages that came together are handed over together.
    """
    sender = stage.greeted()
    body = bytes(10 * KIBIBYTE)
    clients: list[Client] = []
    cost = Cost(stage)
    for number in cost.of_each(2):
        client = stage.greeted(unread=True)
        clients.append(client)
        client.send(frame("SUBSCRIBE", "id:1", f"destination:/queue/n{number}", "ack:auto", "receipt:1"))
        client.expect(b"RECEIPT")
        before = stage.broker.memory.account.message_count
        data = frame("SEND", f"destination:/queue/n{number}", f"content-length:{len(body)}", body=body)
        for batch in range(60):
            for _ in range(10):
                sender.send(data)
            sender.send(frame("SEND", "destination:/queue/done", f"receipt:{batch}"))
            sender.expect(b"RECEIPT")
        stage.until(lambda: stage.server.stats.connections_by_state()["stalled"] == len(clients), "it does not read")
        assert stage.broker.memory.account.message_count > before, "the others wait on the queue"
    cost.check()
    for client in clients:
        connection = next(iter(stage.server.stats.connections))
        assert connection.weight.output_bytes <= WRITE_HIGH_BYTES + TURN_BYTES_MAX + READ_BYTES_MAX + 20 * KIBIBYTE
        client.socket.close()
    assert stage.broker.holdings.of(OUTPUT) > 2 * WRITE_HIGH_BYTES


ONE_FRAME: dict[str, tuple[int, str, str, float, int]] = {
    "a subscription": (SUBSCRIPTIONS, "SUBSCRIBE", "id:{}\ndestination:/queue/q\nack:client", 4, 1),
    "a topic subscription, which is a queue too": (QUEUES, "SUBSCRIBE", "id:{}\ndestination:/topic/t", 4, 1),
    "an address with a queue": (ADDRESSES, "SEND", "destination:/queue/new-{}", 4, 1),
    "a transaction": (TRANSACTIONS, "BEGIN", "transaction:{}", 6, 1),
    **{
        f"a selector, {name}": (SELECTORS, "SUBSCRIBE", SELECTIVE + selector, 50, 50 * len(selector))
        for name, selector in {
            "short": "colour = 'red'",
            "AND": "a = 'b' AND " * 100 + "c = 'd'",
            "IN": "x IN ('a'" + ",'b'" * 900 + ")",
            "sums": "a+b+c+d+e+f+g+h+i+j > 1",
        }.items()
    },
}
"""The account that it is in, its frame, how much more may be counted (equal selectors share what is compiled, each is
counted whole), and the least that is counted.
"""


@pytest.mark.parametrize(("account", "command", "headers", "at_most", "least"), ONE_FRAME.values(), ids=ONE_FRAME)
def test_what_one_frame_makes(
    stage: LiveServer, account: int, command: str, headers: str, at_most: float, least: int
) -> None:
    client = stage.greeted()
    cost = Cost(stage)
    for number in cost.of_each(50 if account == SELECTORS else COUNT):
        client.send(frame(command, headers.format(number), f"receipt:r{number}"))
        client.expect(b"receipt-id:r%d\n" % number)
    cost.check(at_most=at_most)
    assert stage.broker.holdings.of(account) >= least


TEN_FRAMES: dict[str, tuple[int, list[bytes], str, str]] = {
    "a duplicate id": (
        IDS,
        [frame("SUBSCRIBE", "id:1", "destination:/queue/q", "receipt:1")],
        "SEND\ndestination:/queue/q\n_AMQ_DUPL_ID:{0}-{1}\n\n\0",
        "_AMQ_DUPL_ID:{0}-9",
    ),
    "a commit id": (
        IDS,
        [],
        "BEGIN\ntransaction:1\n\n\0COMMIT\ntransaction:1\n_AMQ_DUPL_ID:{0}-{1}\nreceipt:{0}-{1}\n\n\0",
        "receipt-id:{0}-9",
    ),
    "a group": (
        GROUPS,
        [frame("SUBSCRIBE", "id:1", "destination:/queue/q", "ack:auto", "receipt:1")],
        "SEND\ndestination:/queue/q\nJMSXGroupID:g-{0}-{1}\n\n\0",
        "JMSXGroupID:g-{0}-9",
    ),
}
"""The account that it is in, what comes before, its frames, and what answers the tenth."""


@pytest.mark.parametrize(("account", "opening", "data", "answer"), TEN_FRAMES.values(), ids=TEN_FRAMES)
def test_what_ten_frames_make(stage: LiveServer, account: int, opening: list[bytes], data: str, answer: str) -> None:
    client = stage.greeted()
    for one in opening:
        client.send(one)
        client.expect(b"RECEIPT")
    for dialect in stage.dialects():
        dialect._shapes = Sieve()
    cost = Cost(stage)
    for number in cost.of_each():
        client.send("".join(data.format(number, place) for place in range(10)).encode())
        client.expect(answer.format(number).encode())
    cost.check()
    assert stage.broker.holdings.of(account) >= 10 * COUNT * 100


class Sieve(dict):  # type: ignore[type-arg]
    """A table that keeps nothing, in the place of one that has a bound of its own."""

    def __setitem__(self, key: object, value: object) -> None:
        pass


def test_messages_in_a_transaction(stage: LiveServer) -> None:
    client = stage.greeted()
    client.send(frame("BEGIN", "transaction:t"))
    cost = Cost(stage)
    for number in cost.of_each():
        data = frame("SEND", "destination:/queue/q", "transaction:t", body=b"x" * 1000)
        client.send(data * 10 + frame("BEGIN", f"transaction:{number}", f"receipt:{number}"))
        client.expect(b"receipt-id:%d" % number)
    cost.check()
    assert stage.broker.holdings.of(TRANSACTIONS) >= 10 * COUNT * (1000 + MESSAGE_OVERHEAD_BYTES)


def test_a_message_is_not_larger_when_a_selector_has_looked_at_it(stage: LiveServer) -> None:
    sender, reader = stage.greeted(), stage.greeted()
    headers = [f"header-{number}:value {number}" for number in range(10)]
    cost = Cost(stage)
    for number in cost.of_each():
        data = (frame("SEND", "destination:/queue/q", f"n:{number}-{place}", *headers) for place in range(10))
        sender.send(b"".join(data) + frame("SEND", "destination:/queue/q", f"receipt:{number}"))
        sender.expect(b"receipt-id:%d" % number)
    assert cost.taken <= 1.5 * cost.counted, (
        "header blocks that no other message shares take more than an address counts"
    )
    cost = Cost(stage)
    for number in cost.of_each(1):
        reader.send(frame("SUBSCRIBE", f"id:{number}", "destination:/queue/q", "selector:absent = 'x'", "receipt:1"))
        reader.expect(b"RECEIPT")
        reader.send(frame("UNSUBSCRIBE", f"id:{number}", "receipt:2"))
        reader.expect(b"RECEIPT")
    assert cost.taken < 100 * 10 * COUNT, "something is kept beside each of 1,000 messages"


def test_http(stage: LiveServer) -> None:
    clients: list[Client] = []
    acceptor = stage.server.ports.http.acceptors[0]
    cost = Cost(stage)
    for _ in cost.of_each(20):
        clients.append(Client(stage, http=True))
        clients[-1].send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nx: " + b"y" * 10_000)
        stage.until(lambda: acceptor.connections_open == len(clients), "it is accepted")
    cost.check(at_most=8)
    assert stage.broker.holdings.of(HTTP) > 0
    for client in clients:
        client.socket.close()
