"""What a step leaves that raises inside the broker: nobody is told that it was done, nobody else pays for it, and
nothing stays behind.
"""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from artemis_py.core.events import GIVEN_UP
from artemis_py.core.queue.acknowledge import SelectedMessages
from artemis_py.core.queue.arrivals import AfterEnqueue, Arrivals
from artemis_py.core.queue.delivery import AfterRemoval
from artemis_py.core.queue.messages import Contents
from artemis_py.core.transactions import Transaction
from artemis_py.errors import BrokerError
from artemis_py.management.operations.queues import _removed
from artemis_py.record_log import MemoryLog
from artemis_py.selector import compile_selector
from artemis_py.storage.pages import PageFiles, SpillLog
from tests.kit.committer import SteppedCommitter
from tests.kit.core import (
    NOW_MS,
    breaking,
    broker_of,
    consumer_on,
    head_of,
    queue_config,
    send,
    turn,
)
from tests.kit.crash.failing_steps import World
from tests.kit.disk import SimDisk

pytestmark = pytest.mark.interpreted

DURABLE = head_of(persistent=True)


failing = Mock(side_effect=RuntimeError("a step that fails"))
"""It raises, as no step should."""


@pytest.mark.parametrize("operation", ["purge", "delete"])
def test_an_operator_hears_that_only_a_part_was_removed(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_of(queue_config("q"))
    send(broker, count=3000, head=DURABLE)
    managed: Any = SimpleNamespace(broker=broker, now_ms=lambda: NOW_MS)
    broker.budget.refill(4000)
    steps = _removed(managed, {"queue": "q"}, getattr(broker.queue_operations, operation))
    next(steps)
    monkeypatch.setattr(MemoryLog, "settled", failing)
    turns = 0
    while broker.agenda.tasks:
        turn(broker, units=4000)
        turns += 1
    assert turns
    with pytest.raises(BrokerError, match="only a part"):
        next(steps)
    (event,) = [event for event in broker.events.take() if event.code == GIVEN_UP]
    assert (event.queue, event.fields["step"]) == ("q", "Removal")


def test_a_queue_that_fails_again_and_again_does_not_end_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages come back to a ring while one arrives; each time that it trims itself it raises."""
    broker = broker_of(queue_config("ring", ring_size=3), queue_config("well", "b"))
    queue = broker.queues["ring"]
    consumer = consumer_on(broker, queue)
    for _ in range(40):
        send(broker)
        turn(broker)
    give_up = breaking(Contents.give_up, lambda contents, *_: contents is queue.contents)
    monkeypatch.setattr(Contents, "give_up", give_up)
    broker.budget.refill(16)
    broker.detach(queue, consumer, failed=False, now_ms=NOW_MS)
    broker.budget.refill(16)
    send(broker)
    assert queue.tasks.unfinished
    for _ in range(200):
        turn(broker, units=16)
    assert not queue.tasks.unfinished
    assert not queue.gate.is_held
    assert not broker.agenda.tasks
    send(broker, "b")
    assert broker.queues["well"].message_count == 1


def test_what_fails_in_a_publication_is_its_publishers_whoever_carries_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """One message is on its way to 60 queues when the COMMIT of another client begins paging, and needs it there."""
    files = PageFiles(SimDisk(Random(0)), SteppedCommitter(lambda: None), lambda _: None)
    broker = broker_of(
        *(queue_config(f"q{number}", "news") for number in range(60)),
        settings={"#": {"address_full_policy": "PAGE", "max_size_messages": 1}},
        log=SpillLog(SteppedCommitter(lambda: None), files),
        pages=files,
    )
    broker.budget.refill(20)
    send(broker, "news")
    (fan_out,) = broker.enqueuer.take_begun()
    arrive = breaking(Arrivals.arrive, lambda arrivals, *_: arrivals._reference.name == "q7")
    monkeypatch.setattr(Arrivals, "arrive", arrive)
    transaction = Transaction()
    send(broker, "news", within=transaction)
    transaction.commit(broker, NOW_MS)
    broker.budget.refill(10_000)
    turn(broker)
    assert (fan_out.done, fan_out.failed) == (True, True)
    counts = {queue.message_count for name, queue in broker.queues.items() if name != "q7"}
    assert (counts, broker.queues["q7"].message_count) == ({2}, 1)


def test_a_consumer_that_leaves_is_gone_whatever_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was given a value that is outdated by now; removing that fails."""
    broker = broker_of(queue_config("v", last_value=True, last_value_key="key"))
    queue = broker.queues["v"]
    consumer = consumer_on(broker, queue, settles=True)
    for _ in range(2):
        send(broker, head=head_of(key="a", persistent=True))
    assert (len(consumer.outbox), queue.contents.order.count) == (1, 1)
    with monkeypatch.context() as patch:
        patch.setattr(MemoryLog, "settled", failing)
        broker.detach(queue, consumer, failed=True, now_ms=NOW_MS)
    assert (queue.consumer_count, consumer.outbox, queue.contents.order.count) == (0, [], 2)
    queue.resume()
    other = consumer_on(broker, queue)
    broker.dispatch(NOW_MS)
    assert len(other.outbox) == 2


@pytest.mark.parametrize("queue", ["q", "paged"])
def test_a_message_with_an_id_that_a_queue_has_is_known(queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step behind the arrival fails, so the sender sends it again."""
    world = World()
    for _ in range(2):
        world.send(queue)  # "paged" is full now
    sending = ("SEND", f"destination:{queue}", "persistent:true", "_AMQ_DUPL_ID:1", "receipt:x")
    owner = AfterRemoval if queue == "paged" else AfterEnqueue
    run = owner.run

    def run_and_fail(*args: Any, **options: Any) -> None:
        run(*args, **options)
        failing()

    with monkeypatch.context() as patch:
        patch.setattr(owner, "run", run_and_fail)
        world.write("producer", *sending, body="once")
    assert world.clients["producer"].is_closed
    world.write("again", *sending, body="once")
    assert [frame.command for frame in world.clients["again"].collect()] == ["RECEIPT"]
    got = world.read("reader", queue, "auto")
    for _ in range(20):
        world.life.drain()
        got += world.messages("reader")
    assert [frame.body for frame in got].count(b"once") == 1


def test_a_task_that_fails_leaves_no_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_of(queue_config("q", max_per_subscription_backlog=5))
    queue = broker.queues["q"]
    send(broker, count=600, head=DURABLE)
    monkeypatch.setattr(MemoryLog, "settled", failing)
    with pytest.raises(RuntimeError):
        queue.purge("purged", NOW_MS)
    with pytest.raises(RuntimeError):
        queue.acknowledge_by_filter(SelectedMessages(compile_selector("a IS NULL")), "", NOW_MS, connection=1)
    order: Any = queue.contents.order
    assert (list(order.cursors), queue.message_count) == ([], 600)
