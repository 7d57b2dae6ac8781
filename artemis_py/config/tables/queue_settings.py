"""The attributes of one queue: the value of each that counts, and what a change of it does to a queue that runs.

The queue's own attribute overrides the address-setting, which overrides the default. The recipe composes a queue from
these values, and ``explain`` shows them. What a queue may not have together is in
:mod:`artemis_py.config.tables.queue_conflicts`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Final, final

from artemis_py.config.tables.address_settings import NO_GROUPS, AddressSettings
from artemis_py.config.tables.declarations import QUEUE_CONSTANTS, QUEUE_DEFAULTS, QueueConfig
from artemis_py.config.tables.fields import settings_of
from artemis_py.config.tables.queue_types import LEVELS_DEFAULT, PRIORITY, STANDARD, TYPE_ATTRIBUTES, said_by, type_of
from artemis_py.units import parse_moment

_ATTRIBUTES: Final = tuple(row.attribute for row in settings_of(QueueConfig).values())
_PLAIN_ATTRIBUTES: Final = tuple(attribute for attribute in _ATTRIBUTES if attribute not in TYPE_ATTRIBUTES)
_APART: Final = ("durable", "filter", "user")
_FLOW_TO_DISK: Final = "FLOW_TO_DISK"
FILE_BACKED_DEPTH: Final = 1000
"""How many messages a queue with ``file-backed-metadata`` keeps in memory if it has no maximum depth: about as many as
it would read ahead from pages, so a queue that its consumers keep up with has none.
"""

COMPOSED_OF_IT: Final = "it decides what the queue is composed of"
_ORDER: Final = "it decides the order in which the queue keeps its messages"
_ARRIVAL: Final = "it is worked out for each message when it arrives"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What attributes are for. A queue makes a part once if some of its settings decide about it (``decides``): a
    change of those waits for a restart, with all other changes to the part. ``why`` tells that to operators. Any other
    part takes a change while the queue runs (``core/queue/attributes.py``).
    """

    name: str
    decides: tuple[str, ...] = ()
    why: str = COMPOSED_OF_IT


DURABILITY: Final = Part("durability", ("durable",), "it decides whether the queue is in the journal")
ORDER: Final = Part("order", ("priority_expression", "sort_key", "levels"), _ORDER)
LAST_VALUES: Final = Part("last values", ("last_value_key",), _ORDER)
ACTIVATION: Final = Part("activation", ("barrier_expression", "target_queue_depth"), _ORDER)
BACKLOGS: Final = Part(
    "backlogs",
    ("limits_backlogs", "has_leases", "at_most_once"),
    "the queue would begin to limit backlogs, or end it",
)
FAIRNESS: Final = Part("fairness", ("fairness",))
HOLD: Final = Part("hold", ("hold_on_publish",), _ARRIVAL)
LIFETIME: Final = Part("time to live", ("min_message_ttl", "max_message_ttl", "expiration"), _ARRIVAL)
DEPTH: Final = Part("depth", ("enforces_depth",), "the queue would become another kind of queue when it is full")
ALERTS: Final = Part("alerts", ("alert_threshold_message_age", "has_alerts"), _ARRIVAL)
VIEW: Final = Part("view", ("underlying_address", "default_publish_target"))
RECOVERY: Final = Part("recovery", ("recovery_point",))

SWITCHES: Final = Part("switches")
CONSUMERS: Final = Part("consumers")
EXCLUSIVITY: Final = Part("exclusivity")
GATE: Final = Part("gate")
DISTRIBUTION: Final = Part("distribution")
GROUPS: Final = Part("groups")
"""A queue that has groups takes another rule while no consumer holds a message. Otherwise it keeps the old one until it
forgets its groups: when it is empty and has no consumers.
"""
LEASES: Final = Part("leases")
OVERFLOW: Final = Part("overflow")
THRESHOLDS: Final = Part("thresholds")
DEFAULTS: Final = Part("defaults of consumers")
ENDS: Final = Part("how messages end")

_AMPS: Final = (BACKLOGS, FAIRNESS)


def _changes(*parts: Part, newcomers: bool = False) -> Any:
    """An attribute for these parts. ``newcomers``: it applies to a consumer that attaches; those that are attached
    stay as they are.
    """
    return field(metadata={"parts": parts, "newcomers": newcomers})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """The attributes of one queue, with every default filled in, each with the parts of the queue that a change is for.
    :class:`QueueConfig` gives their meaning and unit. Those of the queue type follow from all of them together
    (:class:`~artemis_py.config.tables.queue_types.QueueType`).
    """

    durable: bool = _changes(DURABILITY)
    filter: str | None
    user: str | None
    max_consumers: int = _changes(CONSUMERS, newcomers=True)
    purge_on_no_consumers: bool = _changes(SWITCHES)
    exclusive: bool = _changes(DISTRIBUTION, GROUPS)
    non_destructive: bool = _changes(*_AMPS, SWITCHES, GROUPS, newcomers=True)
    consumers_before_dispatch: int = _changes(GATE)
    delay_before_dispatch: int = _changes(GATE)
    ring_size: int = _changes(OVERFLOW)
    enabled: bool = _changes(SWITCHES)
    last_value: bool = _changes(LAST_VALUES)
    last_value_key: str | None = _changes(LAST_VALUES)
    group_rebalance: bool = _changes(GROUPS)
    group_rebalance_pause_dispatch: bool = _changes(GROUPS)
    group_buckets: int = _changes(GROUPS)
    group_first_key: str | None = _changes(GROUPS)
    queue_type: str | None = _changes(ORDER, LAST_VALUES)
    priority_levels: int | None = _changes(ORDER)
    sort_key: str | None = _changes(ORDER)
    priority_expression: str | None = _changes(ORDER, *_AMPS)
    group_type: str = _changes(GROUPS)
    group_key: str | None = _changes(GROUPS)
    fallback_group: str = _changes(GROUPS)
    min_message_ttl: int = _changes(LIFETIME)
    max_message_ttl: int = _changes(LIFETIME)
    expiration: int = _changes(*_AMPS, LIFETIME)
    consumer_replay_period: int | None = _changes(DEFAULTS, newcomers=True)
    consumer_selector: str | None = _changes(DEFAULTS, newcomers=True)
    hold_on_publish: bool = _changes(HOLD)
    barrier_expression: str | None = _changes(ORDER, ACTIVATION, *_AMPS)
    target_queue_depth: int = _changes(ORDER, ACTIVATION, *_AMPS)
    expiry_policy: str | None = _changes(ENDS)
    overflow_policy: str = _changes(DEPTH, OVERFLOW)
    max_depth_messages: int = _changes(DEPTH, OVERFLOW)
    max_depth_bytes: int = _changes(DEPTH, OVERFLOW)
    flow_resume_percent: float = _changes(OVERFLOW)
    exclusivity_policy: str = _changes(EXCLUSIVITY, newcomers=True)
    max_live_consumers: int = _changes(DISTRIBUTION)
    delivery_semantics: str | None = _changes(*_AMPS)
    fairness_model: str | None = _changes(*_AMPS)
    max_backlog: int = _changes(*_AMPS, GATE)
    max_per_subscription_backlog: int | None = _changes(*_AMPS, newcomers=True)
    lease_period: int = _changes(*_AMPS, LEASES)
    leasing: str | None = _changes(*_AMPS, LEASES)
    max_deliveries: int = _changes(*_AMPS, LEASES)
    max_cancels: int = _changes(*_AMPS, LEASES)
    file_backed_metadata: bool = _changes(*_AMPS, DEPTH, OVERFLOW)
    alert_threshold_message_age: int = _changes(ALERTS)
    alert_threshold_message_size: int = _changes(ALERTS, THRESHOLDS)
    alert_threshold_depth_messages: int = _changes(ALERTS, THRESHOLDS)
    alert_threshold_depth_bytes: int = _changes(ALERTS, THRESHOLDS)
    alert_repeat_gap: int = _changes(THRESHOLDS)
    underlying_address: str | None = _changes(VIEW)
    default_publish_target: str | None = _changes(VIEW)
    recovery_point: str | None = _changes(RECOVERY)
    dead_letter_address: str | None = _changes(ENDS)
    max_delivery_attempts: int = _changes(ENDS)

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
    def enforces_depth(self) -> bool:
        """Is there a maximum depth, and something that happens at it?"""
        return self.policy != "NONE" and self.limits_depth

    @property
    def _sets_depth(self) -> bool:
        return max(self.max_depth_messages, self.max_depth_bytes) >= 0

    @property
    def limits_backlogs(self) -> bool:
        """Has a consumer that asks for no backlog a backlog of one message? So it is on queues with an attribute of
        AMPS.
        """
        return self.shares_out or self._has_amps_rules

    @property
    def shares_out(self) -> bool:
        """Has it an attribute of AMPS that says how consumers share its messages?"""
        asked = self.delivery_semantics, self.fairness_model, self.max_per_subscription_backlog
        limited = self.max_backlog >= 0 or self.max_deliveries > 0 or self.max_cancels > 0 or self.activates_in_order
        leases = self.lease_period > 0 or self.leasing is not None
        return limited or leases or any(attribute is not None for attribute in asked)

    @property
    def _has_amps_rules(self) -> bool:
        """Has it an attribute of AMPS that says nothing of consumers? On a non-destructive queue, where nothing is
        shared out, these do not limit backlogs.
        """
        rules = self.expiration > 0 or self.priority_expression is not None or self.file_backed_metadata
        return rules and not self.non_destructive

    @property
    def levels(self) -> int:
        """How many levels of priority messages have where nothing else orders them; 1: only the arrival counts. So it
        does where messages become active in its order.
        """
        if self.queue_type == PRIORITY:
            return self.priority_levels or LEVELS_DEFAULT
        return 1 if self.queue_type is not None or self.activates_in_order else LEVELS_DEFAULT

    @property
    def has_alerts(self) -> bool:
        """Has it a threshold?"""
        return any((
            self.alert_threshold_message_age, self.alert_threshold_message_size, self.alert_threshold_depth_messages,
            self.alert_threshold_depth_bytes,
        ))  # fmt: skip

    @property
    def why_no_groups(self) -> str:
        """Why its messages are not grouped, as the rest of a sentence about the queue; empty: they are."""
        if self.exclusive:
            return "is exclusive, so one consumer gets every group"
        if self.non_destructive:
            return "is non-destructive, so every consumer gets every message"
        if self.group_type == NO_GROUPS:
            return "has group-type NONE"
        return "has group-buckets 0, which switches groups off" if self.group_buckets == 0 else ""

    @property
    def has_an_order(self) -> bool:
        """Does anything but the arrival decide about the order of messages, or about which of them stay?"""
        return self.queue_type not in (None, STANDARD) or self.last_value or self.priority_expression is not None

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
    def begins_in_the_past(self) -> bool:
        """Does its ``recovery-point`` ask for messages of the past? An invalid one does not."""
        try:
            return self.recovery_point is not None and recovery_point_of(self.recovery_point).is_past
        except ValueError:
            return False

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


_ROWS: Final = {row.name: row.metadata for row in fields(QueueSettings)}
NAMES: Final = tuple(_ROWS)


def parts_of(attribute: str) -> tuple[Part, ...]:
    """The parts of a queue that a change of the attribute is for."""
    parts: tuple[Part, ...] = _ROWS[attribute].get("parts", ())
    return parts


def is_for_newcomers(attribute: str) -> bool:
    """Do only consumers that attach from now on see a change of it?"""
    return bool(_ROWS[attribute].get("newcomers"))


def always_waits(attribute: str) -> bool:
    """Does every change of it wait for a restart?"""
    return any(attribute in part.decides for part in parts_of(attribute))


COMPOSED: Final = tuple(
    part for part in dict.fromkeys(part for name in NAMES for part in parts_of(name)) if part.decides
)
"""The parts that a queue makes once."""


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


# ---- recovery-point (AMPS, "RecoveryPoint"): from where in the log a new queue begins ------------

EPOCH: Final = "epoch"
NOW: Final = "now"
CREATION: Final = "creation"
RECOVERY_POINTS: Final = "epoch, now, creation, the bookmark of a message, or a time in UTC as 20260131T235959Z"
_DIGITS_MAX: Final = 19


@final
@dataclass(frozen=True, slots=True)
class RecoveryPoint:
    """A place in the log. ``word`` is one of the three, or empty; then the queue begins behind the message ``lsn``, or
    with what was published at ``from_ms`` (epoch milliseconds) or later. -1: not meant.
    """

    word: str = ""
    lsn: int = -1
    from_ms: int = -1

    @property
    def is_past(self) -> bool:
        """May messages of the past be meant?"""
        return self.word not in (NOW, CREATION)


def recovery_point_of(text: str) -> RecoveryPoint:
    """Read the attribute. Raises ValueError."""
    mark = text.strip()
    if mark.lower() in (EPOCH, NOW, CREATION):
        return RecoveryPoint(mark.lower())
    if mark.isascii() and mark.isdigit() and len(mark) <= _DIGITS_MAX:
        return RecoveryPoint(lsn=int(mark))
    return RecoveryPoint(from_ms=parse_moment(mark))


def default_point(*, is_view: bool, has_past: bool) -> str:
    """Where a new queue begins that says nothing: with the whole log if it is a view and the log is retained, as in
    AMPS; otherwise with what comes, as in Artemis.
    """
    return EPOCH if is_view and has_past else NOW
