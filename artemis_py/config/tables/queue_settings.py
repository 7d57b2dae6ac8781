"""The effective attributes of one queue.

The queue's own attribute overrides the address-setting, which overrides the default. The recipe composes a queue from
these values, and ``explain`` shows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.entities import QUEUE_CONSTANTS, QUEUE_DEFAULTS, QueueConfig
from artemis_py.config.tables.fields import settings_of
from artemis_py.config.tables.queue_types import TYPE_ATTRIBUTES, said_by, type_of

_ATTRIBUTES: Final = tuple(row.attribute for row in settings_of(QueueConfig).values())
_PLAIN_ATTRIBUTES: Final = tuple(attribute for attribute in _ATTRIBUTES if attribute not in TYPE_ATTRIBUTES)
_APART: Final = ("durable", "filter", "user")
_FLOW_TO_DISK: Final = "FLOW_TO_DISK"
FILE_BACKED_DEPTH: Final = 1000
"""How many messages a queue with ``file-backed-metadata`` keeps in memory if it has no maximum depth: about as many as
it would read ahead from pages, so a queue that its consumers keep up with has none.
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """The attributes of one queue, with every default filled in. :class:`QueueConfig` gives their meaning and unit.
    Those of the queue type follow from all of them together
    (:class:`~artemis_py.config.tables.queue_types.QueueType`).
    """

    durable: bool
    filter: str | None
    user: str | None
    max_consumers: int
    purge_on_no_consumers: bool
    exclusive: bool
    non_destructive: bool
    consumers_before_dispatch: int
    delay_before_dispatch: int
    ring_size: int
    enabled: bool
    last_value: bool
    last_value_key: str | None
    group_rebalance: bool
    group_rebalance_pause_dispatch: bool
    group_buckets: int
    group_first_key: str | None
    queue_type: str | None
    priority_levels: int | None
    sort_key: str | None
    priority_expression: str | None
    group_type: str
    group_key: str | None
    fallback_group: str
    min_message_ttl: int
    max_message_ttl: int
    expiration: int
    consumer_replay_period: int | None
    consumer_selector: str | None
    hold_on_publish: bool
    barrier_expression: str | None
    target_queue_depth: int
    expiry_policy: str | None
    overflow_policy: str
    max_depth_messages: int
    max_depth_bytes: int
    flow_resume_percent: float
    exclusivity_policy: str
    max_live_consumers: int
    delivery_semantics: str | None
    fairness_model: str | None
    max_backlog: int
    max_per_subscription_backlog: int | None
    lease_period: int
    leasing: str | None
    max_deliveries: int
    max_cancels: int
    file_backed_metadata: bool
    alert_threshold_message_age: int
    alert_threshold_message_size: int
    alert_threshold_depth_messages: int
    alert_threshold_depth_bytes: int
    alert_repeat_gap: int
    underlying_address: str | None
    default_publish_target: str | None
    recovery_point: str | None
    dead_letter_address: str | None
    max_delivery_attempts: int

    @property
    def policy(self) -> str:
        """The ``overflow-policy``, or the one that follows from ``file-backed-metadata``."""
        by_itself = self.file_backed_metadata and self.overflow_policy == "NONE"
        return _FLOW_TO_DISK if by_itself else self.overflow_policy

    @property
    def depth_messages_max(self) -> int:
        """The ``max-depth-messages``, or the one that follows from ``file-backed-metadata``; -1: no limit."""
        if self.file_backed_metadata and self.policy == _FLOW_TO_DISK and not self._sets_depth:
            return FILE_BACKED_DEPTH
        return self.max_depth_messages

    @property
    def limits_depth(self) -> bool:
        """Is there a maximum depth? Without one an overflow-policy has no effect."""
        return max(self.depth_messages_max, self.max_depth_bytes) >= 0

    @property
    def _sets_depth(self) -> bool:
        return max(self.max_depth_messages, self.max_depth_bytes) >= 0

    @property
    def limits_backlogs(self) -> bool:
        """Has a consumer that asks for no backlog a backlog of one message? So it is on queues with an attribute of
        AMPS.
        """
        asked = self.delivery_semantics, self.fairness_model, self.max_per_subscription_backlog
        limited = self.max_backlog >= 0 or self.max_deliveries > 0 or self.max_cancels > 0 or self.activates_in_order
        leases = self.lease_period > 0 or self.leasing is not None
        return limited or leases or any(attribute is not None for attribute in asked) or self._has_amps_rules

    @property
    def _has_amps_rules(self) -> bool:
        """Has it an attribute of AMPS that says nothing of consumers? On a non-destructive queue, where nothing is
        shared out, these do not limit backlogs.
        """
        rules = self.expiration > 0 or self.priority_expression is not None or self.file_backed_metadata
        return rules and not self.non_destructive

    @property
    def activates_in_order(self) -> bool:
        """Do messages become active one after the other, in order of arrival? Then the queue has no other order."""
        return bool(self.barrier_expression) or self.target_queue_depth > 0

    @property
    def has_leases(self) -> bool:
        """Does the queue know who holds a message until when? So does each queue with an attribute of AMPS, unless it
        sends messages at most once.
        """
        return self.limits_backlogs and not self.at_most_once

    @property
    def at_most_once(self) -> bool:
        """Does a message leave the queue when it is sent, whether or not its consumer acknowledges it?"""
        return self.delivery_semantics == "at-most-once"

    @property
    def fairness(self) -> str:
        """The ``fairness-model``, or what it is by default: proportional on queues with an attribute of AMPS, unless
        messages are sent at most once.
        """
        by_share = self.limits_backlogs and not self.at_most_once
        return self.fairness_model or ("proportional" if by_share else "round-robin")


def source_of(attribute: str, *, declared: bool) -> str | None:
    """Return the address-setting that applies if a queue does not set ``attribute``, or None.

    A declared queue does not use ``default-purge-on-no-consumers`` (as in Artemis).
    """
    if attribute == "purge_on_no_consumers" and not declared:
        return "default_purge_on_no_consumers"
    return QUEUE_DEFAULTS.get(attribute)


def queue_settings(config: QueueConfig, settings: AddressSettings, *, declared: bool = True) -> QueueSettings:
    """Return the effective settings of a queue. ``settings`` are those of its address; ``declared`` means not
    auto-created.
    """
    chosen = type_of(said_by(config), said_by(settings, default=True))
    values: dict[str, Any] = {
        "queue_type": chosen.name,
        "priority_levels": chosen.priority_levels,
        "sort_key": chosen.sort_key,
        "priority_expression": chosen.priority_expression,
        "last_value": chosen.last_value_key is not None,
        "last_value_key": chosen.last_value_key,
    }
    for attribute in _PLAIN_ATTRIBUTES:
        value = getattr(config, attribute)
        if value is None:
            source = source_of(attribute, declared=declared)
            value = getattr(settings, source) if source is not None else QUEUE_CONSTANTS.get(attribute)
        values[attribute] = value
    return QueueSettings(**values)


def written_attributes(config: QueueConfig) -> dict[str, Any]:
    """Return the queue's own attributes except name, address, filter and durability: what a restart needs to recreate
    the queue if the file no longer declares it.
    """
    values = {attribute: getattr(config, attribute) for attribute in _ATTRIBUTES}
    return {attribute: value for attribute, value in values.items() if value is not None and attribute not in _APART}


def known_attributes(written: dict[str, Any]) -> dict[str, Any]:
    """Return those of :func:`written_attributes` that this version knows."""
    return {attribute: value for attribute, value in written.items() if attribute in _ATTRIBUTES}
