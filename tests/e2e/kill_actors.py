"""Clients under whose hands a broker is killed or stopped, each a thread with one connection.

Every actor ends when its connection does. What it asked for and what was confirmed goes into the ledger, the asking
before the bytes leave and the confirmation after they came. What an actor does is a function of it and its connection.
"""

from __future__ import annotations

import itertools
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from random import Random
from threading import Thread
from typing import TypeAlias

from tests.e2e.kill_ledger import Key, Ledger, Session
from tests.kit.client import Closed, StompSocket, connected, frame
from tests.kit.frames import ServerFrame
from tests.kit.process import WAIT_S

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


def key_of(queue: str, body: bytes) -> Key:
    """Which message it is. Fails when its body is not the one that was sent."""
    producer, number, group, _ = body.split(b" ", 3)
    key = Key(queue, producer.decode(), int(number), int(group))
    assert body == body_of(*key[1:]), f"{key} has a body that was never sent"
    return key


Live: TypeAlias = Callable[["Actor", StompSocket], None]
"""What an actor does, on its connection."""


class Actor(Thread):
    """One client, which is connected, and from its start lives like this."""

    def __init__(self, name: str, ledger: Ledger, seed: int, live: Live, port: int) -> None:
        super().__init__(name=name, daemon=True)
        self.ledger = ledger
        self.random = Random(f"{seed} {name}")
        self.client = connected(port)
        self._live = live

    def run(self) -> None:
        try:
            self._live(self, self.client)
        except (OSError, Closed, HTTPException):
            return
        except Exception as error:  # a thread has nobody to raise to
            self.ledger.note(f"{self.name}: {error!r}")
        finally:
            self.client.close()


# ---- producers -----------------------------------------------------------------------------------


def produce(actor: Actor, client: StompSocket, *, destination: str, queues: Sequence[str]) -> None:
    """Sends persistent messages with receipts, some of them one by one and some with several under way."""
    numbers = itertools.count(1)
    while True:
        batch = [next(numbers) for _ in range(actor.random.choice((1, 1, 2, 5, 20)))]
        actor.ledger.sending(Key(queue, actor.name, number) for number in batch for queue in queues)
        head: dict[str, object] = {"destination": destination, **ALIKE}
        client.raw(
            b"".join(frame("SEND", {**head, "receipt": number}, body_of(actor.name, number, 0)) for number in batch)
        )
        for number in batch:
            assert client.expect("RECEIPT").header("receipt-id") == str(number)
            actor.ledger.sent(Key(queue, actor.name, number) for queue in queues)


@dataclass
class Unfinished:
    """What a producer knows when its broker is killed, and takes up again in its next life."""

    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    group: int = 0
    sends: list[Key] = field(default_factory=list)
    """A transaction whose COMMIT left and was not confirmed."""
    repeated_count: int = 0
    duplicate_count: int = 0


def commit(actor: Actor, client: StompSocket, *, queues: Sequence[str], again: Unfinished | None = None) -> None:
    """Sends to several queues in one transaction. With ``again`` it has an id, and is sent once more to the broker's
    next life when it was not confirmed: a message that comes twice breaks a promise.
    """
    unfinished = again or Unfinished()
    unfinished.repeated_count += bool(unfinished.sends)
    while True:
        if not unfinished.sends:
            unfinished.group = next(_groups)
            count = actor.random.choice((1, 1, 2, 6, 60))
            unfinished.sends = [
                Key(queue, actor.name, next(unfinished.numbers), unfinished.group)
                for _ in range(count)
                for queue in queues
            ]
            actor.ledger.committing(unfinished.group, unfinished.sends, [])
        group = unfinished.group
        ids = {"_AMQ_DUPL_ID": f"{actor.name}-{group}", "digest": len(unfinished.sends)} if again else {}
        client.raw(transaction(group, unfinished.sends, (), **ids))
        receipt = client.expect("RECEIPT")
        assert receipt.header("receipt-id") == str(group)
        unfinished.duplicate_count += receipt.header("duplicate") == "true"
        actor.ledger.committed(group)
        unfinished.sends = []


def transaction(group: int, sends: Sequence[Key], acks: Sequence[ServerFrame], **headers: object) -> bytes:
    """The frames of a transaction, with headers of its COMMIT, which asks for a receipt."""
    named = {"transaction": group}
    frames = [frame("BEGIN", named)]
    frames += [frame("ACK", {"id": message.header("ack"), **named}) for message in acks]
    frames += [
        frame("SEND", {"destination": f"/queue/{key.queue}", **named, **ALIKE}, body_of(*key[1:])) for key in sends
    ]
    return b"".join(frames) + frame("COMMIT", {**named, "receipt": group, **headers})


# ---- consumers -----------------------------------------------------------------------------------


def consume(
    actor: Actor, client: StompSocket, *, destination: str, cumulative: bool = False, keeps: bool = False
) -> None:
    """Reads one queue and acknowledges with receipts. ``cumulative``: mode client, one ACK for many. One that ``keeps``
    leaves out some.
    """
    queue = destination.removeprefix("/queue/").rpartition("::")[2]
    session = Session()
    client.subscribe(destination, ack="client" if cumulative else "client-individual")
    receipts = itertools.count(1)
    waiting: dict[str, list[Key]] = {}
    unacknowledged: list[Key] = []
    while True:
        for got in (client.receive(), *client.take_waiting()):
            if got.command == "RECEIPT":
                actor.ledger.acknowledged(waiting.pop(str(got.header("receipt-id"))))
                continue
            assert got.command == "MESSAGE", got.text
            key = key_of(queue, got.body)
            actor.ledger.delivered(session, key)
            unacknowledged.append(key)
            if keeps and key.number % KEEP_EVERY == 0:
                continue
            if not cumulative or len(unacknowledged) >= actor.random.choice((1, 5, 30)):
                keys = unacknowledged if cumulative else [key]
                unacknowledged = []
                receipt = str(next(receipts))
                waiting[receipt] = keys
                actor.ledger.acknowledging(session, keys)
                client.send("ACK", {"id": got.header("ack"), "receipt": receipt})


def move(actor: Actor, client: StompSocket, *, source: str, target: str) -> None:
    """Acknowledges what it takes from one queue in the transaction that sends it to another."""
    session = Session()
    client.subscribe(f"/queue/{source}")
    while True:
        group = next(_groups)
        taken = [client.message()]
        taken += client.take_waiting(actor.random.choice((0, 1, 9)))
        acks = [key_of(source, message.body) for message in taken]
        for key in acks:
            actor.ledger.delivered(session, key)
        sends = [Key(target, key.producer, key.number, group) for key in acks]
        actor.ledger.committing(group, sends, acks, session)
        client.raw(transaction(group, sends, taken))
        client.await_receipt(str(group))
        actor.ledger.committed(group)


# ---- replays of the log --------------------------------------------------------------------------


@dataclass
class Seen:
    """What a client has seen of the replay of a queue, over all of its connections."""

    queue: str
    headers: dict[str, str] = field(default_factory=dict)
    bookmarks: list[int] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)


def replay(_: Actor | None, client: StompSocket, *, seen: Seen) -> None:
    """Replays on from where ``seen`` ends; returns when the broker says that this was everything, if it is asked to."""
    bookmark = seen.bookmarks[-1] if seen.bookmarks else "EPOCH"
    destination = f"/queue/{seen.queue}"
    client.send("SUBSCRIBE", {"id": "r", "destination": destination, "bookmark": bookmark, **seen.headers})
    while (message := client.message()).header("completed") is None:
        assert message.header("body-removed") is None, message.text
        seen.keys.append(key_of(seen.queue, message.body))
        seen.bookmarks.append(int(message.header("bookmark") or -1))


# ---- others --------------------------------------------------------------------------------------


def come_and_go(actor: Actor, _: StompSocket, *, port: int) -> None:
    """Connections that the broker accepts just before it ends, and queues that go with them."""
    for number in itertools.count():
        with connected(port) as client:
            client.subscribe(f"/queue/{actor.name}.{number}")
            client.send("SEND", {"destination": f"/queue/{actor.name}.{number}", **ALIKE}, b"x")
            client.message()


def schedule(_: Actor, client: StompSocket) -> None:
    """Messages that fall due at any time, also when the broker is about to end: that is a record."""
    while True:
        for delay_ms in range(2, 600, 6):
            client.send("SEND", {"destination": "/queue/ring", "AMQ_SCHEDULED_DELAY": delay_ms, **ALIKE}, b"x")
        client.nothing_waits()


def scrape(_: Actor, __: StompSocket, *, url: str) -> None:
    """Reads the metrics again and again."""
    while True:
        urllib.request.urlopen(url, timeout=WAIT_S).read()
