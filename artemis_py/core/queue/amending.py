"""What may be changed of a queue while it is there, and what follows for its parts.

Most attributes decide what a queue is composed of, or what is worked out for each message when it arrives. These stay
as they are until the queue is made again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from artemis_py.config.settings import QueueConfig
from artemis_py.config.tables.fields import settings_of
from artemis_py.config.tables.queue_settings import (
    QueueSettings,
    known_attributes,
    queue_settings,
    written_attributes,
)
from artemis_py.core.groups.rule import GroupRule
from artemis_py.core.queue.overflow import Ring, Unbounded
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.recipe import (
    consumer_defaults_for,
    live_max_of,
    overflow_by_policy,
    own_settings,
    redelivery_for,
)
from artemis_py.core.reference.rules import MessageRules
from artemis_py.errors import BrokerError
from artemis_py.selector import compile_selector

_ORDER: Final = "it decides the order in which the queue keeps its messages"
_ARRIVAL: Final = "it is worked out for each message when it arrives"
_WHY_FIXED: Final = {
    "durable": "it decides whether the queue is in the journal",
    **dict.fromkeys(
        ("last_value", "last_value_key", "queue_type", "priority_levels", "sort_key", "priority_expression"), _ORDER
    ),
    **dict.fromkeys(("barrier_expression", "target_queue_depth", "hold_on_publish"), _ORDER),
    **dict.fromkeys(("min_message_ttl", "max_message_ttl", "expiration"), _ARRIVAL),
    **dict.fromkeys(
        (
            "alert_threshold_message_age", "alert_threshold_message_size", "alert_threshold_depth_messages",
            "alert_threshold_depth_bytes", "alert_repeat_gap",
        ),
        _ARRIVAL,
    ),
}  # fmt: skip
_WHY_ELSE: Final = "it decides what the queue is composed of"
_ADVICE: Final = "delete the queue and create it again, or change broker.xml and restart"
_GROUPS: Final = (
    "group_rebalance", "group_rebalance_pause_dispatch", "group_buckets", "group_first_key", "group_type", "group_key",
    "fallback_group",
)  # fmt: skip
_DEPTHS: Final = ("max_depth_messages", "max_depth_bytes", "flow_resume_percent")
_NO_EFFECT: Final = ("user",)


class _Change(NamedTuple):
    """A queue, with its settings as they are and as they are to be."""

    queue: Queue
    config: QueueConfig
    old: QueueSettings
    new: QueueSettings


# ---- why not -----------------------------------------------------------------------------------------


def _too_few_seats(change: _Change) -> str | None:
    count, seats = change.queue.distribution.taker_count, change.new.max_consumers
    return f"it has {count} consumers, more than max-consumers {seats}" if 0 <= seats < count else None


def _is_read(change: _Change) -> str | None:
    queue = change.queue
    if queue.consumer_count or queue.contents.has_held:
        return "non-destructive says how consumers read, and it has some; close their connections first"
    return None


def _groups_are_out(change: _Change) -> str | None:
    queue = change.queue
    if GroupRule.of(change.old) == GroupRule.of(change.new) or queue.grouping.groups is None:
        return None
    if queue.contents.has_held:
        return "messages of its groups are with consumers; change groups when they are settled"
    return None


def _is_other_overflow(change: _Change) -> str | None:
    now, then = change.queue.flow.overflow, overflow_by_policy(change.new)
    if type(now) is type(then) or (isinstance(then, Ring | Unbounded) and isinstance(now, Ring | Unbounded)):
        return None
    return f"it would become another kind of queue when it is full ({_ADVICE})"


def _ring_of_inactive(change: _Change) -> str | None:
    if change.new.ring_size >= 0 and change.queue.contents.behind is not None:
        return "it has barrier-expression or target-queue-depth; a ring would give up what is active"
    return _is_other_overflow(change)


def _is_a_view(change: _Change) -> str | None:
    queue = change.queue
    if queue.view is not None or queue.filling is not None:
        return f"its filter has chosen what it has from the log ({_ADVICE})"
    return None


def _begins_to_limit(change: _Change) -> str | None:
    old, new = change.old, change.new
    if old.limits_backlogs != new.limits_backlogs or (old.max_backlog >= 0) != (new.max_backlog >= 0):
        return f"it would begin to limit backlogs, or end it ({_ADVICE})"
    return None


def _never(_change: _Change) -> str | None:
    return None


# ---- what follows ------------------------------------------------------------------------------------


def _set_seats(change: _Change) -> None:
    change.queue.seats.consumers_max = change.new.max_consumers


def _set_flags(change: _Change) -> None:
    change.queue.purge_on_no_consumers = change.new.purge_on_no_consumers
    change.queue.enabled = change.new.enabled


def _set_live(change: _Change) -> None:
    queue, new = change.queue, change.new
    queue.distribution.set_live_max(live_max_of(new))
    queue.distribution.wake_all()
    _set_groups(change)
    queue.parts.note_ready()


def _set_non_destructive(change: _Change) -> None:
    queue = change.queue
    queue.non_destructive = queue.seats.shows_returns = change.new.non_destructive
    _set_groups(change)


def _set_groups(change: _Change) -> None:
    queue = change.queue
    rule = GroupRule.of(change.new)
    if rule != queue.grouping.rule and not queue.temporary:
        queue.grouping.regroup(rule)
        queue.parts.aftermath.use_room()


def _set_gate(change: _Change) -> None:
    queue, new = change.queue, change.new
    queue.gate.require(new.consumers_before_dispatch, new.delay_before_dispatch, queue.distribution.taker_count)
    queue.parts.note_ready()


def _set_filter(change: _Change) -> None:
    text = change.new.filter
    change.queue.selector = compile_selector(text) if text else None


def _set_overflow(change: _Change) -> None:
    queue = change.queue
    queue.flow.overflow = overflow_by_policy(change.new)
    queue.ring_size_changed = None if change.config.ring_size is None else change.new.ring_size
    queue.flow.resume()
    queue.parts.aftermath.use_room()


def _set_ends(change: _Change) -> None:
    queue, new = change.queue, change.new
    rules = queue.reference.rules
    queue.reference.rules = MessageRules(
        lifetime=rules.lifetime,
        holds=rules.holds,
        expiry_policy=new.expiry_policy,
        dead_letter_address=change.config.dead_letter_address,
        alerts=rules.alerts,
    )
    queue.parts.redelivery = redelivery_for(queue.address.settings, new.max_delivery_attempts)


def _set_defaults(change: _Change) -> None:
    queue, new = change.queue, change.new
    queue.consumer_defaults = consumer_defaults_for(new)
    if new.max_backlog >= 0:
        queue.gate.backlog_max = new.max_backlog
        queue.parts.note_ready()


class _Live(NamedTuple):
    """A row: when an attribute may not be changed, and what follows when it is."""

    refuses: Callable[[_Change], str | None]
    apply: Callable[[_Change], None]


_LIVE: Final[dict[str, _Live]] = {
    "filter": _Live(_is_a_view, _set_filter),
    "max_consumers": _Live(_too_few_seats, _set_seats),
    "purge_on_no_consumers": _Live(_never, _set_flags),
    "enabled": _Live(_never, _set_flags),
    "exclusive": _Live(_groups_are_out, _set_live),
    "max_live_consumers": _Live(_never, _set_live),
    "non_destructive": _Live(_is_read, _set_non_destructive),
    **dict.fromkeys(_GROUPS, _Live(_groups_are_out, _set_groups)),
    "consumers_before_dispatch": _Live(_never, _set_gate),
    "delay_before_dispatch": _Live(_never, _set_gate),
    "ring_size": _Live(_ring_of_inactive, _set_overflow),
    **dict.fromkeys(_DEPTHS, _Live(_is_other_overflow, _set_overflow)),
    "expiry_policy": _Live(_never, _set_ends),
    "dead_letter_address": _Live(_never, _set_ends),
    "max_delivery_attempts": _Live(_never, _set_ends),
    "consumer_selector": _Live(_begins_to_limit, _set_defaults),
    "consumer_replay_period": _Live(_begins_to_limit, _set_defaults),
    "max_backlog": _Live(_begins_to_limit, _set_defaults),
    "max_per_subscription_backlog": _Live(_begins_to_limit, _set_defaults),
}
"""What a queue takes up while it is there."""
CHANGEABLE: Final = frozenset(_LIVE)
"""The attributes that may be changed, each in its limits."""


def config_of(queue: Queue) -> QueueConfig:
    """What the queue would be declared with, as it is now."""
    written = known_attributes(dict(queue.attributes))
    if queue.ring_size_changed is not None:
        written["ring_size"] = queue.ring_size_changed
    return QueueConfig(
        name=queue.name,
        address=queue.address.name,
        routing_type=queue.routing_type,
        durable=queue.durable,
        filter=None if queue.selector is None else queue.selector.text,
        **written,
    )


def amended(queue: Queue, values: dict[str, Any], routing_type: str | None = None) -> QueueConfig:
    """What the queue would be declared with if these attributes were changed."""
    return replace(config_of(queue), routing_type=routing_type or queue.routing_type, **values)


def amend(queue: Queue, config: QueueConfig) -> set[str]:
    """Change a queue to what ``config`` says, all of it or nothing. Its routing type is not looked at. Returns the
    attributes that are different now. Raises BrokerError with everything that cannot be changed, and why.
    """
    settings, is_declared = queue.address.settings, not queue.auto_created
    before = config_of(queue)
    change = _Change(
        queue,
        config,
        queue_settings(before, settings, declared=is_declared),
        queue_settings(config, settings, declared=is_declared),
    )
    changed = {
        row.attribute
        for row in settings_of(QueueConfig).values()
        if getattr(change.old, row.attribute) != getattr(change.new, row.attribute) and row.attribute not in _NO_EFFECT
    }
    reasons = [reason for attribute in sorted(changed) if (reason := _why_not(attribute, change)) is not None]
    if reasons:
        raise BrokerError(f"Queue {queue.name} cannot be changed: {'; '.join(dict.fromkeys(reasons))}")
    queue.attributes = written_attributes(config)
    for apply in dict.fromkeys(_LIVE[attribute].apply for attribute in sorted(changed)):
        apply(change)
    queue.own = own_settings(config, settings, declared=is_declared)
    return changed


def _why_not(attribute: str, change: _Change) -> str | None:
    row = _LIVE.get(attribute)
    if row is None:
        why = _WHY_FIXED.get(attribute, _WHY_ELSE)
        return f"{attribute.replace('_', '-')} stays as it is, because {why} ({_ADVICE})"
    return row.refuses(change)
