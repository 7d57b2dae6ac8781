"""The type of a queue: what the queue and its address-setting say about it, and when they contradict themselves.

A queue that names a type or one of a type's attributes has that type. If it names none, the address-setting decides in
the same way; if that names none either, it is Artemis' plain queue. Attributes of the type that the queue omits come
from the address-setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

STANDARD: Final = "standard"
PRIORITY: Final = "priority"
SORTED: Final = "sorted"
LAST_VALUE: Final = "last-value"

QUEUE_TYPES: Final = (STANDARD, PRIORITY, SORTED, LAST_VALUE, "lvq")
"""The values of ``queue-type``; the last one is Qpid's name for ``last-value``."""
BY_EXPRESSION: Final = "priority-expression"
"""The type of a queue that is ordered by an expression. ``queue-type`` has no word for it."""

ARTEMIS_KEY: Final = "_AMQ_LVQ_NAME"
QPID_KEY: Final = "qpid.LVQ_key"
LEVELS_DEFAULT: Final = 10
"""Also those of a queue without a type: Artemis' priorities."""

# Each attribute that says something of the type, with the one of an address-setting that says it for all queues.
TYPE_ATTRIBUTES: Final = {
    "queue_type": "default_queue_type",
    "priority_levels": "default_priority_levels",
    "sort_key": "default_sort_key",
    "priority_expression": "default_priority_expression",
    "last_value": "default_last_value_queue",
    "last_value_key": "default_last_value_key",
}
_TYPE_OF: Final = {
    "priority_levels": PRIORITY,
    "sort_key": SORTED,
    "priority_expression": BY_EXPRESSION,
    "last_value": LAST_VALUE,
    "last_value_key": LAST_VALUE,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueType:
    """The type of a queue. ``name`` is None for Artemis' order by all ten priorities, and for the order by an
    expression. A last-value queue may have Artemis' order or arrival order (Qpid, with a name).
    """

    name: str | None = None
    priority_levels: int | None = None
    sort_key: str | None = None
    priority_expression: str | None = None
    last_value_key: str | None = None


def said_by(holder: object, *, default: bool = False) -> dict[str, Any]:
    """What a queue (or, with ``default``, an address-setting) says about the type: queue attributes to values."""
    values = {name: getattr(holder, other if default else name) for name, other in TYPE_ATTRIBUTES.items()}
    if default and not values["last_value"]:
        del values["last_value"]  # false is what an address-setting says when it says nothing
    return what_is_said(values)


def what_is_said(values: Mapping[str, Any]) -> dict[str, Any]:
    """The queue attributes that say something about the type."""
    return {name: values[name] for name in TYPE_ATTRIBUTES if values.get(name) not in (None, "")}


def types_meant(said: Mapping[str, Any]) -> dict[str, str]:
    """The types that attributes other than ``queue-type`` ask for, each with the attribute that does."""
    meant: dict[str, str] = {}
    for attribute, value in said.items():
        if attribute in _TYPE_OF and value is not False:
            meant.setdefault(_TYPE_OF[attribute], attribute)
    return meant


def named_type(said: Mapping[str, Any]) -> str | None:
    """What ``queue-type`` says."""
    word = said.get("queue_type")
    return LAST_VALUE if word == "lvq" else word


def contradiction(said: Mapping[str, Any]) -> tuple[str, str] | None:
    """Two attributes at one place that ask for different types, or None."""
    meant = types_meant(said)
    name = named_type(said)
    if said.get("last_value") is False and "last_value_key" in said:
        return "last_value", "last_value_key"
    if name is not None:
        others = [attribute for type_name, attribute in meant.items() if type_name != name]
        return ("queue_type", others[0]) if others else None
    first, *more = [*meant.values(), ""]
    return (first, more[0]) if len(meant) > 1 else None


def type_of(own: Mapping[str, Any], default: Mapping[str, Any]) -> QueueType:
    """The type that follows from what the queue and its address-setting say. ``sort_key`` is None if neither names the
    key of a sorted queue.
    """
    for said in (own, default):
        name = named_type(said)
        meant = set(types_meant(said))
        if own.get("last_value") is False:
            meant.discard(LAST_VALUE)
        if name is not None or meant:
            kind = name or min(meant)
            return _composed(kind if kind == named_type(default) else name, kind, own, default)
    return QueueType()


def _composed(name: str | None, kind: str, own: Mapping[str, Any], default: Mapping[str, Any]) -> QueueType:
    both = {**default, **own}
    if kind == PRIORITY:
        return QueueType(name=PRIORITY, priority_levels=both.get("priority_levels", LEVELS_DEFAULT))
    if kind == SORTED:
        return QueueType(name=SORTED, sort_key=both.get("sort_key"))
    if kind == BY_EXPRESSION:
        return QueueType(priority_expression=both["priority_expression"])
    if kind == STANDARD:
        return QueueType(name=STANDARD)
    usual_key = QPID_KEY if name == LAST_VALUE and not both.get("last_value") else ARTEMIS_KEY
    return QueueType(name=name, last_value_key=both.get("last_value_key", usual_key))
