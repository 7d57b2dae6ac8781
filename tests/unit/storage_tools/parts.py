"""A journal on real files without a thread, fed with traffic whose true story is written down beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from artemis_py.message import Account, Head, Message, encode_headers
from artemis_py.storage.committer import Commit, Committer, carry_out
from artemis_py.storage.disk import FileDisk
from artemis_py.storage.index import Index
from artemis_py.storage.journal import Journal, JournalSettings
from artemis_py.storage.retention import Retention, RetentionSettings

FILE_BYTES = 4096
START_MS = 1_700_000_000_000
QUEUES = (1, 2, 3)

Told = tuple[int, int, str, object]
"""lsn, time, kind of event, and what it says."""


class ImmediateCommitter(Committer):
    """Carries out what it is given before it returns."""

    def __init__(self) -> None:
        self.busy = False
        self.failure = None
        self._done: Commit | None = None

    def submit(self, commit: Commit) -> None:
        self.run_now(commit)

    def finished(self) -> Commit | None:
        done, self._done = self._done, None
        return done

    def run_now(self, commit: Commit) -> None:
        carry_out(commit)
        self._done = commit

    def later(self, work: Callable[[], None]) -> None:
        work()

    def stop(self) -> None:
        return


def message(number: int, body: bytes = b"", **headers: str) -> Message:
    """A persistent message to the address ``a``."""
    block = encode_headers([("destination", "/queue/a"), ("persistent", "true"), *headers.items()])
    head = Head(block, "a", persistent=True, sized=True, routing_type="ANYCAST")
    return Message(head, body, number, START_MS + number, 0, Account(), 0)


@dataclass
class Story:
    """A journal at work. ``told`` is what a reader has to find, ``live`` what stands on each queue at the end."""

    folder: Path
    retention: RetentionSettings | None = None
    now_ms: int = START_MS
    told: list[Told] = field(default_factory=list)
    live: dict[int, list[int]] = field(default_factory=lambda: {number: [] for number in QUEUES})
    messages: dict[int, Message] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.disk = FileDisk(self.folder)
        kept = self.retention
        keeper = None if kept is None else Retention(self.disk, self.folder, kept, lambda: self.now_ms)
        settings = JournalSettings(file_bytes=FILE_BYTES, compact_files_min=3, compact_percentage=60, retains=True)
        retire = self.disk.delete if keeper is None else keeper.retire
        self.journal = Journal(self.disk, ImmediateCommitter(), settings, Index(), [], 1, 0, retire)

    def declare(self) -> None:
        """The queues become known."""
        for number in QUEUES:
            fields = {"id": number, "name": f"q{number}", "address": "a"}
            self._tell(self.journal.queue_changed(fields), "queue", fields)

    def turn(self, *steps: Callable[[], None]) -> None:
        """What is done in one turn becomes durable together, a second after the turn before."""
        self.now_ms += 1000
        self.journal.now_ms = self.now_ms
        for step in steps:
            step()
        self.journal.poll()
        self.journal.seal()
        self.journal.poll()

    def publish(self, number: int, queue_ids: list[int], body: bytes = b"") -> None:
        """A message goes to some queues."""
        self.messages[number] = message(number, body)
        for queue_id in queue_ids:
            self.live[queue_id].append(number)
        lsn = self.journal.published(self.messages[number], list(queue_ids), 0)
        self._tell(lsn, "published", (number, tuple(queue_ids), body))

    def deliver(self, queue_id: int, numbers: list[int]) -> None:
        """A consumer is sent some."""
        lsn = self.journal.delivered(queue_id, [self.messages[number] for number in numbers])
        self._tell(lsn, "delivered", (queue_id, tuple(numbers)))

    def settle(self, queue_id: int, numbers: list[int], reason: str) -> None:
        """A queue is done with some."""
        for number in numbers:
            self.live[queue_id].remove(number)
        lsn = self.journal.settled(queue_id, [self.messages[number] for number in numbers], reason)
        self._tell(lsn, "settled", (queue_id, reason, tuple(numbers)))

    def fail(self, queue_id: int, number: int, attempts: int) -> None:
        """A delivery failed."""
        lsn = self.journal.attempted(queue_id, self.messages[number], attempts, 0)
        self._tell(lsn, "attempted", (queue_id, number, attempts, 0))

    def together(self, *steps: Callable[[], None]) -> None:
        """A transaction."""
        self.journal.begin_group()
        for step in steps:
            step()
        self.journal.end_group()

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
                steps.append(partial(self.publish, number, queue_ids, body))
            if rng.random() < 0.3:
                steps = [partial(self.together, *steps)]
            self.turn(*steps)
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
                self.settle(queue_id, taken, rng.choice(("acked", "acked", "replaced", "expired", "killed")))
