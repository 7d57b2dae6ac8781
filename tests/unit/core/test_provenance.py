"""Who wrote the headers that say of what a message is a copy: the broker knows, whatever clients send."""

from __future__ import annotations

from typing import Any

import pytest

from artemis_py.core.broker import Broker
from artemis_py.core.operations.messages import dead, moved, retried, with_priority
from artemis_py.message import COPIED, COPIED_QUEUE, COPIED_REASON, SENT, UNKNOWN, Account, Message
from tests.kit.core import NOW_MS, broker_of, consumer_on, divert_config, head_of, heads_on, queue_config, send, turn
from tests.unit.core.test_copies import fail

DEAD = COPIED + COPIED_QUEUE + COPIED_REASON
FORGED: dict[str, Any] = {
    "_AMQ_ORIG_ADDRESS": "there", "_AMQ_ORIG_QUEUE": "there", "_AMQ_ORIG_MESSAGE_ID": "7", "reason": "max_deliveries",
}  # fmt: skip


def made(**core: Any) -> Broker:
    """Addresses with a queue each; dead messages go to graves, expired ones to late."""
    settings = {"#": {"max_delivery_attempts": 1, "dead_letter_address": "graves", "expiry_address": "late"}}
    queues = [queue_config(name, name) for name in ("q", "other", "graves", "late")]
    return broker_of(*queues, settings=settings, **core)


@pytest.mark.parametrize("headers", [{}, FORGED])
def test_what_a_client_sends(headers: dict[str, Any]) -> None:
    broker = made()
    send(broker, "q", head=head_of("q", **headers))
    assert [head.provenance for head in heads_on(broker, "q")] == [SENT]
    fail(broker, "q")
    turn(broker)
    assert [head.provenance for head in heads_on(broker, "graves")] == [DEAD]


def test_what_has_expired() -> None:
    broker = made()
    send(broker, "q", head=head_of("q", **FORGED), expires_ms=NOW_MS + 10)
    consumer_on(broker, broker.queues["q"], room=0)
    for _ in range(3):
        turn(broker, NOW_MS + 60_000)
    assert [head.provenance for head in heads_on(broker, "late")] == [DEAD]


def test_what_is_diverted() -> None:
    """The reason stays the client's."""
    broker = made(diverts=[divert_config("d", "q", "other")])
    send(broker, "q", head=head_of("q", **FORGED))
    turn(broker)
    assert [head.provenance for head in heads_on(broker, "other")] == [COPIED + COPIED_QUEUE]


def test_a_dead_letter_that_is_diverted_still_says_why_it_died() -> None:
    broker = made(diverts=[divert_config("d", "graves", "other")])
    send(broker, "q")
    fail(broker, "q")
    turn(broker)
    (head,) = heads_on(broker, "other")
    assert (head.provenance, head.properties["reason"]) == (DEAD, "max_deliveries")


def message_of(provenance: int, **headers: Any) -> Message:
    head = head_of("q", **headers)
    head.provenance = provenance
    return Message(head, b"x", 9, NOW_MS, 0, Account(), 0)


def test_what_an_operator_does() -> None:
    sent, letter, old = message_of(SENT, **FORGED), message_of(DEAD, **FORGED), message_of(UNKNOWN, **FORGED)
    changed = moved(sent, "other", "q", "q")
    assert (changed.provenance, changed.properties["_AMQ_ORIG_ADDRESS"]) == (COPIED + COPIED_QUEUE, "q")
    for message in (letter, old):
        changed = moved(message, "other", "q", "q")
        assert (changed.provenance, changed.properties["_AMQ_ORIG_ADDRESS"]) == (message.head.provenance, "there")
        assert retried(message, "q").provenance == message.head.provenance
    assert [dead(one, "graves", "q", "q", "cancelled").provenance for one in (sent, letter, old)] == [DEAD] * 3
    changed = with_priority(sent, 7)
    assert (changed.provenance, changed.properties["_AMQ_ORIG_MESSAGE_ID"]) == (COPIED, "9")
    assert "_AMQ_ORIG_ADDRESS" not in changed.properties
    assert [with_priority(one, 7).provenance for one in (letter, old)] == [DEAD, UNKNOWN]
    assert letter.head.at("other").provenance == letter.head.with_header("reason", "x").provenance == DEAD


def test_what_an_older_log_does_not_say_stays_unsaid() -> None:
    """A copy of it that does not name the queue, or no reason, may have these from anyone."""
    old = message_of(UNKNOWN, **FORGED).head
    assert old.forwarded("b", {"_AMQ_ORIG_ADDRESS": "q"}).provenance == UNKNOWN
    assert old.forwarded("b", {"_AMQ_ORIG_ADDRESS": "q", "_AMQ_ORIG_QUEUE": "q", "reason": "r"}).provenance == DEAD
