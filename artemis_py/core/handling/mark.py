"""How far a look at a queue has come, so that another look goes on there. It holds nothing of the queue."""

from __future__ import annotations

from typing import Any, NamedTuple

from artemis_py.core.order.order import Point


class Mark(NamedTuple):
    """The place behind the message that was shown last."""

    last_id: int
    """Messages with higher numbers came after the beginning."""
    stage: int
    """What it was looking at; see ``Round``."""
    at: tuple[int, ...]
    """How far it was in that, as the stage tells it."""
    order: Point
    """How far it was among ready messages; empty: not begun."""
    limit: int
    """From this sequence on, ready messages come from pages, and have their turn there."""
    passed: tuple[int, int]
    """A stream of pages, and the first place there that was not passed, where sequences do not tell the places."""

    @staticmethod
    def of(values: list[Any]) -> Mark:
        """The mark that these values (of ``list(mark)``, through JSON) mean."""
        last_id, stage, at, order, limit, passed = values
        return Mark(last_id, stage, tuple(at), tuple(order), limit, (passed[0], passed[1]))
