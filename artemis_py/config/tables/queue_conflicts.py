"""What a queue may not have together: one table, for whatever says something of a queue.

``check`` and a start refuse it in a file, operators are refused it, and a reload holds a change back that would lead to
it before a restart. Queue types that exclude each other are in :mod:`artemis_py.config.tables.queue_types`. All other
attributes work together; ``tests/queues/test_combinations.py`` tries every pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from artemis_py.config.tables.address_settings import NO_GROUPS, SHARED_GROUPS, STICKY_GROUPS
from artemis_py.config.tables.queue_settings import QueueSettings
from artemis_py.config.tables.queue_types import TYPE_ATTRIBUTES


@final
@dataclass(frozen=True, slots=True)
class Conflict:
    """``attributes`` are all those of the queue that take part, ``applies`` says whether it has what it may not have,
    ``text`` what is wrong, as the rest of a sentence about the queue, and ``allowed`` what it may have. In ``text``
    ``own`` stands for the queue's settings. ``on_pages`` says it of a queue on an address that pages. ``written``: one
    of these must be written in the place that is refused; inherited, it has no effect there, and may be meant for
    others. ``queues_only``: in an address-setting it is always meant for others.
    """

    attributes: tuple[str, ...]
    applies: Callable[[QueueSettings], bool]
    text: str
    allowed: str
    on_pages: Callable[[QueueSettings], bool] | None = None
    written: tuple[str, ...] = ()
    queues_only: bool = False

    def concerns(self, own: QueueSettings, *, pages: bool) -> bool:
        """Has a queue what it may not have? ``pages``: does the file ask for paging on its address?"""
        return self.applies(own) or (pages and self.on_pages is not None and self.on_pages(own))

    def told(self, own: QueueSettings) -> str:
        """What is wrong with a queue, as the rest of a sentence about it."""
        return self.text.format(own=own)


def _gives_up_messages(own: QueueSettings) -> bool:
    """Is it a ring?"""
    return own.ring_size >= 0 or (own.limits_depth and own.policy == "RING")


def _keeps_last_values_for_all(own: QueueSettings) -> bool:
    """Is it a last-value queue from which no consumer takes anything?"""
    return own.non_destructive and own.last_value


_IN_ORDER: Final = ("barrier_expression", "target_queue_depth")
_OF_STICKY_GROUPS: Final = ("group_buckets", "group_rebalance", "group_first_key")
_SWITCH_GROUPS: Final = ("exclusive", "non_destructive", "group_type", "group_buckets")
"""What decides whether messages are grouped at all."""
_DEPTH: Final = ("max_depth_messages", "max_depth_bytes")

CONFLICTS: Final = (
    Conflict(
        _IN_ORDER,
        lambda own: bool(own.barrier_expression) and own.target_queue_depth > 0,
        "has barrier-expression and target-queue-depth {own.target_queue_depth}, which both define when a message "
        "becomes active",
        "one of them",
    ),
    Conflict(
        (*_IN_ORDER, *TYPE_ATTRIBUTES),
        lambda own: own.activates_in_order and own.has_an_order,
        "has barrier-expression or target-queue-depth, with which messages become active in order of arrival, and "
        "another order",
        "queue-type standard, or no order",
    ),
    Conflict(
        (*_IN_ORDER, "ring_size", "overflow_policy", "file_backed_metadata", *_DEPTH),
        lambda own: own.activates_in_order and _gives_up_messages(own),
        "has barrier-expression or target-queue-depth and is a ring, which gives up the oldest messages: a barrier "
        "among them would be lost, or all that is active",
        "overflow-policy REJECT, PRODUCER_FLOW_CONTROL or FLOW_TO_DISK",
    ),
    Conflict(
        ("barrier_expression", "hold_on_publish"),
        lambda own: bool(own.barrier_expression) and own.hold_on_publish,
        "has barrier-expression and hold-on-publish: others overtake a message that is held, and nothing may overtake "
        "a barrier",
        "one of them; AMQ_SCHEDULED_TIME works with barriers",
    ),
    Conflict(
        ("overflow_policy", "ring_size"),
        lambda own: own.overflow_policy != "NONE" and own.ring_size >= 0,
        "has overflow-policy {own.overflow_policy} and ring-size {own.ring_size}, which both define what a full queue "
        "does",
        "one of them; overflow-policy RING counts what is in delivery, ring-size does not",
    ),
    Conflict(
        ("file_backed_metadata", "overflow_policy", "ring_size"),
        lambda own: own.file_backed_metadata and (own.policy != "FLOW_TO_DISK" or own.ring_size >= 0),
        "has file-backed-metadata, with which messages beyond a depth go to pages, and something else that it does "
        "when it is full",
        "overflow-policy FLOW_TO_DISK or none, and no ring-size",
    ),
    Conflict(
        (
            "overflow_policy", "file_backed_metadata", *_DEPTH, "non_destructive", "last_value", "last_value_key",
            "queue_type",
        ),
        lambda own: _keeps_last_values_for_all(own) and own.limits_depth and own.policy == "FLOW_TO_DISK",
        "is a non-destructive last-value queue that flows to disk, or is on an address with address-full-policy PAGE: "
        "values in pages would never be replaced, because no consumer removes them",
        "overflow-policy RING, REJECT or PRODUCER_FLOW_CONTROL, and address-full-policy DROP, FAIL or BLOCK",
        on_pages=_keeps_last_values_for_all,
    ),
    Conflict(
        (
            "non_destructive", "delivery_semantics", "fairness_model", "max_backlog", "max_per_subscription_backlog",
            "max_deliveries", "max_cancels", "lease_period", "leasing", *_IN_ORDER,
        ),
        lambda own: own.non_destructive and own.shares_out,
        "is non-destructive and has an attribute of AMPS: every consumer gets every message, so there is nothing to "
        "share out, nothing comes back, and nothing is ever done",
        "non-destructive, or delivery-semantics, fairness-model, max-backlog, max-per-subscription-backlog, "
        "lease-period, leasing, max-deliveries, max-cancels, barrier-expression and target-queue-depth",
    ),
    Conflict(
        ("fairness_model", "delivery_semantics"),
        lambda own: own.at_most_once and own.fairness_model not in (None, "round-robin"),
        "sends messages at most once and has fairness-model {own.fairness_model}: AMPS knows only round-robin there",
        "fairness-model round-robin",
    ),
    Conflict(
        (*_OF_STICKY_GROUPS, "group_type"),
        lambda own: own.group_type == SHARED_GROUPS
        and (own.group_buckets > 0 or own.group_rebalance or bool(own.group_first_key)),
        "has shared groups, which do not stay with a consumer, and group-buckets, group-rebalance or group-first-key",
        "group-type STANDARD, or none of them",
        written=_OF_STICKY_GROUPS,
    ),
    Conflict(
        _SWITCH_GROUPS,
        lambda own: own.group_type != NO_GROUPS and bool(own.why_no_groups),
        "has group-type, but {own.why_no_groups}: it has no effect",
        "either groups or the setting that excludes them",
        written=("group_type",),
    ),
    Conflict(
        ("group_key", *_SWITCH_GROUPS),
        lambda own: bool(own.why_no_groups),
        "has group-key, but {own.why_no_groups}: it has no effect",
        "either groups or the setting that excludes them",
        written=("group_key",),
    ),
    Conflict(
        ("fallback_group", *_SWITCH_GROUPS),
        lambda own: bool(own.why_no_groups),
        "has fallback-group, but {own.why_no_groups}: it has no effect",
        "either groups or the setting that excludes them",
        written=("fallback_group",),
    ),
    Conflict(
        ("fallback_group", *_SWITCH_GROUPS),
        lambda own: own.group_type == STICKY_GROUPS and not own.why_no_groups,
        "has fallback-group without shared groups: a message without a group belongs to none",
        "group-type SHARED_GROUPS for it",
        written=("fallback_group",),
        queues_only=True,
    ),
    Conflict(
        ("max_live_consumers", "exclusive"),
        lambda own: own.exclusive and own.max_live_consumers > 1,
        "is exclusive, which means one live consumer, and has max-live-consumers {own.max_live_consumers}",
        "max-live-consumers 0 or 1, or exclusive false",
    ),
    Conflict(
        ("exclusivity_policy", "max_live_consumers"),
        lambda own: own.exclusivity_policy == "LINK" and own.max_live_consumers > 1,
        "admits one consumer (exclusivity-policy LINK) and has max-live-consumers {own.max_live_consumers}",
        "max-live-consumers 0 or 1, or another exclusivity-policy",
    ),
    Conflict(
        ("exclusivity_policy", "consumers_before_dispatch"),
        lambda own: own.exclusivity_policy == "LINK" and own.consumers_before_dispatch > 1,
        "admits one consumer (exclusivity-policy LINK) and has consumers-before-dispatch "
        "{own.consumers_before_dispatch}",
        "consumers-before-dispatch 0 or 1, or another exclusivity-policy",
    ),
    Conflict(
        ("underlying_address", "durable"),
        lambda own: own.underlying_address is not None and not own.durable,
        "has underlying-address {own.underlying_address!r} and is not durable: what it has of the journal must survive "
        "a restart",
        "durable true, or a divert",
    ),
    Conflict(
        ("recovery_point", "durable"),
        lambda own: own.recovery_point is not None and not own.durable,
        "has recovery-point {own.recovery_point!r} and is not durable: it would begin at that point at every start",
        "durable true, or no recovery-point",
    ),
    Conflict(
        ("recovery_point", "purge_on_no_consumers"),
        lambda own: own.purge_on_no_consumers and own.begins_in_the_past,
        "has recovery-point {own.recovery_point!r} and purge-on-no-consumers: a new queue has no consumer, and keeps "
        "nothing",
        "one of them",
    ),
)  # fmt: skip
