"""What an operator may change of a queue while it is there, and what is refused, with the reason.

A change is carried out by ``retuning``, as one of broker.xml is. An operator is there and can be told, so what a reload
would hold back until a restart, or until consumers are gone, is refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from artemis_py.config.changes.queue_effects import GROUPING, deciding, held_back
from artemis_py.config.settings import QueueConfig
from artemis_py.config.tables.fields import settings_of
from artemis_py.config.tables.queue_settings import QueueSettings, known_attributes, queue_settings
from artemis_py.core.groups.rule import GroupRule
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.recipe import own_settings
from artemis_py.core.queue.retuning import declaration_of, set_ring_size, use_declaration
from artemis_py.errors import BrokerError

_ORDER: Final = "it decides the order in which the queue keeps its messages"
_ARRIVAL: Final = "it is worked out for each message when it arrives"
_WHY_FIXED: Final = {
    "durability": "it decides whether the queue is in the journal",
    **dict.fromkeys(("order", "last values", "activation"), _ORDER),
    **dict.fromkeys(("hold", "time to live", "alerts"), _ARRIVAL),
    "backlogs": "the queue would begin to limit backlogs, or end it",
    "depth": "the queue would become another kind of queue when it is full",
}
_WHY_ELSE: Final = "it decides what the queue is composed of"
_ADVICE: Final = "delete the queue and create it again, or change broker.xml and restart"
_ATTRIBUTES: Final = tuple(
    row.attribute for row in settings_of(QueueConfig).values() if row.attribute != "user"
)  # who owns a queue has no effect


class _Change(NamedTuple):
    """A queue, with its settings as they are and as they are to be."""

    queue: Queue
    old: QueueSettings
    new: QueueSettings


def _too_few_seats(change: _Change) -> str | None:
    count, seats = change.queue.distribution.taker_count, change.new.max_consumers
    return f"it has {count} consumers, more than max-consumers {seats}" if 0 <= seats < count else None


def _groups_are_out(change: _Change) -> str | None:
    queue = change.queue
    if GroupRule.of(change.old) == GroupRule.of(change.new) or queue.grouping.groups is None:
        return None
    if queue.contents.has_held:
        return "messages of its groups are with consumers; change groups when they are settled"
    return None


def _has_no_ring(change: _Change) -> str | None:
    queue = change.queue
    if queue.flow.overflow.depth is not None:
        return f"it has an overflow-policy, and no ring-size counts ({_ADVICE})"
    if change.new.ring_size >= 0 and queue.contents.behind is not None:
        return "it has barrier-expression or target-queue-depth; a ring would give up what is active"
    return None


REFUSALS: Final[Mapping[str, Callable[[_Change], str | None]]] = {
    "max_consumers": _too_few_seats,
    **dict.fromkeys((*sorted(GROUPING), "exclusive", "non_destructive"), _groups_are_out),
    "ring_size": _has_no_ring,
}
"""What an operator is refused at times, though a reload would do it, in part or later."""


def config_of(queue: Queue) -> QueueConfig:
    """What the queue would be declared with, as it is now."""
    config = declaration_of(queue)
    return config if queue.ring_size_changed is None else replace(config, ring_size=queue.ring_size_changed)


def amended(queue: Queue, values: dict[str, Any], routing_type: str | None = None) -> QueueConfig:
    """What the queue would be declared with if these attributes were changed."""
    return replace(config_of(queue), routing_type=routing_type or queue.routing_type, **values)


def amend(queue: Queue, config: QueueConfig, now_ms: int) -> set[str]:
    """Change a queue to what ``config`` says, all of it or nothing. Its routing type is not looked at. Returns the
    attributes that are different now. Raises BrokerError with everything that cannot be changed, and why.
    """
    settings, is_declared = queue.address.settings, not queue.auto_created
    change = _Change(
        queue,
        queue_settings(config_of(queue), settings, declared=is_declared),
        queue_settings(config, settings, declared=is_declared),
    )
    changed = {name for name in _ATTRIBUTES if getattr(change.old, name) != getattr(change.new, name)}
    reasons = _why_not(change, changed, own_settings(config, settings, declared=is_declared))
    if reasons:
        raise BrokerError(f"Queue {queue.name} cannot be changed: {'; '.join(dict.fromkeys(reasons))}")
    if "ring_size" in changed:
        set_ring_size(queue, change.new.ring_size)
    # The operator's ring-size is kept beside what is written: a reload of the file leaves it alone.
    written = known_attributes(dict(queue.attributes)).get("ring_size")
    use_declaration(queue, replace(config, ring_size=written), now_ms)
    return changed


def _why_not(change: _Change, changed: set[str], wanted: QueueSettings) -> list[str]:
    """The reasons against a change. What already waits for a restart is no reason against changing something else."""
    in_force = change.queue.own or change.old
    held = held_back(in_force, wanted)
    reasons = []
    for name in sorted(changed):
        if name in held:
            why = _WHY_FIXED.get(deciding(name, in_force, wanted), _WHY_ELSE)
            reasons.append(f"{name.replace('_', '-')} stays as it is, because {why} ({_ADVICE})")
        elif name in REFUSALS and (reason := REFUSALS[name](change)) is not None:
            reasons.append(reason)
    return reasons
