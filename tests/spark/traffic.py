"""Simulated traffic with a ledger: what a broker's log would say of it as rows, and the ledger for the truth.

Time goes in steps of 10 ms. Producers, consumers, a ring, expiry, dead letters, schedules, a topic and a full address
do their work; each thing that happens takes the next lsn. The same seed gives the same traffic.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from artemis_py.spark.tables.schema import EVENTS, MESSAGES

BROKER: Final = "world"
START_MS: Final = 1_767_225_600_000 + 86_400_000 - 60_000  # 2026-01-01T23:59:00Z: midnight comes after a minute
STEP_MS: Final = 10
RING_SIZE: Final = 12
TTL_MS: Final = 1500
ATTEMPTS_MAX: Final = 3


@dataclass
class Life:
    """What one queue did with one message."""

    came_ms: int
    came_lsn: int
    due: tuple[int, int] | None = None
    deliveries: list[tuple[int, int, str]] = field(default_factory=list)
    failures: int = 0
    end: tuple[int, int, str, str | None] | None = None
    """Time, lsn, event, consumer."""


@dataclass
class Sent:
    """One message of the ledger."""

    id: int
    lsn: int
    at_ms: int
    address: str
    body: bytes
    headers: list[tuple[str, str]]
    size_bytes: int
    """Of header block and body."""
    origin: str | None
    user: str | None = None
    original: tuple[str, str, int] | None = None
    """Address, queue and id of the message that this is a copy of."""
    reason: str | None = None
    lives: dict[str, Life] = field(default_factory=dict)


@dataclass
class Consumer:
    """Takes one message at a time and holds it for so long; none in a pause."""

    name: str
    hold_ms: int
    pause: tuple[int, int] = (0, 0)
    busy_until: int = 0
    holding: Sent | None = None


BODIES: Final = (
    b'{"id": 1, "total": 2.5}', b'{"total": 1, "id": 7}', b"<order id='7'/>", b"plain words", b"\x1f\x8b\x08zip", b"",
)  # fmt: skip


class SimulatedTraffic:
    """Runs when it is made; then ``sent`` is what happened, and the rows are what the log tells of it."""

    def __init__(self, seed: int = 7, length_ms: int = 130_000) -> None:
        self._random = random.Random(seed)
        self._lsn = 100
        self._now = 0
        self.sent: list[Sent] = []
        self.message_rows: list[dict[str, Any]] = []
        self.event_rows: list[dict[str, Any]] = []
        self.queues: dict[str, list[str]] = {
            "orders": ["orders"], "ticks": ["ticks"], "offers": ["offers"], "news": ["news.a", "news.b"],
            "later": ["later"], "DLQ": ["DLQ"], "EXPIRED": ["EXPIRED"],
        }  # fmt: skip
        self._ready: dict[str, deque[Sent]] = {queue: deque() for each in self.queues.values() for queue in each}
        self._waiting: list[tuple[int, Sent]] = []
        self._consumers: dict[str, list[Consumer]] = {
            "orders": [
                Consumer("1/fast", 20),
                Consumer("2/slow", 90),
                Consumer("3/starved", 30, pause=(65_000, 125_000)),
            ],
            "ticks": [Consumer("4/ticks", 150)],
            "offers": [Consumer("5/offers", 400)],
            "news.a": [Consumer("6/news", 10)],
            "later": [Consumer("7/later", 10)],
        }
        for now in range(0, length_ms, STEP_MS):
            self._now = START_MS + now
            self._produce(now)
            self._expire()
            self._consume(now)

    def _next(self) -> int:
        self._lsn += self._random.choice((1, 1, 1, 2))
        return self._lsn

    def _tell(self, event: str, lsn: int, message: Sent | None, queue: str | None, **more: object) -> tuple[int, int]:
        """One more row of the table ``events``. Returns when that was."""
        row: dict[str, Any] = dict.fromkeys(EVENTS)
        row |= {
            "offset": lsn, "timestamp": moment(self._now), "event": event, "queue": queue, "count": 1, "broker": BROKER,
            "segment": lsn // 1000,
        }  # fmt: skip
        if message is not None:
            row |= {"messageId": message.id, "address": message.address}
        self.event_rows.append(row | more)
        return self._now, lsn

    def _produce(self, now: int) -> None:
        draw = self._random.random()
        burst = 40_000 <= now < 45_000
        if draw < (0.6 if burst else 0.2):
            self._publish("orders", self._random.choice(("10.0.0.1:4001", "10.0.0.2:4002")), user="shop")
        if draw < 0.1:
            self._publish("ticks", "10.0.0.3:4003")
        if 0.1 < draw < 0.13:
            self._publish("offers", "10.0.0.4:4004")
        if 0.13 < draw < 0.2:
            self._publish("news", "10.0.0.5:4005")
        if 0.3 < draw < 0.31:
            self._publish("later", "10.0.0.6:4006", due_ms=self._now + 2000)
        if 0.4 < draw < 0.41:
            count = self._random.randint(1, 5)
            told = {"origin": "10.0.0.7:4007", "reason": self._random.choice(("drop", "fail")), "bytes": count * 50}
            self._tell("refused", self._next(), None, None, address="full", count=count, **told)

    def _publish(
        self, address: str, origin: str | None, *, user: str | None = None, due_ms: int | None = None,
        copy_of: Sent | None = None, queue: str | None = None, reason: str | None = None,
    ) -> None:  # fmt: skip
        body = copy_of.body if copy_of else self._random.choice(BODIES)
        headers = [("kind", "a"), ("n", str(len(self.sent) % 3))]
        original = None
        if copy_of is not None and queue is not None and reason is not None:
            original = (copy_of.address, queue, copy_of.id)
            headers = [("reason", reason), ("_AMQ_ORIG_QUEUE", queue), *copy_of.headers]
        elif self._random.random() < 0.3:
            headers.append(("region", self._random.choice(("eu", "us"))))
        size_bytes = sum(len(name) + len(value) + 2 for name, value in headers) + 1 + len(body)
        whole = (self._next(), self._now, address, body, headers, size_bytes, origin, user, original, reason)
        message = Sent(1000 + len(self.sent), *whole)
        self.sent.append(message)
        self._tell("published", message.lsn, message, None, bytes=size_bytes, origin=origin)
        for name in self.queues[address]:
            message.lives[name] = Life(self._now, message.lsn)
            self._tell("scheduled" if due_ms else "routed", message.lsn, message, name, bytes=size_bytes)
            if due_ms is None:
                self._ready[name].append(message)
            else:
                self._waiting.append((due_ms, message))
        at = moment(self._now)
        self.message_rows.append({
            **dict.fromkeys(MESSAGES), "value": body, "topic": address, "partition": 0, "offset": message.lsn,
            "timestamp": at, "timestampType": 0, "publishedAt": at, "address": address, "messageId": message.id,
            "headers": [{"key": name, "value": value.encode()} for name, value in headers],
            "queues": self.queues[address], "routingType": "ANYCAST", "priority": 4, "bodyBytes": len(body),
            "origin": origin, "user": user, "reason": reason, "broker": BROKER, "segment": message.lsn // 1000,
            "position": 64, "originalAddress": original and original[0], "originalQueue": original and original[1],
            "originalMessageId": original and str(original[2]),
        })  # fmt: skip
        if address == "ticks" and len(self._ready["ticks"]) > RING_SIZE:
            self._end(self._ready["ticks"].popleft(), "ticks", "replaced")

    def _end(self, message: Sent, queue: str, event: str, consumer: str | None = None) -> None:
        told = self._tell(event, self._next(), message, queue, consumer=consumer)
        message.lives[queue].end = (*told, event, consumer)

    def _expire(self) -> None:
        for due_ms, message in [each for each in self._waiting if each[0] <= self._now]:
            self._waiting.remove((due_ms, message))
            message.lives["later"].due = self._tell("due", self._next(), message, "later")
            self._ready["later"].append(message)
        offers = self._ready["offers"]
        while offers and self._now - offers[0].at_ms >= TTL_MS:
            message = offers.popleft()
            self._end(message, "offers", "expired")
            if message.id % 2:
                self._publish("EXPIRED", None, copy_of=message, queue="offers", reason="time_limit")

    def _consume(self, now: int) -> None:
        for queue, consumers in self._consumers.items():
            for consumer in consumers:
                if consumer.holding is not None and consumer.busy_until <= self._now:
                    self._give_back(consumer.holding, queue, consumer.name)
                    consumer.holding = None
            for consumer in consumers:
                paused = consumer.pause[0] <= now < consumer.pause[1]
                if consumer.holding is None and self._ready[queue] and not paused:
                    message = consumer.holding = self._ready[queue].popleft()
                    told = self._tell("delivered", self._next(), message, queue, consumer=consumer.name)
                    message.lives[queue].deliveries.append((*told, consumer.name))
                    consumer.busy_until = self._now + consumer.hold_ms

    def _give_back(self, message: Sent, queue: str, consumer: str) -> None:
        life = message.lives[queue]
        fails = queue == "orders" and (message.id % 17 == 0 or self._random.random() < 0.05)
        if not fails:
            self._end(message, queue, "acked", consumer)
            return
        life.failures += 1
        self._tell("attempted", self._next(), message, queue, attempts=life.failures)
        if life.failures < ATTEMPTS_MAX:
            self._ready[queue].appendleft(message)
            return
        self._end(message, queue, "dead")
        self._publish("DLQ", None, copy_of=message, queue=queue, reason="max_deliveries")

    def lives(self) -> Iterator[tuple[Sent, str, Life]]:
        """Every message in every queue, with what the queue did with it."""
        for message in self.sent:
            for queue, life in message.lives.items():
                yield message, queue, life


def moment(at_ms: int) -> datetime:
    """A time of the ledger as rows have it."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).replace(microsecond=at_ms % 1000 * 1000)
