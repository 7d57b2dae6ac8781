"""Why nothing (more) is delivered: asked of the queue's own gate, consumers and counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from artemis_py.config.problems import nearest
from artemis_py.testing.state import QueueState, messages, state_of

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
    found: list[str] = []
    if state.ready or state.paged:
        found += _about_gate(broker, queue, state)
        found += _about_consumers(server, queue)
    found += _about_delivery(server, queue)
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


def _about_gate(broker: Broker, queue: Queue, state: QueueState) -> list[str]:
    gate = queue.gate
    if gate.paused:
        return ["the queue is paused, and has to be resumed"]
    if not gate.started:
        found = f"its gate is closed: {queue.taker_count} of {gate.consumers_min} consumers (consumers-before-dispatch)"
        if gate.opens_at_ms:
            left_ms = gate.opens_at_ms - broker.clock.steady_ms(broker.log.now_ms)
            found += f"; delay-before-dispatch opens it in {_span(left_ms)}"
        return [found]
    if not gate.lets_out(queue.contents.tally.held_count):
        held = messages(queue.contents.tally.held_count + gate.unconfirmed_count)
        return [f"its backlog is used up: consumers hold {held} without an acknowledgement (max-backlog)"]
    if queue.is_held:
        return ["messages are on their way back to it, and until they are in their places nothing is delivered"]
    return []


def _about_consumers(server: Server, queue: Queue) -> list[str]:
    takers = [consumer for consumer in queue.distribution.consumers if not consumer.browses]
    if not takers:
        browsers = len(queue.distribution.consumers)
        return ["no consumer is attached" + (f", only {browsers} browsing" if browsers else "")]
    found = [f"{_shown(server, one)}: {_why_not_to(server, queue, one)}" for one in takers[:_LINES_MAX]]
    if len(takers) > _LINES_MAX:
        found.append(f"… and {len(takers) - _LINES_MAX} more consumers")
    return found


def _why_not_to(server: Server, queue: Queue, consumer: Consumer) -> str:
    """Why a consumer gets none of the ready messages."""
    ready = list(queue.contents.order)
    unwanted = sum(not consumer.wants(entry.message) for entry in ready)
    if len(consumer.held) >= consumer.backlog_max:
        return (
            f"its backlog is used up: it holds {messages(len(consumer.held))} without an acknowledgement "
            f"(max-backlog {consumer.backlog_max}); it may ask for more in its SUBSCRIBE, within the queue's "
            "max-per-subscription-backlog"
        )
    if consumer.credit_bytes <= 0:
        return (
            f"its window is used up: it holds {messages(len(consumer.held))} without an acknowledgement "
            f"(consumer-window-size {consumer.window_bytes} bytes)"
        )
    if consumer.room_bytes <= 0 and _is_stalled(server, consumer):
        return "its client does not read from its socket"
    if unwanted and unwanted == len(ready):
        return f"it wants none of the {len(ready)} ready: {_taste(consumer)}"
    if queue.gate.is_open and consumer.parked:
        if queue.grouping.groups is not None:
            return "what is ready belongs to groups of other consumers"
        if unwanted:
            return f"it does not want {unwanted} of the {len(ready)} ready: {_taste(consumer)}"
        return "it waits in line behind the consumers that are served first"
    return "it takes messages; a turn of the broker is due"


def _taste(consumer: Consumer) -> str:
    if consumer.selector is not None:
        return f"its selector is {consumer.selector.text}"
    if consumer.no_local:
        return "it wants none that its own connection sent (no-local)"
    return "they are older than its replay period"


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


def _about_delivery(server: Server, queue: Queue) -> list[str]:
    """Who holds messages without an acknowledgement."""
    holders = [consumer for consumer in queue.distribution.consumers if consumer.held]
    found = [f"{_shown(server, one)} has {messages(len(one.held))} and did not acknowledge" for one in holders]
    return found[:_LINES_MAX] + ([f"… and {len(found) - _LINES_MAX} more consumers"] if found[_LINES_MAX:] else [])


def _until_due(broker: Broker) -> str:
    due_ms = broker.timers.next_due_ms(broker.clock.shift_ms)
    if due_ms is None:
        return "their time"
    return f"their time: the next date of the broker is in {_span(due_ms - broker.log.now_ms)} (clock.advance)"


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


def _span(span_ms: int) -> str:
    return f"{max(span_ms, 0) / 1000:g} s"


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_LINES_MAX]) or "none"
    return shown if len(names) <= _LINES_MAX else f"{shown} and {len(names) - _LINES_MAX} more"
