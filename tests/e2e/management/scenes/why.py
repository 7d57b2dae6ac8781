"""Scenes of the operations that say why, and how it came to that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.e2e.management.scene import Scene
from tests.e2e.management.told import Told
from tests.kit.client import StompSocket

_CLIENTS: Final[list[StompSocket]] = []


def _comes(told: Told) -> None:
    _CLIENTS.append(told.client())


def _goes(_told: Told) -> None:
    _CLIENTS.pop().close()


def _says(*wanted: tuple[str, str]) -> Callable[[Told, Any], None]:
    """These words, each in a sentence with this text."""

    def check(_told: Told, answer: Any) -> None:
        told = [(row["reason"], row["sentence"]) for row in answer["data"]]
        assert answer["count"] == len(told)
        for code, text in wanted:
            assert any(code == reason and text in sentence for reason, sentence in told), told

    return check


def _has_no_history(_told: Told, answer: Any) -> None:
    """A broker that has just begun has taken one sample at most; test_trends_in_the_console has more."""
    assert (answer["count"], answer["data"]) == (0, [])


WHY: Final[dict[str, Scene]] = {
    "queue.whyNotDelivered": Scene(
        {"queue": "orders"}, _says(("no-consumer", "no consumer is attached")), lambda told: told.send("orders", 1)
    ),
    "address.whyBlocked": Scene({"address": "orders"}, _says(("not-blocked", "it takes messages"))),
    "whyConnectionBlocked": Scene({"connection": "1"}, _says(("not-blocked", "its state is open")), _comes, _goes),
    "whyDropped": Scene(
        {"name": "orders"},
        _says(("purged", "2 messages were removed by an operator")),
        lambda told: (told.send("orders", 2), told.ask("POST", "/api/queues/orders/purge")),
    ),
    "queue.whyDead": Scene({"queue": "orders"}, _says(("no-dead-letters", "orders has no dead letters"))),
    "whySlow": Scene({}, lambda _told, answer: answer["data"][0]["reason"]),
    "queue.getHistory": Scene({"queue": "orders"}, _has_no_history),
    "getHistory": Scene({}, _has_no_history),
    "queue.whyGrowing": Scene({"queue": "orders"}, _says(("not-growing", "0/s come in"))),
}
