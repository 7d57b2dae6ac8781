"""Simulated traffic with a ledger: what a broker's log would say of it as rows, and the ledger for the truth.

Time goes in steps of 10 ms. Producers, consumers, a ring, expiry, dead letters, schedules, a topic and a full address
do their work; each thing that happens takes the next lsn. The same seed gives the same traffic.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    is_scheduled: bool = False
    due: tuple[int, int] | None = None
    deliveries: list[tuple[int, int, str]] = field(default_factory=list)
    failures: list[tuple[int, int]] = field(default_factory=list)
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
    origin: str | None
    user: str | None = None
    original: tuple[str, str, int] | None = None
    """Address, queue and id of the message that this is a copy of."""
    reason: str | None = None
    lives: dict[str, Life] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Header block and body."""
        return sum(len(name) + len(value) + 2 for name, value in self.headers) + 1 + len(self.body)


@dataclass
class Refusal:
    """What a full address did not take in one turn."""

    at_ms: int
    lsn: int
    address: str
    origin: str
    policy: str
    count: int
    size_bytes: int


@dataclass
class Consumer:
    """Takes one message at a time and holds it for so long; only within its time of service."""

    name: str
    hold_ms: int
    from_ms: int = 0
    to_ms: int = 1 << 60
    pause: tuple[int, int] = (0, 0)
    busy_until: int = 0
    holding: Sent | None = None


BODIES: Final = (
    b'{"id": 1, "total": 2.5}', b'{"total": 1, "id": 7}', b"<order id='7'/>", b"plain words", b"\x1f\x8b\x08zip", b"",
)  # fmt: skip


class SimulatedTraffic:
    """Runs when it is made; then ``sent`` and ``refused`` are what happened."""

    def __init__(self, seed: int = 7, length_ms: int = 130_000) -> None:
        self._random = random.Random(seed)
        self._lsn = 100
        self._now = 0
        self.sent: list[Sent] = []
        self.refused: list[Refusal] = []
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

    # ---- what happens ----------------------------------------------------------------------------

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
            policy = self._random.choice(("drop", "fail"))
            refusal = Refusal(self._now, self._next(), "full", "10.0.0.7:4007", policy, count, count * 50)
            self.refused.append(refusal)

    def _publish(
        self, address: str, origin: str | None, *, user: str | None = None, due_ms: int | None = None,
        copy_of: Sent | None = None, queue: str | None = None, reason: str | None = None,
    ) -> Sent:  # fmt: skip
        body = copy_of.body if copy_of else self._random.choice(BODIES)
        headers = [("kind", "a"), ("n", str(len(self.sent) % 3))]
        if copy_of is not None and queue is not None and reason is not None:
            original = (copy_of.address, queue, copy_of.id)
            headers = [("reason", reason), ("_AMQ_ORIG_QUEUE", queue), *copy_of.headers]
        else:
            original = None
            if self._random.random() < 0.3:
                headers.append(("region", self._random.choice(("eu", "us"))))
        message = Sent(
            1000 + len(self.sent), self._next(), self._now, address, body, headers, origin, user, original, reason
        )
        self.sent.append(message)
        for name in self.queues[address]:
            message.lives[name] = Life(self._now, message.lsn, is_scheduled=due_ms is not None)
            if due_ms is None:
                self._ready[name].append(message)
            else:
                self._waiting.append((due_ms, message))
        if address == "ticks" and len(self._ready["ticks"]) > RING_SIZE:
            self._end(self._ready["ticks"].popleft(), "ticks", "replaced")
        return message

    def _end(self, message: Sent, queue: str, event: str, consumer: str | None = None) -> None:
        message.lives[queue].end = (self._now, self._next(), event, consumer)

    def _expire(self) -> None:
        for due_ms, message in [each for each in self._waiting if each[0] <= self._now]:
            self._waiting.remove((due_ms, message))
            message.lives["later"].due = (self._now, self._next())
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
                    self._give_back(consumer, queue)
            for consumer in consumers:
                paused = consumer.pause[0] <= now < consumer.pause[1]
                if consumer.holding is None and self._ready[queue] and not paused:
                    message = self._ready[queue].popleft()
                    message.lives[queue].deliveries.append((self._now, self._next(), consumer.name))
                    consumer.holding = message
                    consumer.busy_until = self._now + consumer.hold_ms

    def _give_back(self, consumer: Consumer, queue: str) -> None:
        message = consumer.holding
        assert message is not None
        consumer.holding = None
        life = message.lives[queue]
        fails = queue == "orders" and (message.id % 17 == 0 or self._random.random() < 0.05)
        if not fails:
            self._end(message, queue, "acked", consumer.name)
            return
        life.failures.append((self._now, self._next()))
        if len(life.failures) < ATTEMPTS_MAX:
            self._ready[queue].appendleft(message)
            return
        self._end(message, queue, "dead")
        self._publish("DLQ", None, copy_of=message, queue=queue, reason="max_deliveries")

    # ---- as rows ---------------------------------------------------------------------------------

    def message_rows(self) -> list[dict[str, Any]]:
        """The table ``messages``."""
        return [
            {
                "key": None, "value": message.body, "topic": message.address, "partition": 0, "offset": message.lsn,
                "timestamp": moment(message.at_ms), "timestampType": 0,
                "headers": [{"key": name, "value": value.encode()} for name, value in message.headers],
                "address": message.address, "messageId": message.id, "queues": list(message.lives),
                "routingType": "ANYCAST", "priority": 4, "expiration": None, "deliverAt": None,
                "publishedAt": moment(message.at_ms), "bodyBytes": len(message.body), "origin": message.origin,
                "user": message.user, "transaction": None,
                "originalAddress": message.original[0] if message.original else None,
                "originalQueue": message.original[1] if message.original else None,
                "originalMessageId": str(message.original[2]) if message.original else None,
                "reason": message.reason, "broker": BROKER, "segment": message.lsn // 1000, "position": 64,
            }
            for message in self.sent
        ]  # fmt: skip

    def event_rows(self) -> list[dict[str, Any]]:
        """The table ``events``, in no order."""
        rows: list[dict[str, Any]] = []
        for message in self.sent:
            rows.append(_event(message, message.at_ms, message.lsn, "published", None, origin=message.origin))
            for queue, life in message.lives.items():
                came = "scheduled" if life.is_scheduled else "routed"
                rows.append(_event(message, life.came_ms, life.came_lsn, came, queue))
                if life.due is not None:
                    rows.append(_event(message, *life.due, "due", queue))
                for at_ms, lsn, consumer in life.deliveries:
                    rows.append(_event(message, at_ms, lsn, "delivered", queue, consumer=consumer))
                for attempts, (at_ms, lsn) in enumerate(life.failures, 1):
                    rows.append(_event(message, at_ms, lsn, "attempted", queue, attempts=attempts))
                if life.end is not None:
                    at_ms, lsn, event, ended_by = life.end
                    rows.append(_event(message, at_ms, lsn, event, queue, consumer=ended_by))
        for refusal in self.refused:
            row = _row(refusal.at_ms, refusal.lsn, "refused", refusal.address, None, None)
            row |= {"origin": refusal.origin, "reason": refusal.policy, "count": refusal.count}
            rows.append(row | {"bytes": refusal.size_bytes})
        return rows

    def messages(self, spark: SparkSession) -> DataFrame:
        """The table ``messages`` as a frame."""
        return _frame(spark, self.message_rows(), "messages")

    def events(self, spark: SparkSession) -> DataFrame:
        """The table ``events`` as a frame."""
        return _frame(spark, self.event_rows(), "events")


def moment(at_ms: int) -> datetime:
    """A time of the ledger as rows have it."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).replace(microsecond=at_ms % 1000 * 1000)


def _row(at_ms: int, lsn: int, event: str, address: str, queue: str | None, message_id: int | None) -> dict[str, Any]:
    from artemis_py.spark.tables.schema import EVENTS

    row: dict[str, Any] = dict.fromkeys(EVENTS)
    return row | {
        "offset": lsn, "timestamp": moment(at_ms), "event": event, "messageId": message_id, "address": address,
        "queue": queue, "count": 1, "broker": BROKER, "segment": lsn // 1000,
    }  # fmt: skip


def _event(message: Sent, at_ms: int, lsn: int, event: str, queue: str | None, **more: object) -> dict[str, Any]:
    row = _row(at_ms, lsn, event, message.address, queue, message.id)
    if event in ("published", "routed", "scheduled"):
        row["bytes"] = message.size_bytes
    return row | more


def _frame(spark: SparkSession, rows: list[dict[str, Any]], table: str) -> DataFrame:
    import pyarrow as pa

    from artemis_py.spark.tables.schema import TABLES, arrow_schema, spark_schema

    columns = list(TABLES[table])
    values = pa.Table.from_pylist(rows, arrow_schema(table, columns))
    return spark.createDataFrame(values, spark_schema(table, columns)).cache()
