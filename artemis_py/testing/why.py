"""Why nothing (more) is delivered: asked of the queue's own gate, consumers and counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from artemis_py.config.problems import nearest
from artemis_py.core.queue.reasons import (
    BACKLOG,
    WINDOW,
    messages,
    span,
    what_is_leased,
    what_it_holds,
    why_behind,
    why_closed,
    why_nobody,
    why_not_to,
)
from artemis_py.testing.state import QueueState, state_of

if TYPE_CHECKING:
    from artemis_py.core.addresses.address import Address
    from artemis_py.core.broker import Broker
    from artemis_py.core.consumer import Consumer
    from artemis_py.core.queue.queue import Queue
    from artemis_py.server.server import Server

_LINES_MAX: Final = 8
"""So many consumers, queues or addresses are named, and the rest is counted."""


def why_not_delivered(server: Server, name: str) -> list[str]:
    """Sentences about the queue of this name; empty if it has nothing to deliver. Only in the broker's thread."""
    broker = server.broker
    queue = broker.queues.get(name)
    if server.failure is not None:
        return [f"the broker has failed: {server.failure}"]
    if queue is None:
        return _about_no_queue(broker, name)
    state = state_of(queue)
    now_ms = broker.log.now_ms
    found: list[str] = []
    if state.ready or state.paged:
        found += _about_gate(queue, now_ms)
        found += _about_consumers(server, queue, now_ms)
    behind = why_behind(queue.parts.basis)
    if behind is not None:
        found += ([] if state.ready or state.paged else _about_gate(queue, now_ms)) + [behind.text]
    found += _about_delivery(server, queue, now_ms)
    if state.scheduled:
        found.append(f"{messages(state.scheduled)} must wait for {_until_due(broker)}")
    if not state.count:
        found += _about_nothing(broker, queue, state)
    return found + _about_losses(broker, queue, state)


def _about_no_queue(broker: Broker, name: str) -> list[str]:
    found = [f"there is no queue {name}"]
    guess = nearest(name, broker.queues)
    if guess is not None:
        found[0] += f"; did you mean {guess}?"
    address = broker.addresses.get(name)
    if address is not None and address.queues:
        queues = _listed([queue.name for queue in address.queues.values()])
        found.append(f"the address {name} exists; its queues are {queues}")
    elif address is not None:
        lost = messages(address.unrouted_message_count)
        found.append(f"the address {name} exists and has no queue: {lost} sent there reached nobody")
    else:
        found.append(f"the queues are {_listed(sorted(broker.queues))}")
    return found


def _about_gate(queue: Queue, now_ms: int) -> list[str]:
    reason = why_closed(queue.parts.basis, now_ms, is_held=queue.is_held)
    return [] if reason is None else [reason.text]


def _about_consumers(server: Server, queue: Queue, now_ms: int) -> list[str]:
    nobody = why_nobody(queue.parts.basis)
    if nobody is not None:
        return [nobody.text]
    takers = [consumer for consumer in queue.distribution.consumers if not consumer.browses]
    found = [f"{_shown(server, one)}: {_why_not_to(server, queue, one, now_ms)}" for one in takers[:_LINES_MAX]]
    if len(takers) > _LINES_MAX:
        found.append(f"… and {len(takers) - _LINES_MAX} more consumers")
    return found


def _why_not_to(server: Server, queue: Queue, consumer: Consumer, now_ms: int) -> str:
    """Why a consumer gets none of the ready messages."""
    reason = why_not_to(queue.parts.basis, consumer, now_ms)
    has_room = reason.kind not in {BACKLOG, WINDOW}
    if has_room and consumer.room_bytes <= 0 and _is_stalled(server, consumer):
        return "its client does not read from its socket"
    return reason.text


def _is_stalled(server: Server, consumer: Consumer) -> bool:
    return any(
        connection.state == "stalled"
        for connection in server.stats.connections
        if connection.session.state.origin == consumer.reader.connection
    )


def _shown(server: Server, consumer: Consumer) -> str:
    """A consumer by its number, and what is known of its client."""
    reader = consumer.reader
    known = [f"client-id {reader.client_id}"] if reader.client_id else []
    known += [f"user {reader.user}"] if reader.user else []
    for connection in server.stats.connections:
        if connection.session.state.origin == reader.connection:
            known.append(f"from {connection.peer}")
    return f"consumer {consumer.id}" + (f" ({', '.join(known)})" if known else "")


def _about_delivery(server: Server, queue: Queue, now_ms: int) -> list[str]:
    """Who holds messages without an acknowledgement, and when leases end."""
    basis = queue.parts.basis
    held = [(one, what_it_holds(basis, one, now_ms)) for one in queue.distribution.consumers]
    found = [f"{_shown(server, one)} {reason.text}" for one, reason in held if reason is not None]
    more = len(found) - _LINES_MAX
    leased = what_is_leased(basis, now_ms)
    return [
        *found[:_LINES_MAX],
        *([f"… and {more} more consumers"] if more > 0 else []),
        *([] if leased is None else [leased.text]),
    ]


def _until_due(broker: Broker) -> str:
    due_ms = broker.timers.next_due_ms(broker.clock.shift_ms)
    if due_ms is None:
        return "their time"
    return f"their time: the next date of the broker is in {span(due_ms - broker.log.now_ms)} (clock.advance)"


def _about_nothing(broker: Broker, queue: Queue, state: QueueState) -> list[str]:
    """An empty queue: did anything come, and where did it go?"""
    if state.added:
        return []
    if not queue.enabled:
        return ["nothing came: the queue is not enabled"]
    address = broker.addresses.get(queue.address.name)
    if address is not None and _sent_count(address) and queue.selector is not None:
        sent = messages(_sent_count(address))
        return [f"nothing came: of {sent} for {address.name} none passed the queue's filter {queue.selector.text}"]
    return ["nothing came", *_about_other_addresses(broker, queue.address.name)]


def _about_other_addresses(broker: Broker, name: str) -> list[str]:
    others = [one for one in broker.addresses.values() if one.name != name and _sent_count(one)]
    if not others:
        return ["nothing was sent to any address"]
    return ["messages were sent to " + _listed([f"{one.name} ({_sent_count(one)})" for one in others])]


def _sent_count(address: Address) -> int:
    return address.routed_message_count + address.unrouted_message_count


def _about_losses(broker: Broker, queue: Queue, state: QueueState) -> list[str]:
    settings = queue.address.settings
    found: list[str] = []
    for count, what, target in (
        (state.killed, "killed", settings.dead_letter_address),
        (state.expired, "expired", settings.expiry_address),
    ):
        if count:
            found.append(f"{messages(count)} {what}" + (f"; see the address {target}" if target else ""))
    return found


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_LINES_MAX]) or "none"
    return shown if len(names) <= _LINES_MAX else f"{shown} and {len(names) - _LINES_MAX} more"
