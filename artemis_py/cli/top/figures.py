"""The figures of queues at one moment, and rates from two moments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

FIELDS: Final = (
    "name", "address", "messageCount", "consumerCount", "deliveringCount", "messagesAdded", "messagesAcked", "paused",
)  # fmt: skip
"""What is asked for of each queue."""


@final
@dataclass(frozen=True, slots=True)
class Figures:
    """One queue. Rates are messages a second."""

    name: str
    address: str
    depth: int
    growth: float
    rate_in: float
    rate_out: float
    consumers: int
    delivering: int
    paused: bool


@final
@dataclass(frozen=True, slots=True)
class Order:
    """A way to sort: its key, its heading, the broker's field that is nearest to it, and where the greatest stand."""

    key: str
    heading: str
    field: str
    is_number: bool = True


ORDERS: Final = (
    Order("d", "depth", "messageCount"),
    Order("i", "in/s", "messagesAdded"),
    Order("o", "out/s", "messagesAcked"),
    Order("g", "growth/s", "messageCount"),
    Order("c", "consumers", "consumerCount"),
    Order("u", "unacked", "deliveringCount"),
    Order("n", "queue", "name", is_number=False),
)
_ATTRIBUTES: Final = {
    "d": "depth", "i": "rate_in", "o": "rate_out", "g": "growth", "c": "consumers", "u": "delivering", "n": "name",
}  # fmt: skip


def figures_of(
    now: Iterable[Mapping[str, Any]], before: Mapping[str, Mapping[str, Any]], passed_s: float
) -> list[Figures]:
    """The figures of the rows of a list; rates since ``before``, the rows of ``passed_s`` ago by name."""
    return [_figures(row, before.get(row["name"]), passed_s) for row in now]


def _figures(row: Mapping[str, Any], before: Mapping[str, Any] | None, passed_s: float) -> Figures:
    def rate(field: str) -> float:
        return 0.0 if before is None or passed_s <= 0 else (row[field] - before[field]) / passed_s

    return Figures(
        name=row["name"],
        address=row["address"],
        depth=row["messageCount"],
        growth=rate("messageCount"),
        rate_in=max(rate("messagesAdded"), 0.0),
        rate_out=max(rate("messagesAcked"), 0.0),
        consumers=row["consumerCount"],
        delivering=row["deliveringCount"],
        paused=row["paused"],
    )


def in_order(figures: Sequence[Figures], order: Order, *, is_reversed: bool) -> list[Figures]:
    """The greatest first, or names from A to Z; ``is_reversed``: the other way. Equal ones by name."""
    by_name = sorted(figures, key=lambda one: one.name)
    attribute = _ATTRIBUTES[order.key]
    return sorted(by_name, key=lambda one: getattr(one, attribute), reverse=order.is_number != is_reversed)
