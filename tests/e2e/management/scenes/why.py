"""Scenes of the operations that say why, and how it came to that."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tests.e2e.management.scene import Scene
from tests.e2e.management.told import Told


def _says(*wanted: tuple[str, str]) -> Callable[[Told, Any], None]:
    """These words, each in a sentence with this text."""

    def check(_told: Told, answer: Any) -> None:
        told = [(row["reason"], row["sentence"]) for row in answer["data"]]
        assert answer["count"] == len(told)
        for code, text in wanted:
            assert any(code == reason and text in sentence for reason, sentence in told), told

    return check


_NO_HISTORY: Final = {"count": 0, "data": []}
"""A broker that has just begun has taken one sample at most; test_trends_in_the_console has more."""

WHY: Final[dict[str, Scene]] = {
    "queue.whyNotDelivered": Scene(
        {"queue": "orders"}, _says(("no-consumer", "no consumer is attached")), partial(Told.send, queue="orders")
    ),
    "address.whyBlocked": Scene({"address": "orders"}, _says(("not-blocked", "it takes messages"))),
    "whyConnectionBlocked": Scene({"connection": "1"}, _says(("not-blocked", "its state is open")), Told.guest),
    "whyDropped": Scene(
        {"name": "orders"},
        _says(("purged", "2 messages were removed by an operator")),
        lambda told: (told.send("orders", "xx"), told.asked("POST", "/api/queues/orders/purge")),
    ),
    "queue.whyDead": Scene({"queue": "orders"}, _says(("no-dead-letters", "orders has no dead letters"))),
    "whySlow": Scene({}, lambda _told, answer: answer["data"][0]["reason"]),
    "queue.getHistory": Scene({"queue": "orders"}, _NO_HISTORY),
    "getHistory": Scene({}, _NO_HISTORY),
    "queue.whyGrowing": Scene({"queue": "orders"}, _says(("not-growing", "0/s come in"))),
}
