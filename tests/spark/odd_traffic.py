"""Traffic of the odd kinds through a real broker, and what its clients saw of it: what jobs have to tell in the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.client import StompSocket
from tests.kit.process import eventually
from tests.spark.live import LiveBroker, live_broker

HOARDED = 20
LARGE_BYTES = 300_000


@dataclass
class Odd:
    """The broker, with the clients that still hold something, and what the clients saw."""

    broker: LiveBroker
    seen: dict[str, int] = field(default_factory=dict)
    poison: str = ""
    clients: list[StompSocket] = field(default_factory=list)

    def client(self, **headers: str) -> StompSocket:
        """One more that stays connected."""
        socket = StompSocket(self.broker.process.port)
        socket.connect(**headers)
        self.clients.append(socket)
        return socket


@contextmanager
def odd_traffic(folder: Path) -> Iterator[Odd]:
    """A broker after all of it; the consumers are still there."""
    with live_broker(folder) as broker:
        odd = Odd(broker)
        sender = odd.client(login="ann")
        for part in (
            _hoard, _poison, _forged, _automatic, _ring, _values, _transactions, _expired, _fan, _large, _elsewhere
        ):  # fmt: skip
            part(odd, sender)
        yield odd
        for client in odd.clients:
            client.close()


def _send(client: StompSocket, destination: str, body: bytes = b"x", **headers: object) -> None:
    client.ask("SEND", {"destination": destination, "persistent": "true", **headers}, body)


def _hoard(odd: Odd, sender: StompSocket) -> None:
    """Who takes all and acknowledges nothing; beside it one who comes too late to get anything."""
    hoarder = odd.client()
    hoarder.subscribe("/queue/hoard", id="hoarder")
    for _ in range(HOARDED):
        _send(sender, "/queue/hoard")
    for _ in range(HOARDED):
        hoarder.message()
    odd.client().subscribe("/queue/hoard", id="late")


def _poison(odd: Odd, sender: StompSocket) -> None:
    """Refused by two consumers in turn, until it is dead."""
    taker = odd.client()
    taker.subscribe("/queue/poison", id="one", consumer_window_size="0")
    _send(sender, "/queue/poison", b"poison")
    message = taker.message()
    odd.poison = str(message.header("message-id"))
    taker.ask("NACK", {"id": message.header("ack")})
    taker.ask("NACK", {"id": taker.message().header("ack")})


def _forged(odd: Odd, sender: StompSocket) -> None:
    """Sent again with all headers of the dead letter, to where that is, and through a divert."""
    number = odd.poison.rpartition("-")[2]
    copied = {"_AMQ_ORIG_ADDRESS": "poison", "_AMQ_ORIG_QUEUE": "poison", "_AMQ_ORIG_MESSAGE_ID": number}
    for destination in ("/queue/DLQ", "/queue/door"):
        _send(sender, destination, b"poison", **copied, reason="max_deliveries")


def _automatic(odd: Odd, sender: StompSocket) -> None:
    """Acknowledged as it is sent."""
    taker = odd.client()
    taker.subscribe("/queue/auto", id="auto", ack="auto")
    for _ in range(10):
        _send(sender, "/queue/auto")
        taker.message()


def _ring(odd: Odd, sender: StompSocket) -> None:
    """Three places, of which a consumer holds one."""
    taker = odd.client()
    taker.subscribe("/queue/ring", id="ring", consumer_window_size="0")
    for number in range(8):
        _send(sender, "/queue/ring", b"%d" % number)
    odd.seen["ring"] = 0
    left = int(odd.broker.process.metric("artemis_message_count", queue="ring"))
    for _ in range(left):
        taker.acknowledge(taker.message())
        odd.seen["ring"] += 1


def _values(odd: Odd, sender: StompSocket) -> None:
    """Of two keys; only the newest value of each stays."""
    for number in range(6):
        _send(sender, "/queue/values", k=number % 2)


def _transactions(odd: Odd, sender: StompSocket) -> None:
    """Three taken back, two sent; of these one is acknowledged, which is taken back and repeated."""
    for name, count, end in (("t1", 3, "ABORT"), ("t2", 2, "COMMIT")):
        sender.send("BEGIN", {"transaction": name})
        for _ in range(count):
            sender.send("SEND", {"destination": "/queue/tx", "persistent": "true", "transaction": name}, b"x")
        sender.ask(end, {"transaction": name})
    taker = odd.client()
    taker.subscribe("/queue/tx", id="tx", consumer_window_size="0")
    for name, end in (("t3", "ABORT"), ("t4", "COMMIT")):
        taker.send("BEGIN", {"transaction": name})
        taker.send("ACK", {"id": taker.message().header("ack"), "transaction": name})
        taker.ask(end, {"transaction": name})


def _expired(odd: Odd, sender: StompSocket) -> None:
    """Gone before anybody came."""
    expires_ms = int(time.time() * 1000) + 1
    _send(sender, "/queue/gone", expires=expires_ms)
    eventually("its time is over", lambda: time.time() * 1000 > expires_ms, bool)
    odd.client().subscribe("/queue/gone", id="gone")
    process = odd.broker.process
    process.eventually(
        "expired", lambda: process.metric("artemis_messages_expired", queue="gone"), lambda count: count == 1
    )


def _fan(odd: Odd, sender: StompSocket) -> None:
    """A topic with a quick subscriber, one that holds everything, and one of whom nothing is kept."""
    clients = {}
    for name in ("quick", "slow"):
        clients[name] = odd.client(client_id=name)
        clients[name].subscribe("/topic/fan", id=name, durable_subscription_name=name)
    passing = odd.client()
    passing.subscribe("/topic/fan", id="passing", ack="auto")
    for _ in range(5):
        _send(sender, "/topic/fan")
        clients["quick"].acknowledge(clients["quick"].message())
        clients["slow"].message()
        passing.message()


def _large(odd: Odd, sender: StompSocket) -> None:
    """Its body has a file of its own."""
    _send(sender, "/queue/large", bytes(LARGE_BYTES))
    taker = odd.client()
    taker.subscribe("/queue/large", id="large")
    taker.acknowledge(taker.message())


def _elsewhere(odd: Odd, sender: StompSocket) -> None:
    """To nobody, and to a queue that goes with its client."""
    _send(sender, "/topic/empty")
    owner = odd.client()
    owner.subscribe("/temp-queue/answers", id="answers")
    _send(owner, "/temp-queue/answers")
    owner.acknowledge(owner.message())
