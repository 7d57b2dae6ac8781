"""Which attributes of a queue a running broker can change, and which belong to what the queue is composed of.

A queue is composed once (``core/queue/recipe.py``). What its composition depends on is listed here; everything else is
changed in place. An attribute that would change the composition is held back, with all others that feed the same part,
until a restart composes the queue anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Final, final

from artemis_py.config.tables.queue_settings import QueueSettings
from artemis_py.config.tables.queue_types import PRIORITY

_PAIRS_MAX: Final = 1024
_LEVELS: Final = 10
"""Those of a queue without a type: Artemis' priorities."""


@final
@dataclass(frozen=True, slots=True)
class Fixed:
    """A part that is made once: what decides it, and the attributes from which that follows."""

    name: str
    attributes: tuple[str, ...]
    decides: Callable[[QueueSettings], object]


_AMPS: Final = (
    "delivery_semantics", "fairness_model", "max_per_subscription_backlog", "max_backlog", "max_deliveries",
    "max_cancels", "barrier_expression", "target_queue_depth", "lease_period", "leasing", "expiration",
    "priority_expression", "file_backed_metadata", "non_destructive",
)  # fmt: skip
_DEPTH: Final = ("overflow_policy", "max_depth_messages", "max_depth_bytes", "file_backed_metadata")


def _order_of(own: QueueSettings) -> tuple[str, object]:
    """What the recipe makes an order of."""
    if own.priority_expression is not None:
        return "expression", own.priority_expression
    if own.sort_key is not None:
        return "header", own.sort_key
    if own.queue_type == PRIORITY:
        return "levels", own.priority_levels or _LEVELS
    return "levels", 1 if own.queue_type is not None or own.activates_in_order else _LEVELS


FIXED: Final = (
    Fixed("durability", ("durable",), lambda own: own.durable),
    Fixed(
        "order",
        (
            "queue_type", "priority_levels", "sort_key", "priority_expression", "barrier_expression",
            "target_queue_depth",
        ),
        _order_of,
    ),
    Fixed("last values", ("last_value", "last_value_key", "queue_type"), lambda own: own.last_value_key),
    Fixed(
        "activation",
        ("barrier_expression", "target_queue_depth"),
        lambda own: (own.barrier_expression, own.target_queue_depth),
    ),
    Fixed("backlogs", _AMPS, lambda own: (own.limits_backlogs, own.has_leases, own.at_most_once)),
    Fixed("fairness", _AMPS, lambda own: own.fairness),
    Fixed("hold", ("hold_on_publish",), lambda own: own.hold_on_publish),
    Fixed(
        "time to live",
        ("min_message_ttl", "max_message_ttl", "expiration"),
        lambda own: (own.min_message_ttl, own.max_message_ttl, own.expiration),
    ),
    Fixed("depth", _DEPTH, lambda own: own.policy != "NONE" and own.limits_depth),
    Fixed(
        "alerts",
        (
            "alert_threshold_message_age", "alert_threshold_message_size", "alert_threshold_depth_messages",
            "alert_threshold_depth_bytes",
        ),
        lambda own: (
            own.alert_threshold_message_age,
            any((
                own.alert_threshold_message_age, own.alert_threshold_message_size, own.alert_threshold_depth_messages,
                own.alert_threshold_depth_bytes,
            )),
        ),
    ),
    Fixed(
        "view",
        ("underlying_address", "default_publish_target"),
        lambda own: (own.underlying_address, own.default_publish_target),
    ),
    Fixed("recovery", ("recovery_point",), lambda own: own.recovery_point),
)  # fmt: skip

GROUPING: Final = frozenset(
    (
        "group_type", "group_key", "fallback_group", "group_buckets", "group_rebalance",
        "group_rebalance_pause_dispatch", "group_first_key",
    )
)  # fmt: skip
"""A queue that has groups takes another rule while no consumer holds a message. Otherwise it keeps the old one until it
forgets its groups: when it is empty and has no consumers.
"""

NEWCOMERS: Final = frozenset(
    (
        "max_consumers", "consumer_selector", "consumer_replay_period", "max_per_subscription_backlog",
        "non_destructive", "group_first_key", "exclusivity_policy",
    )
)  # fmt: skip
"""What a consumer is told when it attaches: those that are attached stay as they are."""

NAMES: Final = tuple(field.name for field in fields(QueueSettings))


@lru_cache(maxsize=_PAIRS_MAX)
def changed(old: QueueSettings, new: QueueSettings) -> frozenset[str]:
    """The attributes that differ."""
    return frozenset(name for name in NAMES if getattr(old, name) != getattr(new, name))


@lru_cache(maxsize=_PAIRS_MAX)
def held_back(old: QueueSettings, new: QueueSettings) -> frozenset[str]:
    """The attributes that differ and need a restart. Without these, the composition of ``new`` is that of ``old``."""
    differing = changed(old, new)
    held: frozenset[str] = frozenset()
    while True:
        reached = replace(new, **{name: getattr(old, name) for name in held})
        feeding = [part.attributes for part in FIXED if part.decides(old) != part.decides(reached)]
        more = (differing & frozenset(name for names in feeding for name in names)) - held
        if not more:
            return held
        held |= more


def deciding(attribute: str, old: QueueSettings, new: QueueSettings) -> str:
    """The name of the part for whose sake an attribute is held back; empty if there is none."""
    differing = [part.name for part in FIXED if attribute in part.attributes and part.decides(old) != part.decides(new)]
    return differing[0] if differing else ""


@lru_cache(maxsize=_PAIRS_MAX)
def in_force(old: QueueSettings, new: QueueSettings) -> QueueSettings:
    """What counts after a running queue was changed from ``old`` to ``new`` as far as it can be."""
    return replace(new, **{name: getattr(old, name) for name in held_back(old, new)})
