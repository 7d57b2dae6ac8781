"""A broker whose address pages early, on a disk that works when a test says so, and an operator."""

from __future__ import annotations

from collections.abc import Generator
from random import Random
from typing import Any

from artemis_py.core.operations.messages import Change
from artemis_py.core.queue.queue import Queue
from artemis_py.storage.pages import PageFiles, SpillLog
from tests.kit.committer import SteppedCommitter
from tests.kit.core import NOW_MS, broker_of, queue_config, write
from tests.kit.disk import SimDisk
from tests.kit.managed import managed_by

QUEUES = ("q", "other", "graves", "late")


class PagedBench:
    """Anycast queues of the names in ``QUEUES``, each on an address of its name. That of q pages beyond
    ``messages_max`` messages; dead messages go to graves, and expired ones to late. ``address`` may be another one
    for q: ``q.*`` has all that is sent to addresses such as q.a.
    """

    def __init__(
        self,
        messages_max: int = 5,
        *,
        units: int = 10_000,
        queue: dict[str, Any] | None = None,
        other: dict[str, Any] | None = None,
        address: str = "q",
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.now_ms = NOW_MS
        self.units = units
        self.writer = SteppedCommitter(lambda: None)
        self.reader = SteppedCommitter(lambda: None)
        self.files = PageFiles(SimDisk(Random(0)), self.reader, lambda _: None)
        self.log = SpillLog(self.writer, self.files)
        values: dict[str, Any] = {
            "address_full_policy": "PAGE", "max_size_messages": messages_max, "page_size_bytes": 400,
            "dead_letter_address": "graves", "expiry_address": "late", "max_delivery_attempts": 2, **(settings or {}),
        }  # fmt: skip
        self.broker = broker_of(
            queue_config("q", address, "ANYCAST", **(queue or {})),
            *(queue_config(name, name, "ANYCAST") for name in QUEUES[1:]),
            settings={"q.#": values, "other": other or {}},
            log=self.log,
            pages=self.files,
        )
        self.queue: Queue = self.broker.queues["q"]
        self.managed = managed_by(self.broker, lambda: self.now_ms)

    def turn(self) -> None:
        """A turn of the broker, in which the disk does nothing."""
        broker = self.broker
        broker.budget.refill(self.units)
        self.log.poll()
        broker.take_fetched_pages()
        broker.tick(self.now_ms)
        broker.dispatch(self.now_ms)
        write(broker)
        broker.end_turn()
        self.log.seal()

    def work_disk(self) -> bool:
        """Let the disk do one thing; False when there is nothing to do."""
        return self.writer.step() or self.reader.step()

    def settle(self) -> None:
        """Turns until nothing is left to do."""
        for _ in range(3):
            self.turn()
        while self.work_disk() or self.broker.has_ready:
            self.turn()

    def finish(self, change: Change) -> Change:
        """Carry a change out to its end, as an operation does."""
        for _ in range(100_000):
            if change.is_over:
                return change
            self.broker.message_operations.nudge(change)
            self.work_disk()
            self.turn()
        raise AssertionError("the change does not end")

    def result(self, steps: Generator[Any, None, Any]) -> Any:
        """What an operation answers."""
        while True:
            try:
                next(steps)
            except StopIteration as ended:
                return ended.value
            self.now_ms += 1
            self.work_disk()
            self.turn()
