"""Clients under whose hands a broker is killed: producers, consumers and a mover, each a thread with one connection.

Every actor ends when its connection does. What it asked for and what was confirmed goes into the ledger, the asking
before the bytes leave and the confirmation after they came.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from threading import Thread

from tests.e2e.kill_ledger import Key, Ledger, Session
from tests.kit.client import Closed, StompSocket, connected, frame
from tests.kit.frames import ServerFrame

ALIKE = {"persistent": "true"}
KEEP_EVERY = 40
"""On the queue with keepers every n-th message is never acknowledged: something has to outlive many segments."""
LARGE_EVERY = 400
LARGE_BYTES = 150_000
PADDING_BYTES_MAX = 1500

_groups = itertools.count(1)


def body_of(producer: str, number: int, group: int) -> bytes:
    """A body that says which message it is, of a size that follows from that."""
    text = f"{producer} {number} {group} ".encode()
    size = LARGE_BYTES if number % LARGE_EVERY == 0 else Random(f"{producer} {number}").randrange(PADDING_BYTES_MAX)
    return text + b"." * size


def key_of(queue: str, message: ServerFrame) -> Key:
    """Which message it is. Fails when its body is not the one that was sent."""
    producer, number, group, _ = message.body.split(b" ", 3)
    key = Key(queue, producer.decode(), int(number), int(group))
    assert message.body == body_of(*key[1:]), f"{key} has a body that was never sent"
    return key


class Actor(ABC, Thread):
    """One client. ``trouble`` is what went wrong beside its connection's end."""

    def __init__(self, name: str, ledger: Ledger, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.ledger = ledger
        self.random = Random(f"{seed} {name}")
        self.trouble: str | None = None
        self.client: StompSocket | None = None

    def run(self) -> None:
        assert self.client is not None
        try:
            self.live(self.client)
        except (OSError, Closed):
            return
        except Exception as error:  # a thread has nobody to raise to: the round asks afterwards
            self.trouble = f"{self.name}: {error!r}"
        finally:
            self.client.close()

    def connect(self, port: int) -> None:
        """Connects; raises OSError or Closed when the broker is gone already."""
        self.client = connected(port)

    @abstractmethod
    def live(self, client: StompSocket) -> None:
        """Works until the connection ends."""


class Producer(Actor):
    """Sends persistent messages with receipts, some of them one by one and some with several under way."""

    def __init__(self, name: str, ledger: Ledger, seed: int, destination: str, queues: Sequence[str]) -> None:
        super().__init__(name, ledger, seed)
        self.destination = destination
        self.queues = queues
        self.numbers = itertools.count(1)

    def live(self, client: StompSocket) -> None:
        while True:
            batch = [next(self.numbers) for _ in range(self.random.choice((1, 1, 2, 5, 20)))]
            self.ledger.sending(Key(queue, self.name, number) for number in batch for queue in self.queues)
            frames = [
                frame(
                    "SEND",
                    {"destination": self.destination, "receipt": number, **ALIKE},
                    body_of(self.name, number, 0),
                )
                for number in batch
            ]
            client.raw(b"".join(frames))
            for number in batch:
                assert client.expect("RECEIPT").header("receipt-id") == str(number)
                self.ledger.sent(Key(queue, self.name, number) for queue in self.queues)


class TransactedProducer(Actor):
    """Sends to several queues in one transaction."""

    def __init__(self, name: str, ledger: Ledger, seed: int, queues: Sequence[str]) -> None:
        super().__init__(name, ledger, seed)
        self.queues = queues
        self.numbers = itertools.count(1)

    def live(self, client: StompSocket) -> None:
        while True:
            group = next(_groups)
            sends = [
                Key(queue, self.name, next(self.numbers), group)
                for _ in range(self.random.choice((1, 1, 2, 6, 60)))
                for queue in self.queues
            ]
            frames = [frame("BEGIN", {"transaction": group})]
            frames += [transacted_send(key, group) for key in sends]
            self.ledger.sending(sends)
            self.ledger.committing(group, sends, [])
            client.raw(b"".join(frames) + frame("COMMIT", {"transaction": group, "receipt": group}))
            assert client.expect("RECEIPT").header("receipt-id") == str(group)
            self.ledger.committed(group)


@dataclass
class Unfinished:
    """What a producer knows when its broker is killed, and takes up again in its next life."""

    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    group: int = 0
    sends: list[Key] = field(default_factory=list)
    """A transaction whose COMMIT left and was not confirmed."""
    repeated_count: int = 0
    duplicate_count: int = 0


class RepeatingProducer(Actor):
    """Sends each transaction under an id, and once more to the broker's next life when it was not confirmed: a message
    that comes twice breaks a promise.
    """

    def __init__(self, name: str, ledger: Ledger, seed: int, queue: str, unfinished: Unfinished) -> None:
        super().__init__(name, ledger, seed)
        self.queue = queue
        self.unfinished = unfinished

    def live(self, client: StompSocket) -> None:
        unfinished = self.unfinished
        unfinished.repeated_count += bool(unfinished.sends)
        while True:
            if not unfinished.sends:
                unfinished.group = next(_groups)
                count = self.random.choice((1, 2, 6, 60))
                unfinished.sends = [
                    Key(self.queue, self.name, next(unfinished.numbers), unfinished.group) for _ in range(count)
                ]
                self.ledger.sending(unfinished.sends)
                self.ledger.committing(unfinished.group, unfinished.sends, [])
            group = unfinished.group
            frames = [frame("BEGIN", {"transaction": group})]
            frames += [transacted_send(key, group) for key in unfinished.sends]
            ids = {"_AMQ_DUPL_ID": f"{self.name}-{group}", "digest": len(unfinished.sends)}
            client.raw(b"".join(frames) + frame("COMMIT", {"transaction": group, "receipt": group, **ids}))
            receipt = client.expect("RECEIPT")
            assert receipt.header("receipt-id") == str(group)
            unfinished.duplicate_count += receipt.header("duplicate") == "true"
            self.ledger.committed(group)
            unfinished.sends = []


def transacted_send(key: Key, group: int) -> bytes:
    """A SEND that belongs to a transaction."""
    headers = {"destination": f"/queue/{key.queue}", "transaction": group, **ALIKE}
    return frame("SEND", headers, body_of(key.producer, key.number, key.group))


class Consumer(Actor):
    """Reads one queue and acknowledges with receipts. ``cumulative``: mode client, one ACK for many."""

    def __init__(
        self, name: str, ledger: Ledger, seed: int, destination: str, *, cumulative: bool, keeps: bool = False
    ) -> None:
        super().__init__(name, ledger, seed)
        self.destination = destination
        self.queue = destination.removeprefix("/queue/").rpartition("::")[2]
        self.cumulative = cumulative
        self.keeps = keeps
        self.receipts = itertools.count(1)

    def live(self, client: StompSocket) -> None:
        session = self.ledger.open_session(self.queue)
        mode = "client" if self.cumulative else "client-individual"
        client.subscribe(self.destination, ack=mode)
        waiting: dict[str, list[Key]] = {}
        unacknowledged: list[Key] = []
        while True:
            for got in client.receive_all():
                if got.command == "RECEIPT":
                    self.ledger.acknowledged(waiting.pop(str(got.header("receipt-id"))))
                    continue
                assert got.command == "MESSAGE", got.text
                key = key_of(self.queue, got)
                self.ledger.delivered(session, key)
                unacknowledged.append(key)
                if self._acknowledges(key, len(unacknowledged)):
                    keys = unacknowledged if self.cumulative else [key]
                    unacknowledged = []
                    receipt = str(next(self.receipts))
                    waiting[receipt] = keys
                    self.ledger.acknowledging(session, keys)
                    client.send("ACK", {"id": got.header("ack"), "receipt": receipt})

    def _acknowledges(self, key: Key, unacknowledged: int) -> bool:
        if self.keeps and key.number % KEEP_EVERY == 0:
            return False
        return not self.cumulative or unacknowledged >= self.random.choice((1, 5, 30))


class Mover(Actor):
    """Acknowledges what it takes from one queue in the transaction that sends it to another."""

    def __init__(self, name: str, ledger: Ledger, seed: int, source: str, target: str) -> None:
        super().__init__(name, ledger, seed)
        self.source = source
        self.target = target

    def live(self, client: StompSocket) -> None:
        session = self.ledger.open_session(self.source)
        client.subscribe(f"/queue/{self.source}")
        while True:
            group = next(_groups)
            taken = [client.message()]
            taken += client.take_waiting(self.random.choice((0, 1, 9)))
            acks = [key_of(self.source, message) for message in taken]
            for key in acks:
                self.ledger.delivered(session, key)
            sends = [Key(self.target, key.producer, key.number, group) for key in acks]
            frames = [frame("BEGIN", {"transaction": group})]
            for message, key in zip(taken, sends, strict=True):
                frames.append(frame("ACK", {"id": message.header("ack"), "transaction": group}))
                frames.append(transacted_send(key, group))
            self.ledger.sending(sends)
            self.ledger.acknowledging(session, acks)
            self.ledger.committing(group, sends, acks)
            client.raw(b"".join(frames) + frame("COMMIT", {"transaction": group, "receipt": group}))
            client.await_receipt(str(group))
            self.ledger.committed(group)


def read_to_the_end(port: int, ledger: Ledger, destination: str) -> None:
    """Reads what a queue holds, acknowledging nothing. A last message of our own says that it was all."""
    queue = destination.removeprefix("/queue/").rpartition("::")[2]
    session: Session = ledger.open_session(queue)
    with connected(port) as client:
        client.subscribe(destination)
        client.ask("SEND", {"destination": destination}, b"the end")
        while (message := client.message()).body != b"the end":
            ledger.delivered(session, key_of(queue, message))
