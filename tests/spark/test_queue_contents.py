"""Table ``queues``: the same as if the whole log was added up, and how little of it is read; no JVM."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest

from artemis_py.message import Account, Head, Message, encode_headers
from artemis_py.record_log import Depth
from artemis_py.spark.log.directory import DirectoryLog
from artemis_py.spark.read import aggregated_tables
from artemis_py.storage.retention.retention import RetentionSettings
from tests.kit.journal_story import QUEUES, START_MS, Story
from tests.spark.live import live_broker
from tests.spark.made_log import survey
from tests.spark.readers import rows_in


@dataclass
class Deep(Story):
    """The traffic of a story with true depths: bytes, what is with consumers, what is scheduled. Consumers come and go.
    ``stays``: some messages stay for ever.
    """

    stays: bool = False
    out: set[tuple[int, int]] = field(default_factory=set)
    scheduled: set[tuple[int, int]] = field(default_factory=set)

    def publish(self, number: int, queue_ids: list[int], body: bytes = b"", origin: int = 0) -> None:
        block = encode_headers([("destination", "a"), ("n", str(number))])
        head = Head(block, "a", persistent=True, routing_type="ANYCAST")
        self.messages[number] = Message(head, body, number, START_MS + number, 0, Account(), origin)
        due_ms = START_MS + 9 if number % 11 == 0 else 0
        for queue_id in queue_ids:
            self.live[queue_id].append(number)
            if due_ms:
                self.scheduled.add((queue_id, number))
        self.journal.records.published(self.messages[number], list(queue_ids), due_ms)

    def deliver(self, queue_id: int, numbers: list[int]) -> None:
        due = [number for number in numbers if (queue_id, number) in self.scheduled]
        if due:
            self.journal.records.fell_due(queue_id, [self.messages[number] for number in due])
            self.scheduled -= {(queue_id, number) for number in due}
        super().deliver(queue_id, numbers)
        self.out |= {(queue_id, number) for number in numbers}

    def settle(self, queue_id: int, numbers: list[int], reason: str) -> None:
        super().settle(queue_id, numbers, reason)
        self.out -= {(queue_id, number) for number in numbers}

    def fail(self, queue_id: int, number: int, attempts: int, cause: str = "nacked") -> None:
        super().fail(queue_id, number, attempts, cause)
        self.out.discard((queue_id, number))

    def count(self) -> None:
        if not self.journal.records.audit.end_turn():
            return
        depths = [
            Depth(
                queue_id,
                len(live),
                sum(self.messages[n].head.size_bytes + len(self.messages[n].body) for n in live),
                sum((queue_id, n) in self.out for n in live),
                sum((queue_id, n) in self.scheduled for n in live),
            )
            for queue_id, live in self.live.items()
            if live
        ]
        self.journal.records.audit.depths(depths)

    def _use_up(self, rng: random.Random) -> None:
        for queue_id in QUEUES:
            if rng.random() < 0.1:
                consumer = self.consumers[queue_id]
                assert consumer is not None
                self.journal.records.audit.consumer_closed(consumer, failed=rng.random() < 0.5)
                fields = {"subscription": f"sub-{queue_id}", "ack": "client"}
                self.consumers[queue_id] = self.journal.records.audit.consumer_opened(queue_id, queue_id, fields)
                self.out = {one for one in self.out if one[0] != queue_id}
            waiting = [number for number in self.live[queue_id] if not self.stays or number % 20]
            taken = waiting[: rng.randrange(1, 4 if self.stays else 9)]
            if not taken:
                continue
            self.deliver(queue_id, taken)
            if rng.random() < 0.2:
                self.fail(queue_id, taken[0], rng.randrange(1, 5))
            elif rng.random() < 0.9:
                self.settle(queue_id, taken, rng.choice(("acked", "acked", "replaced", "expired", "dead", "purged")))


def made(folder: Path, rng: random.Random, *, stays: bool) -> Deep:
    story = Deep(folder / "journal", RetentionSettings(folder / "retained", None, None), stays=stays)
    story.generate(rng, 150)
    return story


queues = partial(rows_in, table="queues")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The calls that read segments."""
    spy = create_autospec(DirectoryLog.read, side_effect=DirectoryLog.read)
    monkeypatch.setattr(DirectoryLog, "read", spy)
    return spy


def test_a_message_that_was_settled_recalled_and_settled_again_is_gone(tmp_path: Path) -> None:
    """In one segment: as it came back there, it was taken for one that had arrived there."""
    story = Deep(tmp_path / "journal", RetentionSettings(tmp_path / "retained", None, None))
    story.turn(story.declare)
    story.turn(partial(story.publish, 1, [1], bytes(3000)), story.count)
    story.turn(partial(story.publish, 2, [1], bytes(3000)), story.count)
    settle = partial(story.settle, 1, [1], "acked")
    story.turn(settle, partial(story.recall, 1, [1]), settle, story.count)
    assert [row["messageCount"] for row in queues(tmp_path) if row["queue"] == "q1"] == [1]


@pytest.mark.parametrize("stays", [False, True])
def test_the_end_of_a_log_tells_what_all_of_it_does(
    tmp_path: Path, rng: random.Random, read: Any, monkeypatch: pytest.MonkeyPatch, *, stays: bool
) -> None:
    """At any time, whether surveyed or not; and the story knows what the queues hold at the end."""
    story = made(tmp_path, rng, stays=stays)
    moments = [str(START_MS + 1000 * rng.randrange(300)) for _ in range(6)]
    asked: list[dict[str, str]] = [{}, *({"asOf": moment} for moment in moments), {"subscribe": "elsewhere"}]
    with monkeypatch.context() as whole:
        whole.setattr(aggregated_tables, "_FIRST", 1 << 30)
        wanted = [queues(tmp_path, **options) for options in asked]
    for row, number in zip(wanted[0], QUEUES, strict=True):
        live = story.live[number]
        told = row["messageCount"], row["deliveringCount"], row["scheduledCount"]
        assert told == tuple(
            sum((number, n) in one for n in live) for one in ({(number, n) for n in live}, story.out, story.scheduled)
        )
    assert [queues(tmp_path, **options) for options in asked] == wanted
    survey(tmp_path)
    read.reset_mock()
    assert queues(tmp_path) == wanted[0]
    if not stays:
        segments = len([*tmp_path.glob("*/artemis-journal-*.log")])
        assert segments > 20
        assert read.call_count < segments / 2
    assert [queues(tmp_path, **options) for options in asked] == wanted


def test_of_a_broker_s_log_its_end_is_read(tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a broker tells of its depths is what its records add up to, bytes and all."""
    with live_broker(tmp_path, file_bytes="64K") as broker, broker.client() as client:
        for number in range(12):
            broker.send(number * 50, 50, size_bytes=1000)
            client.subscribe("/queue/orders", ack="auto")
            for _ in range(50):
                client.message()
            client.ask("UNSUBSCRIBE", {"id": "1"})
        broker.send(600, 7, size_bytes=10)
    survey(tmp_path)
    with monkeypatch.context() as whole:
        whole.setattr(aggregated_tables, "_FIRST", 1 << 30)
        wanted = queues(tmp_path)
    assert [(row["messageCount"], row["acked"]) for row in wanted if row["queue"] == "orders"] == [(7, 600)]
    assert len({call.args[1] for call in read.call_args_list}) > 5
    read.reset_mock()
    assert queues(tmp_path) == wanted
    assert len({call.args[1] for call in read.call_args_list}) <= 2
