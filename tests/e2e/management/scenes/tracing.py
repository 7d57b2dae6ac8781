"""The scene of the operation that tells the life of a message."""

from __future__ import annotations

from typing import Any, Final

from tests.e2e.management.scene import Scene
from tests.e2e.management.told import Told


def _is_told(_told: Told, answer: Any) -> None:
    assert answer["isWhole"]
    first, *middle, last = answer["data"]
    assert (first["what"], int(first["messageID"])) == ("arrived", 1)
    assert [one["what"] for one in middle][-2:] == ["copied", "dead"]
    assert (last["what"], last["queue"], int(last["messageID"]) > 2) == ("there", "DLQ.orders", True)
    assert answer["count"] == len(answer["data"])
    assert answer["logBegan"] > 0


TRACING: Final[dict[str, Scene]] = {
    "traceMessage": Scene(
        {"message": "1"},
        _is_told,
        # the first message of a broker goes to the dead letters, and a second one waits
        lambda told: (
            told.send("/queue/orders", "ab", persistent="true"),
            told.asked("POST", "/api/queues/orders/messages/1/dead"),
        ),
        stores=True,
    )
}
