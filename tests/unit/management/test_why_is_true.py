"""Reasons why a queue delivers nothing, on random queues: each ends with its remedy, and there always is one."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from artemis_py.config.settings import QueueConfig
from artemis_py.core.consumer import Consumer, Reader
from artemis_py.core.pages import ReadAhead
from artemis_py.core.queue.barriers import TargetDepth
from artemis_py.core.queue.overflow import Unbounded
from artemis_py.management.why.causes import CAUSES, KILLED
from artemis_py.management.why.not_delivered import not_delivered
from artemis_py.management.why.question import LINES_MAX, Finding
from tests.kit.core import consumer_on, head_of, send, write
from tests.kit.paged_bench import PagedBench
from tests.model.axes import PAGED
from tests.unit.management.why_parts import why

WORLDS = 150
_HISTORY = {*KILLED.values(), "expired"}
"""Words for what is over: no remedy undoes it."""
_LIMITS = ("max_read_page_messages", "prefetch_page_messages")
_ELSEWHERE = ("name", "address", "routing_type")


class World:
    """A queue of a random kind in a random state. The same seed makes the same world."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        chosen = next(PAGED.drawn(random.Random(seed)))
        chosen["view"] = "no"
        config, usual = (
            PAGED.queue_plan(chosen).config("q"),
            QueueConfig(name="q", address="q", routing_type="MULTICAST"),
        )
        own: dict[str, Any] = {
            field.name: getattr(config, field.name)
            for field in fields(QueueConfig)
            if field.name not in _ELSEWHERE and getattr(config, field.name) != getattr(usual, field.name)
        }
        settings: dict[str, Any] = {"redelivery_delay": rng.choice([0, 0, 500])}
        settings |= {name: rng.choice([-1, 1, 3]) for name in _LIMITS}
        self.bench = PagedBench(rng.choice([-1, 0, 2, 5]), queue=own, settings=settings)
        self.queue = self.bench.queue
        self.consumers: list[Consumer] = []
        self.count = 0
        for _ in range(rng.randrange(5, 40)):
            self.step()
        self.is_settled = rng.random() < 0.7
        if self.is_settled:
            self.bench.settle()

    def step(self) -> None:
        rng, bench = self.rng, self.bench
        number = rng.random()
        if number < 0.45:
            self.send()
        elif not self.consumers or (number < 0.6 and len(self.consumers) < LINES_MAX):
            self.attach(
                window_bytes=rng.choice([-1, 1, 1]),
                priority=rng.choice([0, 0, 1]),
                backlog_max=rng.choice([1, 2, 1 << 40]),
                selector=rng.choice([None, None, "color = 'red'"]),
                browses=rng.random() < 0.1,
            )
        elif number < 0.7:
            self.settle_some(rng.choice(self.consumers), nacks=rng.random() < 0.4)
        elif number < 0.75:
            self.detach(rng.choice(self.consumers))
        elif number < 0.8:
            (self.queue.pause if rng.random() < 0.4 else self.queue.resume)()
        elif number < 0.83:
            bench.broker.addresses["q"].paused = rng.random() < 0.5
            self.queue.state.note_ready()
        elif number < 0.95:
            bench.turn()
            if rng.random() < 0.5:
                bench.work_disk()
        else:
            bench.now_ms += rng.choice([10, 400, 1000])
            bench.turn()

    def send(self) -> None:
        rng = self.rng
        headers = {"key": rng.choice("abc"), "color": rng.choice(["red", "blue"])}
        if rng.random() < 0.5:
            headers["JMSXGroupID"] = rng.choice("gh")
        if rng.random() < 0.1:
            headers["x-qpid-not-valid-before"] = str(self.bench.now_ms + 1000)
        head = head_of("q", priority=rng.choice([1, 4, 4]), persistent=rng.random() < 0.7, **headers)
        due_ms = self.bench.now_ms + 700 if rng.random() < 0.1 else 0
        send(self.bench.broker, "q", head=head, now_ms=self.bench.now_ms, due_ms=due_ms)

    def attach(self, **options: Any) -> Consumer:
        self.count += 1
        consumer = consumer_on(
            self.bench.broker, self.queue, settles=self.queue.consumer_defaults.at_most_once, acks=True,
            reader=Reader(connection=self.count), **options,
        )  # fmt: skip
        self.consumers.append(consumer)
        return consumer

    def detach(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        self.bench.broker.detach(self.queue, consumer, failed=False, now_ms=self.bench.now_ms)

    def settle_some(self, consumer: Consumer, *, nacks: bool) -> None:
        write(self.bench.broker)
        if not consumer.held:
            return
        entries = [consumer.let_go(next(iter(consumer.held)))]
        if nacks:
            self.queue.release(consumer, entries, failed=True, now_ms=self.bench.now_ms)
        else:
            self.queue.acknowledge(consumer, entries)
        self.queue.wake(consumer)

    def acknowledge(self, consumers: list[Consumer]) -> None:
        write(self.bench.broker)
        for consumer in consumers:
            while consumer.held:
                self.settle_some(consumer, nacks=False)

    def named(self, about: str) -> Consumer:
        return next(one for one in self.consumers if about.split()[1] == str(one.id))

    def apply(self, finding: Finding) -> None:
        """Do what helps against a reason, as its remedy says, and nothing else."""
        queue, bench = self.queue, self.bench
        others: dict[str, Callable[[], object]] = {
            "paused": queue.resume, "barrier": self.open_barriers,
            "no-consumer": self.attach, "kept": self.attach, "purge-on-no-consumers": self.attach,
            **dict.fromkeys(("max-backlog", "rebalance", "leased"), lambda: self.acknowledge(self.consumers)),
            **dict.fromkeys(("due", "page", "moving"), bench.settle),
        }  # fmt: skip
        match finding.code:
            case "address-paused":
                list(bench.broker.address_changes.resume(bench.broker.addresses["q"]))
            case "consumers-before-dispatch":
                while not queue.gate.started:
                    self.attach()
            case "backlog" | "window" | "held":
                self.acknowledge([self.named(finding.about or finding.sentence)])
            case "target-queue-depth":
                pending = queue.contents.pending
                assert pending is not None
                assert isinstance(pending.threshold, TargetDepth)
                pending.threshold.target = 1000
            case "unwanted" if (one := self.named(finding.about)).destructive and not one.since_ms:
                queue.consumer_registry.replace(one, None, 0, one.backlog_max, bench.now_ms)
            case "read-ahead":
                if finding.place.setting in ("ring-size", "max-depth-messages", "max-depth-bytes"):
                    queue.flow.overflow = Unbounded()
                else:
                    queue.pages.reading.limits = ReadAhead(-1, -1, -1, -1)
            case "scheduled" | "redelivery-delay" | "group-waits":
                for _ in range(3):
                    bench.now_ms += 3000
                    bench.turn()
                bench.settle()
            case "nothing-waits" | "filtered":
                send(bench.broker, "q", head=head_of("q", color="red", key="z"), due_ms=bench.now_ms + 60_000)
            case "unwanted" | "shown" | "groups" | "consumer-priority" | "exclusive":
                self.send_away(finding)
            case code:
                others[code]()

    def open_barriers(self) -> None:
        """Whatever holds them: each is acknowledged by everybody."""
        self.queue.resume()
        list(self.bench.broker.address_changes.resume(self.bench.broker.addresses["q"]))
        while not self.queue.gate.started:
            self.attach()
        for one in list(self.consumers):
            self.detach(one)
        for _ in range(30):
            self.attach(backlog_max=1 << 40)
            self.bench.settle()
            self.acknowledge(self.consumers)
            self.bench.now_ms += 3000
            self.bench.settle()

    def send_away(self, finding: Finding) -> None:
        """Those consumers that stand in the way of the one that the reason is about; or that one itself."""
        about, is_served = self.named(finding.about), self.queue.distribution.is_served
        goes: dict[str, Callable[[Consumer], bool]] = {
            "groups": lambda one: one is not about,
            "consumer-priority": lambda one: one.priority > about.priority,
            "exclusive": lambda one: is_served(one) and not is_served(about),
        }
        for one in list(self.consumers):
            if goes[finding.code](one) if finding.code in goes else one is about:
                self.detach(one)
        if finding.code == "groups":
            assert "belongs to consumer " in finding.sentence
            self.bench.settle()


def is_given(world: World, like: Finding) -> bool:
    """Does the queue still give this reason, about the same consumer?"""
    given = [
        (one.code, one.about, one.connection, one.place.setting) for one in why(world.bench, not_delivered, world.queue)
    ]
    return (like.code, like.about, like.connection, like.place.setting) in given


@pytest.mark.parametrize("part", range(5))
def test_each_reason_ends_with_its_remedy_and_there_always_is_one(part: int) -> None:
    met: dict[str, int] = {}
    for seed in range(part, WORLDS, 5):
        world = World(seed)
        queue = world.queue
        found = why(world.bench, not_delivered, queue)
        codes = [one.code for one in found]
        where = f"world {seed}: {[(one.code, one.about, one.sentence) for one in found]}"
        assert found or not queue.message_count, f"{where}: no reason for {queue.message_count} messages"
        if world.is_settled:
            assert not {"due", "page", "moving"} & set(codes), where
        for one in found:
            assert one.code in CAUSES
            met[one.code] = met.get(one.code, 0) + 1
            if one.code in _HISTORY and "only while" not in one.sentence:
                continue
            again = World(seed)
            assert is_given(again, one), f"{where}: the same world gives other reasons"
            again.apply(one)
            assert not is_given(again, one), f"{where}: {one.code} {one.about} stays after its remedy"
    assert len(met) > 8, met
