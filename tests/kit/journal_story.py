"""A journal on real files without a thread, fed with traffic whose true story is written down beside it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from artemis_py.message import Account, Head, Message, encode_headers
from artemis_py.record_log import Actor, Depth
from artemis_py.storage.disk.disk import FileDisk
from artemis_py.storage.journal.journal import AuditTrail, Journal, Refusal
from artemis_py.storage.journal.settings import JournalSettings, JournalStart, SegmentCare
from artemis_py.storage.retention.retention import Retention, RetentionSettings
from tests.kit.committer import SteppedCommitter

FILE_BYTES = 4096
START_MS = 1_700_000_000_000
RECALLS = 0.3
"""How often a message of the past goes to a queue after a turn."""
QUEUES = (1, 2, 3)
CLIENTS = (1, 2, 3)

Told = tuple[int, int, str, object]
"""lsn, time, kind of event, and what it says."""


def message(number: int, body: bytes = b"", origin: int = 0, address: str = "a", **headers: str) -> Message:
    """A persistent message to an address, from one of the clients or the broker."""
    block = encode_headers([("destination", f"/queue/{address}"), ("persistent", "true"), *headers.items()])
    head = Head(block, address, persistent=True, sized=True, routing_type="ANYCAST")
    return Message(head, body, number, START_MS + number, 0, Account(), origin)


@dataclass
class Story:
    """A journal at work. ``told`` is what a reader has to find, ``live`` what stands on each queue at the end. Client N
    is at ``host:N`` and has one consumer on queue N, whose subscription is called ``sub-N``.
    """

    folder: Path
    retention: RetentionSettings | None = None
    retains: bool = True
    now_ms: int = START_MS
    told: list[Told] = field(default_factory=list)
    live: dict[int, list[int]] = field(default_factory=lambda: {number: [] for number in QUEUES})
    messages: dict[int, Message] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.disk = FileDisk(self.folder)
        self.disk._sync = lambda fd: None  # nothing crashes here
        weakref.finalize(self, self.disk.close)  # a disk opens again what somebody else still writes to
        kept = self.retention
        keeper = None if kept is None else Retention(self.disk, self.folder, kept, lambda: self.now_ms)
        settings = JournalSettings(
            file_bytes=FILE_BYTES, compact_files_min=3, compact_percentage=60, retains=self.retains, broker_name="story"
        )
        retire = self.disk.delete if keeper is None else keeper.retire
        self.journal = Journal(
            self.disk, SteppedCommitter(at_once=True), settings, start=JournalStart(), care=SegmentCare(retire=retire)
        )
        self.consumers: dict[int, Actor | None] = {}

    def declare(self) -> None:
        """The queues become known."""
        for number in QUEUES:
            fields = {"id": number, "name": f"q{number}", "address": "a"}
            self._tell(self.journal.records.queue_changed(fields), "queue", fields)
        for number in CLIENTS:
            self.journal.records.audit.session_opened(number, {"client": f"host:{number}", "protocol": "STOMP 1.2"})
            asked = {"subscription": f"sub-{number}", "ack": "client"}
            self.consumers[number] = self.journal.records.audit.consumer_opened(number, number, asked)

    def turn(self, *steps: Callable[[], object]) -> None:
        """What is done in one turn becomes durable together, a second after the turn before."""
        self.now_ms += 1000
        self.journal.records.now_ms = self.now_ms
        for step in steps:
            step()
        self.journal.records.audit.end_turn()
        self.journal.poll()
        self.journal.seal()
        self.journal.poll()

    def publish(self, number: int, queue_ids: list[int], body: bytes = b"", origin: int = 0) -> None:
        """A message goes to some queues."""
        self.messages[number] = message(number, body, origin)
        for queue_id in queue_ids:
            self.live[queue_id].append(number)
        lsn = self.journal.records.published(self.messages[number], list(queue_ids), 0)
        self.messages[number].lsn = lsn
        self._tell(lsn, "published", (number, tuple(queue_ids), body, f"host:{origin}" if origin else ""))

    def recall(self, number: int, queue_ids: list[int]) -> None:
        """A message of the past goes to queues that do not have it."""
        for queue_id in queue_ids:
            self.live[queue_id].append(number)
        message = self.messages[number]
        assert isinstance(message.body, bytes)
        lsn = self.journal.records.recalled(message, list(queue_ids), 0)
        self._tell(lsn, "recalled", (number, tuple(queue_ids), message.body, message.lsn))

    def deliver(self, queue_id: int, numbers: list[int]) -> None:
        """A consumer is sent some."""
        consumer = self.consumers[queue_id]
        assert consumer is not None
        lsn = self.journal.records.audit.delivered(queue_id, [self.messages[number] for number in numbers], consumer)
        self._tell(lsn, "delivered", (queue_id, tuple(numbers), f"sub-{queue_id}"))

    def settle(self, queue_id: int, numbers: list[int], reason: str) -> None:
        """A queue is done with some."""
        for number in numbers:
            self.live[queue_id].remove(number)
        consumer = self.consumers[queue_id] if reason in ("acked", "dead") else None
        lsn = self.journal.records.settled(queue_id, [self.messages[number] for number in numbers], reason, consumer)
        self._tell(lsn, "settled", (queue_id, reason, tuple(numbers), "" if consumer is None else f"sub-{queue_id}"))

    def fail(self, queue_id: int, number: int, attempts: int, cause: str = "nacked") -> None:
        """A delivery failed."""
        lsn = self.journal.records.attempted(
            queue_id, self.messages[number], attempts, 0, self.consumers[queue_id], cause
        )
        self._tell(lsn, "attempted", (queue_id, number, attempts, 0, f"sub-{queue_id}", cause))

    def refuse(self, origin: int, count: int) -> None:
        """An address drops some."""
        audit = self.journal.records.audit
        assert isinstance(audit, AuditTrail)
        lsn = audit.record_refusal(Refusal("a", "drop", origin, count, 100 * count))
        self._tell(lsn, "refused", ("a", "drop", f"host:{origin}", count, 100 * count))

    def count(self) -> None:
        """How deep the queues are."""
        if self.journal.records.audit.end_turn():
            depths = [Depth(number, len(live), 0, 0, 0) for number, live in self.live.items() if live]
            self._tell(self.journal.records.audit.depths(depths), "depths", tuple(depths))

    def together(self, *steps: Callable[[], None]) -> None:
        """A transaction."""
        self.journal.records.begin_group()
        for step in steps:
            step()
        self.journal.records.end_group()

    def _tell(self, lsn: int, kind: str, what: object) -> None:
        self.told.append((lsn, self.now_ms, kind, what))

    def generate(self, rng: Random, turns: int) -> None:
        """Traffic of every kind. One in twenty messages stays for ever, so that compaction has something to move."""
        self.turn(self.declare)
        number = 0
        for _ in range(turns):
            steps: list[Callable[[], None]] = []
            for _ in range(rng.randrange(1, 4)):
                number += 1
                queue_ids = rng.choice(([1], [2, 3], [1, 2, 3], []))
                body = bytes(rng.randrange(200))
                steps.append(partial(self.publish, number, queue_ids, body, rng.choice((0, *CLIENTS))))
            if rng.random() < 0.3:
                steps = [partial(self.together, *steps)]
            if rng.random() < 0.4:
                steps.append(partial(self.refuse, rng.choice(CLIENTS), rng.randrange(1, 9)))
            self.turn(*steps, self.count)
            if rng.random() < RECALLS:  # some queue gets a message of the past, which another one may still have
                recalled, queue_id = rng.randrange(1, number + 1), rng.choice(QUEUES)
                if recalled not in self.live[queue_id]:
                    self.turn(partial(self.recall, recalled, [queue_id]))
            self.turn(partial(self._use_up, rng))

    def _use_up(self, rng: Random) -> None:
        for queue_id in QUEUES:
            waiting = [number for number in self.live[queue_id] if number % 20]
            taken = waiting[: rng.randrange(4)]
            if not taken:
                continue
            self.deliver(queue_id, taken)
            if rng.random() < 0.2:
                self.fail(queue_id, taken[0], rng.randrange(1, 5))
            else:
                self.settle(queue_id, taken, rng.choice(("acked", "acked", "replaced", "expired", "dead", "purged")))
