"""What a broker does now, in words: why a queue delivers nothing (as ``artemis-py why not-delivered`` says), why the
broker is not idle, and a report of all that it holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from artemis_py.core.queue.why import messages
from artemis_py.core.tasks import WAIT
from artemis_py.management.why.not_delivered import about_no_queue, not_delivered
from artemis_py.management.why.question import Question
from artemis_py.testing.state import state_of

if TYPE_CHECKING:
    from artemis_py.server.server import Server


def why_not_delivered(server: Server, name: str) -> list[str]:
    """Sentences about the queue of this name; empty if it has nothing to deliver. Only in the broker's thread."""
    queue = server.broker.queues.get(name)
    if server.failure is not None:
        return [f"the broker has failed: {server.failure}"]
    if queue is None:
        return about_no_queue(server.broker, name)
    question = Question(server.managed, queue=queue)
    for step in not_delivered(question, queue):
        if step is WAIT:  # another turn can only come when this one has ended
            break
    return [finding.text for finding in question.findings]


def why_not_idle(server: Server) -> list[str]:
    """What the broker still has to do by itself, or waits for a client to do; empty if it is idle. Only in the thread
    of the broker.
    """
    broker, turns = server.broker, server.turns
    if server.failure is not None:
        return [f"it has failed: {server.failure}"]
    found: list[str] = []
    if turns.input.scheduler.count or broker.has_ready or broker.forwards.waiting:
        found.append("a turn is due")
    for connection in server.stats.connections:
        if connection.session.out or connection.socket.waiting_bytes or connection.is_dirty:
            found.append(f"frames wait for the client {connection.peer}")
        if connection.state == "blocked":
            found.append(f"the client {connection.peer} waits for room")
    for queue in broker.queues.values():
        if queue.contents.delivering_count:
            found.append(f"queue {queue.name}: {messages(queue.contents.delivering_count)} in delivery")
    return found


def story_of(server: Server) -> str:
    """A paragraph for each queue that has, had or could have messages. Only in the thread of the broker."""
    lines = [f"{len(server.stats.connections)} connections, {len(server.broker.queues)} queues"]
    for name in sorted(server.broker.queues):
        queue = server.broker.queues[name]
        state = state_of(queue)
        if state.added or state.consumers:
            lines.append(f"queue {name}: {state}; {state.consumers} consumers")
            lines += [f"  {line}" for line in why_not_delivered(server, name)]
    return "\n".join(lines)


def why_blocked(server: Server, address: str) -> str:
    """Why an address takes no message now."""
    name = address.rpartition("/")[2]
    found = server.broker.addresses.get(name)
    if found is not None and found.disk_full:
        return f"the disk is full, and the disk-full-policy of {name} is {found.full_policy}"
    if found is not None and not found.may_go_on:
        held = f"it holds {found.account.message_count} messages, {found.size_bytes} bytes"
        return f"the address {name} is full, and its address-full-policy is {found.full_policy}: {held}"
    full = [queue.name for queue in server.broker.queues.values() if not queue.may_go_on]
    return f"these queues are full: {', '.join(full)}" if full else "it has not answered"
