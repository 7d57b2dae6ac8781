"""Publishes a message for a client that asks where it is (``receipt-routing`` in CONNECT)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from artemis_py.core.placing.batch import Batch
from artemis_py.core.placing.whereabouts import Whereabouts
from artemis_py.message import Message
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.wire import writer

_NAMES_MAX: Final = 10
"""A RECEIPT names so many queues."""


def publish_watched(
    state: SessionState, batch: Batch, message: Message, publish: Callable[[Batch], int]
) -> tuple[int, list[tuple[str, str]]]:
    """Publish the one message of a batch, with the copies that diverts make of it. Returns what ``publish`` does, and
    what the RECEIPT tells. Raises what ``publish`` does.
    """
    broker, address = state.broker, batch.route.address
    whereabouts = broker.enqueuer.watched = Whereabouts(
        address,
        has_queues=broker.bindings.has_queues(address),
        is_awaited=_is_awaited(state, batch, message),
    )
    try:
        count = publish(batch)
    finally:
        broker.enqueuer.watched = None
    names = whereabouts.queues
    if not names:
        return count, [("queues", "0"), ("reason", whereabouts.reason)]
    shown = writer.escape(",".join(names[:_NAMES_MAX]), state.version)
    return count, [("queues", str(len(names))), ("queue-names", shown)]


def _is_awaited(state: SessionState, batch: Batch, message: Message) -> bool:
    """Will a queue that is being filled find the message in the log?"""
    route = batch.route
    plan = state.broker.bindings.plan_of(route)
    queues = [*plan.multicast, *plan.anycast] if route.queue is None else [route.queue]
    return message.head.persistent and any(
        queue.filling is not None and batch.verdicts_of(message).of(queue.selector) for queue in queues
    )
