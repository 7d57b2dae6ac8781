"""Scenes of the operations that take messages out to a file, and bring them in."""

from __future__ import annotations

import json
from typing import Any, Final

from tests.e2e.management.scene import Exactly, Scene, Shows
from tests.e2e.management.told import Told


def _are_lines(_told: Told, answer: bytes) -> None:
    first, second, told = [json.loads(line) for line in answer.splitlines()]
    assert (first["message"]["text"], second["message"]["text"]) == ("a", "b")
    assert ["region", "eu"] in first["message"]["headers"]
    before, after = told["next"].pop("returned")
    assert (told, before) == ({"next": {"after": None}}, after)


def _are_destinations(_told: Told, answer: bytes) -> None:
    values: list[Any] = [json.loads(line) for line in answer.splitlines()]
    assert {"orders", "jobs"} <= {one["address"]["name"] for one in values if "address" in one}
    (orders,) = [one["queue"] for one in values if "queue" in one and one["queue"]["name"] == "orders"]
    assert (orders["address"], orders["routing_type"]) == ("orders", "ANYCAST")


_LINES: Final = (
    '{"export":{"format":1,"id":"e"}}\n'
    '{"message":{"id":1,"address":"orders","queues":["orders"],"headers":[["color","red"]],"text":"a"}}\n'
    '{"message":{"id":2,"address":"orders","queues":["orders","none"],"headers":[],"base64":"AAE="}}\n'
)


_PLACED: Final = {
    "placed": 2, "known": 0, "replaced": 0, "transient": 0, "refused": 0, "reason": None, "isFull": False,
    "messageCount": 2, "givesWay": False,
}  # fmt: skip
_REFUSED: Final = {**_PLACED, "placed": 0, "refused": 1, "reason": "there is no queue none", "messageCount": 0}

EXPORTING: Final[dict[str, Scene]] = {
    "queue.exportMessages": Scene(
        {"queue": "orders"}, _are_lines, lambda told: told.send("/queue/orders", "ab", persistent="true", region="eu")
    ),
    "exportDestinations": Scene({}, _are_destinations),
    "importMessages": Scene(
        {"lines": _LINES},
        [
            Exactly({"messages": 2, "came": 2, "queues": {"orders": _PLACED, "none": _REFUSED}}),
            Shows("/api/queues/orders", {"messageCount": 2}),
        ],
    ),
}
