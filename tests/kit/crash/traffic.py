"""A client that does random but lawful things, and remembers what the broker has promised it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.kit.crash.incarnation import Incarnation
from tests.kit.crash.retained import LEASING, SENDER, WITH_BARRIERS
from tests.kit.frames import ServerFrame, frame

Fact: TypeAlias = tuple[str, Any]
"""("body", bytes) was stored; ("message", id) was stored; ("settled", (queue id, message id)); ("done before", (queue
id, message id)): no earlier message is there; ("queue", name) exists or existed; ("no queue", name) is deleted;
("seen", (address, duplicate id)).
"""

TYPED = ("levels", "sorted", "values")
LIMITED = ("bounded", "full", "archive", "embargo")
IN_ORDER = (WITH_BARRIERS, "narrow")
"""Queues on which messages become active in order of arrival."""
STANDARD = ("archive", *IN_ORDER)
"""Queues of which the order is that of arrival, whatever the priority."""
TARGETS = {"over": "ring"}
"""Where messages are published that are sent to a view."""
ANYCAST = ("work", "ring", "auto.one", "auto.two", "via", *TYPED, *LIMITED, *LEASING, *IN_ORDER, *TARGETS)
MULTICAST = ("news", "auto.news")
STORED = frozenset({*ANYCAST, "news"})
"""Destinations that have a durable queue, or get one, with the SEND."""
_READ = (
    "work", "work", "ring", "auto.one", "dead", "late", *TYPED, *LIMITED, *LEASING, *LEASING, *TARGETS, *TARGETS,
    *IN_ORDER, *IN_ORDER,
)  # fmt: skip
BODY_BYTES = (0, 10, 100, 600, 3000)
PART_BYTES_MIN = 300
BURST_MAX = 5
TRANSIENT_LAST = 0.7
"""How many bursts end with a transient message after a persistent one."""


@dataclass
class Held:
    """A message that was delivered and not settled."""

    message_id: int
    ack: str
    persistent: bool
    bookmark: str | None = None


@dataclass
class Reading:
    """A subscription as its client sees it."""

    queue_id: int
    durable: bool
    mode: str
    leases_of: str = ""
    """The name of its queue, if that leases its messages."""
    held: list[Held] = field(default_factory=list)


class Trader:
    """One STOMP client. ``promised`` grows with each RECEIPT and MESSAGE that it gets. ``in_parts``: longer frames are
    sent in two parts, with other things in between.
    """

    def __init__(
        self, life: Incarnation, rng: random.Random, name: str, numbers: Iterator[int], *, in_parts: bool = False
    ) -> None:
        self.name = name
        self.promised: list[Fact] = []
        self.errors: list[str] = []
        self.frames = 0
        self._life = life
        self._rng = rng
        self._numbers = numbers
        """Of messages, receipts and names, shared by all clients of a world."""
        self.client = life.client()
        self._in_parts = in_parts
        self._unsent = b""
        """The second part of a frame."""
        self._readings: dict[str, Reading] = {}
        self._work: dict[str, list[Fact]] = {}
        """Transactions under way, and what their COMMIT will promise."""
        self._asked: dict[str, list[Fact]] = {}
        self._put("CONNECT", "accept-version:1.2", "host:x", f"client-id:{name}")
        life.listeners.append(self.listen)

    def _put(self, command: str, *headers: str, facts: list[Fact] | None = None, body: bytes = b"") -> None:
        """Send a frame. With ``facts``, though they be none, it asks for a RECEIPT, which promises them."""
        receipt = [] if facts is None else [self._receipt(facts)]
        data = self._unsent + frame(command, *headers, *receipt, body=body)
        sent_bytes = len(data)
        if self._in_parts and len(body) > PART_BYTES_MIN and self._rng.random() < 0.5:
            sent_bytes = self._rng.randrange(len(data))
        self._unsent = data[sent_bytes:]
        self.client.send(data[:sent_bytes])

    def _receipt(self, facts: list[Fact]) -> str:
        """The header that asks for a RECEIPT; it promises ``facts``."""
        receipt = str(next(self._numbers))
        self._asked[receipt] = facts
        return f"receipt:{receipt}"

    # ---- what the broker says --------------------------------------------------------------------

    def listen(self) -> None:
        """Take in what arrived."""
        frames = self.client.heard()
        self.frames += len(frames)
        for one in frames:
            if one.command == "RECEIPT":
                self.promised.extend(self._asked.pop(one.header("receipt-id") or ""))
            elif one.command == "MESSAGE":
                self._got(one)
            elif one.command == "ERROR":
                self.errors.append(one.text)

    def _got(self, message: ServerFrame) -> None:
        reading = self._readings.get(message.header("subscription") or "")
        if reading is None:
            return
        persistent = message.header("persistent") == "true" and reading.durable
        message_id = int((message.header("message-id") or "").rpartition("-")[2])
        if persistent:
            self.promised.append(("message", message_id))
            self._life.deliveries.check(message_id)
        ack = message.header("ack")
        if ack is None and reading.mode != "auto":  # a barrier: all before it is done, and no crash undoes that
            self.promised.append(("done before", (reading.queue_id, message_id)))
        elif reading.mode != "auto":
            held = Held(message_id, ack or "", persistent, message.header("bookmark"))
            reading.held.append(held)

    # ---- what the client does --------------------------------------------------------------------

    def act(self) -> None:
        """One random step."""
        self.listen()
        if self._unsent:
            unsent, self._unsent = self._unsent, b""
            self.client.send(unsent)
        if self.client.connection.session.blocked_by is not None and self._rng.random() < 0.7:
            return
        moves = (
            [self._send] * 8
            + [self._settle] * 8
            + [self._subscribe] * 2
            + [self._transact] * 3
            + [self._unsubscribe, self._drop]
        )
        self._rng.choice(moves)()

    def burst(self) -> bool:
        """Send persistent and transient messages to one destination, most often one that somebody reads, all in one
        read of the connection. Returns whether anything was sent.
        """
        if self.client.connection.session.blocked_by is not None:
            return False
        rng = self._rng
        queues = self._life.broker.queues
        read_by_somebody = [name for name in sorted(STORED) if name in queues and queues[name].consumer_count]
        destination = rng.choice(read_by_somebody or sorted(STORED))
        kinds = [rng.random() < 0.5 for _ in range(rng.randrange(1, BURST_MAX))]
        kinds += [True, False] if rng.random() < TRANSIENT_LAST else [False, True]
        data = self._unsent
        self._unsent = b""
        for persistent in kinds:
            body = b"%d:%s" % (next(self._numbers), b"x" * rng.choice(BODY_BYTES))
            headers = [_destination(destination), f"{SENDER}:{self.name}"]
            facts: list[Fact] = []
            if persistent:
                headers.append("persistent:true")
                facts.append(("body", body))
            data += frame("SEND", *headers, self._receipt(facts), body=body)
        self.client.send(data)
        return True

    def send(self) -> None:
        """One random message."""
        if not self._unsent and self.client.connection.session.blocked_by is None:
            self._send()

    def _send(self) -> None:
        rng = self._rng
        destination = rng.choice(ANYCAST + MULTICAST)
        number = next(self._numbers)
        body = b"%d:%s" % (number, b"x" * rng.choice(BODY_BYTES))
        headers = [_destination(destination), f"{SENDER}:{self.name}"]
        persistent = rng.random() < 0.85
        if persistent:
            headers.append("persistent:true")
        headers += self._extras(number, persistent and destination in STORED)
        facts: list[Fact] = [("body", body)] if persistent and destination in STORED else []
        repeated = next((line.partition(":")[2] for line in headers if line.startswith("_AMQ_DUPL_ID:old")), None)
        if repeated is not None:
            facts = [("seen", (TARGETS.get(destination, destination), repeated))]
        work = self._pick_work()
        if work is None:
            self._put("SEND", *headers, facts=facts, body=body)
            return
        name, gathered = work
        gathered += facts
        self._put("SEND", *headers, f"transaction:{name}", body=body)

    def _extras(self, number: int, may_repeat: bool) -> list[str]:
        rng = self._rng
        lines = []
        if rng.random() < 0.3:
            lines.append(f"priority:{rng.randrange(10)}")
        if rng.random() < 0.5:
            lines.append(f"tag:{rng.choice('abc')}")
        if rng.random() < 0.15:
            lines.append(f"AMQ_SCHEDULED_DELAY:{rng.choice((1, 50, 5000, 100_000))}")
        if rng.random() < 0.15:
            lines.append(f"expires:{self._life.loop.now_ms + rng.choice((1, 100, 10_000, 500_000))}")
        if rng.random() < 0.15:
            lines.append(f"x-qpid-not-valid-before:{self._life.loop.now_ms + rng.choice((1, 50, 5000))}")
        if may_repeat and not self._work and rng.random() < 0.25:
            lines.append(f"_AMQ_DUPL_ID:{f'new{number}' if rng.random() < 0.7 else f'old{number % 12}'}")
        return lines

    def _pick_work(self) -> tuple[str, list[Fact]] | None:
        if not self._work or self._rng.random() < 0.3:
            return None
        return self._rng.choice(list(self._work.items()))

    def _transact(self) -> None:
        rng = self._rng
        if not self._work or (len(self._work) < 2 and rng.random() < 0.3):
            name = f"t{next(self._numbers)}"
            self._work[name] = []
            self._put("BEGIN", f"transaction:{name}", facts=[])
            return
        name, facts = rng.choice(list(self._work.items()))
        if len(facts) < 2 and rng.random() < 0.5:
            return
        del self._work[name]
        if rng.random() < 0.8:
            self._put("COMMIT", f"transaction:{name}", facts=facts)
        else:
            self._put("ABORT", f"transaction:{name}", facts=[])

    def _subscribe(self) -> None:
        rng = self._rng
        if len(self._readings) >= 3:
            return
        key = f"s{next(self._numbers)}"
        mode = rng.choice(("auto", "client", "client-individual", "client-individual"))
        headers = [f"id:{key}", f"ack:{mode}", f"consumer-window-size:{rng.choice((-1, 0, 2000))}"]
        facts: list[Fact] = []
        if rng.random() < 0.3:
            name = f"d{rng.randrange(2)}"
            queue_name = f"{self.name}.{name}"
            if any(self._queue_name(reading) == queue_name for reading in self._readings.values()):
                return
            headers += ["destination:/topic/news", f"durable-subscription-name:{name}"]
            facts = [("queue", queue_name)]
        elif rng.random() < 0.2:
            headers.append("destination:/topic/news")
        else:
            queue = rng.choice(_READ)
            headers.append(f"destination:/queue/{queue}")
            headers.append(f"max-backlog:{rng.choice((1, 5))}" if queue in LEASING else "no-local:false")
        self._put("SUBSCRIBE", *headers, facts=facts)
        subscription = self.client.connection.session.subscriptions.by_key.get(key)
        if subscription is not None:
            read = subscription.queue
            leases_of = read.name if read.name in LEASING else ""
            self._readings[key] = Reading(read.id, read.durable and not read.temporary, mode, leases_of)
        self.listen()

    def _queue_name(self, reading: Reading) -> str:
        fields = self._life.journal.index.queues.get(reading.queue_id)
        return "" if fields is None else str(fields["name"])

    def _settle(self) -> None:
        rng = self._rng
        readings = [reading for reading in self._readings.values() if reading.held]
        if not readings:
            return
        reading = rng.choice(readings)
        if reading.leases_of and rng.random() < 0.5:
            self._settle_several(reading)
            return
        place = rng.randrange(len(reading.held))
        chosen = reading.held[place]
        individual = reading.mode == "client-individual"
        settled = [chosen] if individual else reading.held[: place + 1]
        reading.held = [one for one in reading.held if one not in settled]
        work = self._pick_work()
        if individual and rng.random() < 0.3:
            in_work = [] if work is None else [f"transaction:{work[0]}"]
            self._put("NACK", f"id:{chosen.ack}", *in_work, facts=[])
            return
        facts: list[Fact] = [("settled", (reading.queue_id, one.message_id)) for one in settled if one.persistent]
        if reading.leases_of:  # the lease may have ended, or somebody else was faster
            facts = []
        if work is None:
            self._put("ACK", f"id:{chosen.ack}", facts=facts)
        else:
            work[1].extend(facts)
            self._put("ACK", f"id:{chosen.ack}", f"transaction:{work[0]}")

    def _settle_several(self, reading: Reading) -> None:
        """By bookmarks, some of which may be settled, or somebody else's by now; or by a filter."""
        rng = self._rng
        marks = [one.bookmark for one in reading.held if one.bookmark is not None]
        chosen = rng.sample(marks, rng.randrange(len(marks) + 1))
        if rng.random() < 0.7:
            reading.held = [one for one in reading.held if one.bookmark not in chosen]
        by_filter = not chosen or rng.random() < 0.2
        headers = [f"filter:tag = '{rng.choice('abc')}'" if by_filter else f"bookmarks:{','.join(chosen)}"]
        headers += rng.choice(([], [], ["options:cancel"], ["options:expire"]))
        work = self._pick_work()
        headers += [] if work is None else [f"transaction:{work[0]}"]
        self._put("ACK", f"destination:/queue/{reading.leases_of}", *headers, facts=[])

    def _unsubscribe(self) -> None:
        if not self._readings:
            return
        key = self._rng.choice(list(self._readings))
        reading = self._readings.pop(key)
        queue_name = self._queue_name(reading)
        client_id, _, name = queue_name.rpartition(".")
        if client_id == self.name and self._rng.random() < 0.6:
            headers = [f"id:{key}", f"durable-subscription-name:{name}"]
            self._put("UNSUBSCRIBE", *headers, facts=[("no queue", queue_name)])
        else:
            self._put("UNSUBSCRIBE", f"id:{key}", facts=[])

    def _drop(self) -> None:
        """Break the connection, or leave politely."""
        if self._rng.random() < 0.5:
            self.client.drop()
        else:
            self._put("DISCONNECT", facts=[])
            self.listen()


def _destination(name: str) -> str:
    return f"destination:/{'queue' if name in ANYCAST else 'topic'}/{name}"
