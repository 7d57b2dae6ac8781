"""What the tests of the core build with: a broker from a few words, messages, consumers."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from types import FrameType, SimpleNamespace
from typing import Any, Final
from unittest.mock import Mock

from artemis_py.config.settings import (
    AddressConfig,
    BrokerConfig,
    DivertConfig,
    QueueConfig,
    SettingsEntry,
    SettingsRepository,
)
from artemis_py.core.addresses.batch import Batch
from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.core.events import Event
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.queue import Queue
from artemis_py.core.reload import Redeployment
from artemis_py.core.transactions import Transaction
from artemis_py.message import Account, Head, Message, encode_headers
from artemis_py.record_log import MemoryLog, PageLog, RecordLog, RecoveredState
from artemis_py.selector import compile_selector

NOW_MS: Final = 1_000_000
PLENTY: Final = 1 << 30


def queue_config(
    name: str = "q", address: str = "a", routing_type: str = "MULTICAST", **attributes: Any
) -> QueueConfig:
    """A declared queue."""
    return QueueConfig(name=name, address=address, routing_type=routing_type, **attributes)


def divert_config(name: str, address: str, *targets: str, **attributes: Any) -> DivertConfig:
    """A divert."""
    return DivertConfig(name=name, address=address, forwarding_addresses=targets, **attributes)


def broker_of(
    *queues: QueueConfig,
    settings: dict[str, dict[str, Any]] | None = None,
    diverts: Sequence[DivertConfig] = (),
    addresses: Sequence[str] = (),
    log: RecordLog | None = None,
    kept: RecoveredState | None = None,
    pages: PageLog | None = None,
    **core: Any,
) -> Broker:
    """A broker with these queues, settings by match, diverts, and multicast addresses without queues, on what another
    one has ``kept``.
    """
    declared: dict[str, list[QueueConfig]] = {name: [] for name in addresses}
    for queue in queues:
        declared.setdefault(queue.address, []).append(queue)
    config = BrokerConfig(
        addresses=tuple(
            AddressConfig(
                name=name,
                routing_types=tuple(sorted({queue.routing_type for queue in on_it})) or ("MULTICAST",),
                queues=tuple(on_it),
            )
            for name, on_it in declared.items()
        ),
        address_settings=SettingsRepository(
            [SettingsEntry(match=match, values=values) for match, values in (settings or {}).items()]
        ),
        diverts=tuple(diverts),
        **core,
    )
    return Broker(config, log or MemoryLog(), NOW_MS, kept, pages)


def head_of(address: str = "a", *, priority: int = 4, persistent: bool = False, **headers: str) -> Head:
    """A head; ``routing_type`` and ``duplicate_id`` may stand among the headers, as a session sets them."""
    routing_type = headers.pop("routing_type", None)
    duplicate_id = headers.pop("duplicate_id", None)
    lines = [("destination", address), *headers.items()]
    if routing_type is not None:
        lines.append(("destination-type", routing_type))
    return Head(
        encode_headers(lines),
        address,
        priority=priority,
        persistent=persistent,
        routing_type=routing_type,
        duplicate_id=duplicate_id,
    )


def entry_of(priority: int = 4, id: int = 1, body: bytes = b"", **head: Any) -> Entry:
    """An entry of a message that belongs to no broker; ``head`` is what ``head_of`` takes."""
    return Entry(Message(head_of(priority=priority, **head), body, id, NOW_MS, 0, Account(), 0))


def send(
    broker: Broker,
    address: str = "a",
    count: int = 1,
    *,
    head: Head | None = None,
    body: bytes = b"x",
    queue: str | None = None,
    routing_type: str | None = None,
    now_ms: int = NOW_MS,
    expires_ms: int = 0,
    due_ms: int = 0,
    plain: bool = False,
    origin: int = 0,
    within: Transaction | None = None,
) -> int:
    """Send messages, at once or in a transaction; returns how many were taken."""
    route = broker.resolver.route(address, queue, routing_type)
    head = head or (head_of(address, routing_type=routing_type) if routing_type else head_of(address))
    messages = [broker.message(route, head, body, now_ms, expires_ms, origin) for _ in range(count)]
    if within is not None:
        for message in messages:
            within.send(route, message, due_ms)
        return count
    size_bytes = sum(message.size_bytes for message in messages)
    return broker.publisher.publish(Batch(route, messages, size_bytes, now_ms, plain, due_ms))


def lone_consumer(id: int = 1, room: int = PLENTY, **options: Any) -> Consumer:
    """A consumer with room, of no broker."""
    consumer = Consumer(id, object(), **({"settles": False, "destructive": True} | options))
    consumer.room_bytes = room
    return consumer


def consumer_on(
    broker: Broker,
    queue: Queue,
    *,
    selector: str | None = None,
    settles: bool = False,
    room: int = PLENTY,
    **options: Any,
) -> Consumer:
    """A consumer with room, attached."""
    browses = bool(options.get("browses"))
    consumer = Consumer(
        broker.next_consumer_id(),
        object(),
        settles=settles,
        destructive=not (queue.non_destructive or browses),
        selector=None if selector is None else compile_selector(selector),
        **options,
    )
    broker.attach(queue, consumer, NOW_MS)
    consumer.room_bytes = room
    queue.wake(consumer)
    return consumer


def turn(broker: Broker, now_ms: int = NOW_MS, *, units: int | None = None) -> None:
    """Tick, dispatch, write; with a budget of so many units."""
    if units is not None:
        broker.budget.refill(units)
    broker.tick(now_ms)
    broker.dispatch(now_ms)
    write(broker)


def write(broker: Broker) -> None:
    """Write what consumers got, as a session does."""
    outgoing = broker.take_outgoing()
    for consumer in outgoing:
        consumer.listed = False
        entries, consumer.outbox, consumer.handed = consumer.outbox, [], []
        for queue in broker.queues.values():
            if consumer in queue.distribution.consumers:
                queue.sent(consumer, entries)


def told(broker: Broker, *codes: str) -> list[Event]:
    """The events of these codes since somebody asked for any."""
    return [event for event in broker.events.take() if event.code in codes]


def ids(entries: Any) -> list[int]:
    """The message ids of entries."""
    return [entry.message.id for entry in entries]


def heads_on(broker: Broker, queue: str) -> list[Head]:
    """The head of each message that is ready on a queue."""
    return [entry.message.head for entry in broker.queues[queue].contents.order]


def counting(consumer: Consumer) -> Mock:
    """Whose ``call_count`` is how often the consumer's selector is asked from now on."""
    selector = consumer.selector
    assert selector is not None
    asked = Mock(side_effect=selector.matches)
    counted: Any = SimpleNamespace(text=selector.text, identifiers=selector.identifiers, matches=asked)
    consumer.selector = counted
    return asked


def breaking(
    whole: Callable[..., Any], breaks: Callable[..., bool], kind: type[Exception] = RuntimeError
) -> Callable[..., Any]:
    """A step in the place of ``whole``: it raises where ``breaks`` says so, as no step should."""

    def step(*arguments: Any, **options: Any) -> Any:
        if breaks(*arguments):
            raise kind("a step that fails")
        return whole(*arguments, **options)

    return step


def redeploy(broker: Broker, config: BrokerConfig, now_ms: int = NOW_MS) -> Redeployment:
    """Carry out a reload of another file, in which nothing fails."""
    redeployment = broker.redeploy(config, lambda: now_ms, lambda number, reason: None)
    for _ in redeployment.run():
        pass
    assert redeployment.failures == []
    return redeployment


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python a call runs: a cost that does not depend on the machine."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if event == "line":
            count += 1
        return trace

    before = sys.gettrace()
    collects = gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count


def with_queue(**attributes: Any) -> tuple[Broker, Queue]:
    """A broker and its one queue."""
    broker = broker_of(queue_config(**attributes))
    return broker, broker.queues["q"]
