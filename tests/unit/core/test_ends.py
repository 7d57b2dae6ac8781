"""Every way in which a message leaves a queue has its own reason in the log, and its own event for readers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import artemis_py.core
from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.core.operations.scan import MessageFilter
from artemis_py.core.order import entry as entries
from artemis_py.core.queue.queue import Queue
from artemis_py.history import ENDS
from artemis_py.storage.format.records import CAUSES, REASONS
from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.core import NOW_MS, broker_of, consumer_on, head_of, queue_config, send, turn, write
from tests.kit.crash.opening import SimStore
from tests.kit.disk import SimDisk

ENDED = {
    value: name
    for name, value in vars(entries).items()
    if name.isupper() and isinstance(value, str) and value not in CAUSES
}
"""The constant for each reason why a message left a queue."""
OLD = {"killed"}
"""Reasons that only older logs have."""
EVENTS = re.compile(r"^- why it left the queue: (.*?)\.$", re.DOTALL | re.MULTILINE)


class World:
    """A broker with a queue for each way to end."""

    def __init__(self) -> None:
        self.log = SimStore(SimDisk(Random(1)), JournalSettings()).records
        settings = {"#": {"max_delivery_attempts": 1, "dead_letter_address": "graves"}}
        self.broker: Broker = broker_of(
            queue_config("q", "q"), queue_config("other", "other"), queue_config("graves", "graves"),
            queue_config("ring", "ring", ring_size=1), queue_config("none", "none", ring_size=0),
            queue_config("values", "values", last_value_key="k"),
            queue_config("mayfly", "mayfly", purge_on_no_consumers=True), settings=settings, log=self.log,
        )  # fmt: skip

    def send(self, name: str, count: int = 1, expires_ms: int = 0) -> None:
        """Persistent messages with the same value."""
        send(self.broker, name, count, head=head_of(name, persistent=True, k="v"), expires_ms=expires_ms)

    def taken(self, name: str) -> Consumer:
        """A consumer that has what is on a queue."""
        consumer = consumer_on(self.broker, self.broker.queues[name])
        turn(self.broker)
        return consumer

    def lost(self, name: str, consumer: Consumer) -> None:
        """A consumer's connection ends."""
        self.broker.detach(self.broker.queues[name], consumer, failed=True, now_ms=NOW_MS)
        self.turns()

    def turns(self, now_ms: int = NOW_MS) -> None:
        """Enough for what goes on in later turns."""
        for _ in range(9):
            turn(self.broker, now_ms)


def acknowledged(world: World) -> None:
    world.send("q")
    consumer = world.taken("q")
    world.broker.queues["q"].acknowledge(consumer, [consumer.let_go(*consumer.held)])


def abandoned(world: World) -> None:
    consumer = consumer_on(world.broker, world.broker.queues["mayfly"], room=0)
    world.send("mayfly")
    world.lost("mayfly", consumer)


def given_a_newer_value(world: World, settles: bool) -> None:
    """While a consumer has the older one, or before that was written to it."""
    world.send("values")
    consumer = consumer_on(world.broker, world.broker.queues["values"], settles=settles)
    world.broker.dispatch(NOW_MS)
    if not settles:
        write(world.broker)
    consumer.room_bytes = 0
    world.send("values")
    world.lost("values", consumer)


WAYS: dict[str, tuple[Callable[[World], object], str]] = {
    "acknowledged": (acknowledged, "acked"),
    "pushed out": (lambda world: world.send("ring", 2), "replaced"),
    "kept out": (lambda world: world.send("none"), "replaced"),
    "a newer value": (lambda world: world.send("values", 2), "superseded"),
    "a newer value while a consumer had it": (lambda world: given_a_newer_value(world, settles=False), "superseded"),
    "a newer value before it was written": (lambda world: given_a_newer_value(world, settles=True), "superseded"),
    "expired": (
        lambda world: (
            world.send("q", expires_ms=NOW_MS + 10),
            consumer_on(world.broker, world.broker.queues["q"], room=0),
            world.turns(NOW_MS + 60_000),
        ),
        "expired",
    ),
    "dead": (lambda world: (world.send("q"), world.lost("q", world.taken("q"))), "dead"),
    "abandoned": (abandoned, "abandoned"),
}
OPERATIONS: dict[str, Callable[[Broker, Queue], object]] = {
    "cancelled": lambda broker, q: broker.message_operations.send_to_dead_letters(q, MessageFilter()),
    "moved": lambda broker, q: broker.message_operations.move(q, MessageFilter(), "other"),
    "purged": lambda broker, _: broker.queue_operations.purge("q", NOW_MS),
    "deleted": lambda broker, _: broker.queue_operations.delete("q", NOW_MS),
}


@pytest.mark.parametrize(("way", "reason"), WAYS.values(), ids=WAYS)
def test_the_log_says_why_a_message_left(way: Callable[[World], object], reason: str) -> None:
    world = World()
    way(world)
    assert [told for _, ids, told in world.log.of("settled") for _ in ids] == [reason]


@pytest.mark.parametrize("reason", OPERATIONS)
def test_the_log_says_what_an_operator_did(reason: str) -> None:
    world = World()
    world.send("q")
    OPERATIONS[reason](world.broker, world.broker.queues["q"])
    world.turns()
    assert [told for _, ids, told in world.log.of("settled") for _ in ids] == [reason]


def test_each_end_of_the_core_is_an_event_of_the_log() -> None:
    """And no event is of an end that does not occur. Only what a disk has lost is not made here."""
    assert set(REASONS) - OLD == set(ENDED) == {reason for _, reason in WAYS.values()} | {*OPERATIONS, "damaged"}
    assert set(ENDS) == set(REASONS)
    assert len({text for _, text in ENDS.values()}) == len(ENDS)


def test_each_end_is_used_by_the_core() -> None:
    """As an argument, where something is settled."""
    texts = [path.read_text() for path in Path(artemis_py.core.__path__[0]).rglob("*.py") if path.name != "entry.py"]
    for name in ENDED.values():
        assert any(re.search(rf"[(, ]{name}[),]", re.sub(r"^from .*$", "", text, flags=re.M)) for text in texts), name


def test_the_manual_names_each_event() -> None:
    (told,) = EVENTS.findall((Path(artemis_py.core.__path__[0]).parents[1] / "docs" / "pipeline.md").read_text())
    assert set(re.findall(r"`(\w+)`", told)) == set(REASONS) - OLD
