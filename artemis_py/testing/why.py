"""Why nothing (more) is delivered: what ``artemis-py why not-delivered`` says, in the test's own process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artemis_py.core.tasks import WAIT
from artemis_py.management.why.not_delivered import about_no_queue, not_delivered
from artemis_py.management.why.question import Question

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
