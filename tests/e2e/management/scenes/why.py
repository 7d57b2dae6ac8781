"""Scenes of the operations that say why, and how it came to that."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tests.e2e.management.scene import Scene
from tests.e2e.management.told import Told


def _says(_told: Told, answer: Any, *, reason: str, text: str) -> None:
    """This word, in a sentence with this text."""
    said = [(row["reason"], row["sentence"]) for row in answer["data"]]
    assert answer["count"] == len(said)
    assert any(reason == code and text in sentence for code, sentence in said), said


_NO_HISTORY: Final = {"count": 0, "data": []}
"""A broker that has just begun has taken one sample at most; test_trends_in_the_console has more."""

WHY: Final[dict[str, Scene]] = {
    "queue.whyNotDelivered": Scene(
        {"queue": "orders"},
        partial(_says, reason="no-consumer", text="no consumer is attached"),
        partial(Told.send, destination="/queue/orders"),
    ),
    "address.whyBlocked": Scene({"address": "orders"}, partial(_says, reason="not-blocked", text="it takes messages")),
    "whyConnectionBlocked": Scene(
        {"connection": "1"}, partial(_says, reason="not-blocked", text="its state is open"), Told.guest
    ),
    "whyDropped": Scene(
        {"name": "orders"},
        partial(_says, reason="purged", text="2 messages were removed by an operator"),
        lambda told: (told.send("/queue/orders", "xx"), told.asked("POST", "/api/queues/orders/purge")),
    ),
    "queue.whyDead": Scene(
        {"queue": "orders"}, partial(_says, reason="no-dead-letters", text="orders has no dead letters")
    ),
    "whySlow": Scene({}, lambda _told, answer: answer["data"][0]["reason"]),
    "queue.getHistory": Scene({"queue": "orders"}, _NO_HISTORY),
    "getHistory": Scene({}, _NO_HISTORY),
    "queue.whyGrowing": Scene({"queue": "orders"}, partial(_says, reason="not-growing", text="0/s come in")),
}
