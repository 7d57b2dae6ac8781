"""Composes queues: from the words of broker.xml to strategies. Only this module names the strategy classes.

Everything that is configured for a queue comes as one :class:`~artemis_py.config.tables.queue_settings.QueueSettings`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from sys import maxsize
from typing import Final

from artemis_py.config.settings import AddressSettings, QueueConfig
from artemis_py.config.tables.queue_settings import QueueSettings, queue_settings, recovery_point_of, written_attributes
from artemis_py.config.tables.queue_types import PRIORITY
from artemis_py.config.tables.views import view_of
from artemis_py.core.consumer import UNCONFIRMED_MAX, ConsumerDefaults
from artemis_py.core.order.last_value import LastValues
from artemis_py.core.order.order import Order
from artemis_py.core.order.priority import PriorityOrder
from artemis_py.core.order.sorted import HeaderRank, SortedOrder, ValueRank
from artemis_py.core.pages import ReadAhead
from artemis_py.core.queue.barriers import BarrierRule, TargetDepth
from artemis_py.core.queue.consumers import Exclusivity
from artemis_py.core.queue.distribution import Distribution, Ranked, RoundRobin
from artemis_py.core.queue.gate import Gate
from artemis_py.core.queue.groups import Grouping, GroupRule
from artemis_py.core.queue.leases import Leases
from artemis_py.core.queue.messages import Contents, DeferredAcks, PendingMessages
from artemis_py.core.queue.overflow import (
    DepthLimit,
    DepthRing,
    FlowControl,
    FlowToDisk,
    Overflow,
    Reject,
    Ring,
    Unbounded,
)
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.recovery_point import Recovery
from artemis_py.core.queue.redelivery import DeliveryAttempts, Redelivery
from artemis_py.core.queue.state import QueueState
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.queue_reference import Alerts, Lifetime, MessageRules, QueueAddress, QueueReference
from artemis_py.selector import compile_expression, compile_selector

_SHARED_MAX: Final = 1024
_UNBOUNDED: Final = Unbounded()
_NO_DEFAULTS: Final = ConsumerDefaults()
_USUAL_RULES: Final = MessageRules()
"""Strategies without state are made once, because there are many queues."""


def overflow_for(own: QueueSettings) -> Overflow:
    """The queue's ``overflow-policy``, if it has one and a limit of depth; otherwise its ``ring-size``."""
    depth = DepthLimit(own.depth_messages_max, own.max_depth_bytes)
    if own.policy == "NONE" or not own.limits_depth:
        return Ring(own.ring_size) if own.ring_size >= 0 else _UNBOUNDED
    if own.policy == "RING":
        return DepthRing(depth)
    if own.policy == "REJECT":
        return Reject(depth)
    if own.policy == "FLOW_TO_DISK":
        return FlowToDisk(depth)
    return FlowControl(depth, own.flow_resume_percent)


def redelivery_for(settings: AddressSettings, attempts_max: int) -> Redelivery:
    """The redelivery rules of the address-setting, with the queue's own maximum of attempts."""
    return _redelivery(
        settings.redelivery_delay,
        settings.redelivery_delay_multiplier,
        settings.max_redelivery_delay,
        settings.redelivery_collision_avoidance_factor,
        attempts_max,
    )


def own_settings(config: QueueConfig, settings: AddressSettings, *, declared: bool) -> QueueSettings:
    """What a queue is composed from, without its filter and owner. Queues that are alike share one object."""
    own = queue_settings(config, settings, declared=declared)
    if own.filter is not None or own.user is not None:
        own = replace(own, filter=None, user=None)
    return _shared(own)


@lru_cache(maxsize=_SHARED_MAX)
def _shared(own: QueueSettings) -> QueueSettings:
    return own


@lru_cache(maxsize=_SHARED_MAX)
def _redelivery(
    delay_ms: int, multiplier: float, delay_ms_max: int, collision_factor: float, attempts_max: int
) -> Redelivery:
    return Redelivery(delay_ms, multiplier, delay_ms_max, collision_factor, attempts_max)


def _order_for(own: QueueSettings) -> Order:
    """The order for a ``queue-type``. One level is strict FIFO; a queue without a type has Artemis' ten priorities."""
    if own.priority_expression is not None:
        return SortedOrder(ValueRank(compile_expression(own.priority_expression)))
    if own.sort_key is not None:
        return SortedOrder(HeaderRank(own.sort_key))
    return PriorityOrder(own.levels)


def _pending_for(own: QueueSettings) -> PendingMessages | None:
    if own.barrier_expression:
        return PendingMessages(BarrierRule(compile_selector(own.barrier_expression)))
    return PendingMessages(TargetDepth(own.target_queue_depth)) if own.target_queue_depth > 0 else None


def _last_values_for(own: QueueSettings) -> LastValues | None:
    return None if own.last_value_key is None else LastValues(own.last_value_key)


def _delivery_attempts_for(own: QueueSettings) -> DeliveryAttempts | None:
    limits = own.max_deliveries, own.max_cancels
    return DeliveryAttempts(*limits) if own.has_leases else None


def _leases_for(own: QueueSettings, queue_id: int, host: QueueHost) -> Leases | None:
    if not own.has_leases:
        return None
    return Leases(queue_id, host, max(own.lease_period, 0), is_strict=own.leasing == "strict")


def backlog_max_of(own: QueueSettings) -> int:
    """How many messages may be in delivery at once."""
    return own.max_backlog if own.max_backlog >= 0 else maxsize


def _gate_for(own: QueueSettings, home: QueueAddress | None = None) -> Gate:
    return Gate(own.consumers_before_dispatch, own.delay_before_dispatch, backlog_max_of(own), home)


def _lifetime_for(own: QueueSettings) -> Lifetime | None:
    times = own.min_message_ttl, own.max_message_ttl, max(own.expiration, 0)
    return Lifetime(*times) if any(times) else None


def _alerts_for(own: QueueSettings) -> Alerts | None:
    if not own.has_alerts:
        return None
    return Alerts(
        age_ms=own.alert_threshold_message_age,
        size_bytes=own.alert_threshold_message_size,
        messages=own.alert_threshold_depth_messages,
        bytes=own.alert_threshold_depth_bytes,
        repeat_gap_ms=own.alert_repeat_gap,
    )


def rules_for(own: QueueSettings, dead_letter_address: str | None) -> MessageRules:
    """The rules for the messages of a queue. ``dead_letter_address``: the one written on the queue itself, if any."""
    lifetime, alerts = _lifetime_for(own), _alerts_for(own)
    policy = own.expiry_policy
    if not (lifetime or alerts or own.hold_on_publish) and policy is None and dead_letter_address is None:
        return _USUAL_RULES
    return MessageRules(
        lifetime=lifetime,
        holds=own.hold_on_publish,
        expiry_policy=policy,
        dead_letter_address=dead_letter_address,
        alerts=alerts,
    )


def live_max_of(own: QueueSettings) -> int:
    """How many consumers are offered messages while the others wait; 0: all."""
    return 1 if own.exclusive else own.max_live_consumers


def _distribution_for(own: QueueSettings) -> Distribution:
    live_max = live_max_of(own)
    if own.fairness == "round-robin":
        return RoundRobin(live_max)
    return Ranked(live_max, by_load=own.fairness == "proportional")


def consumer_defaults_for(own: QueueSettings) -> ConsumerDefaults:
    """What consumers get that ask for nothing themselves. Raises SelectorError."""
    if own.consumer_selector is None and own.consumer_replay_period is None and not own.limits_backlogs:
        return _NO_DEFAULTS
    selector = compile_selector(own.consumer_selector) if own.consumer_selector else None
    return ConsumerDefaults(
        selector,
        own.consumer_replay_period,
        1 if own.limits_backlogs else maxsize,
        min(_backlog_max_for(own), UNCONFIRMED_MAX) if own.at_most_once else _backlog_max_for(own),
        own.at_most_once,
    )


def _recovery_for(own: QueueSettings, host: QueueHost, *, is_view: bool) -> Recovery | None:
    """Only a queue that survives a restart knows how far it got. Where nothing is retained, and nobody asks for a
    point, there is nothing to know.
    """
    has_past = host.log.has_past
    if not own.durable or not (has_past or own.recovery_point is not None):
        return None
    return Recovery(own.recovery_point or "", is_view=is_view, has_past=has_past)


def _backlog_max_for(own: QueueSettings) -> int:
    """The largest backlog of one consumer."""
    each = own.max_per_subscription_backlog
    if each is None:
        return 1 if own.limits_backlogs else maxsize
    return each if each > 0 else maxsize


def build_queue(
    id: int,
    config: QueueConfig,
    address: QueueAddress,
    host: QueueHost,
    *,
    auto_created: bool = False,
    temporary: bool = False,
) -> Queue:
    """Compose a queue. A temporary queue has one reader, so it has no groups.

    Raises SelectorError for a ``filter``, ``consumer-selector``, ``priority-expression`` or ``barrier-expression`` that
    does not parse.
    """
    settings = address.settings
    own = own_settings(config, settings, declared=not auto_created)
    view = view_of(own.underlying_address, own.default_publish_target, address.name)
    reference = QueueReference(
        id,
        config.name,
        address,
        durable=own.durable,
        rules=rules_for(own, config.dead_letter_address),
        is_view=view is not None,
    )
    order, distribution = _order_for(own), _distribution_for(own)
    rule = None if temporary else GroupRule.of(own)
    grouping = Grouping(rule, order, distribution, address.memory.holdings, host.agenda)
    state = QueueState(
        reference,
        host,
        Contents(
            reference,
            host,
            order,
            grouping,
            last_values=_last_values_for(own),
            delivery_attempts=_delivery_attempts_for(own),
            leases=_leases_for(own, id, host),
            pending=_pending_for(own),
            deferred_acks=DeferredAcks(address.memory.holdings) if own.limits_backlogs else None,
        ),
        grouping,
        overflow=overflow_for(own),
        distribution=distribution,
        gate=_gate_for(own, address),
        redelivery=redelivery_for(settings, own.max_delivery_attempts),
    )
    return Queue(
        state,
        ReadAhead.of(settings),
        exclusivity=Exclusivity(own.exclusivity_policy),
        consumer_defaults=consumer_defaults_for(own),
        routing_type=config.routing_type,
        selector=compile_selector(config.filter) if config.filter else None,
        own=own,
        non_destructive=own.non_destructive,
        consumers_max=own.max_consumers,
        purge_on_no_consumers=own.purge_on_no_consumers,
        enabled=own.enabled,
        auto_created=auto_created,
        temporary=temporary,
        attributes=written_attributes(config),
        view=view,
        recovery=None if temporary or auto_created else _recovery_for(own, host, is_view=view is not None),
        tells_bookmarks=own.limits_backlogs,
    )


def _full_when(settings: AddressSettings) -> str:
    """When an address with these settings is full, in words."""
    limits = []
    if settings.max_size_bytes >= 0:
        limits.append(f"{settings.max_size_bytes} bytes")
    if settings.max_size_messages >= 0:
        limits.append(f"{settings.max_size_messages} messages")
    own = " or ".join(limits)
    return f"when the address has {own} in memory" if own else "when all addresses together reach global-max-size"


def _order_in_words(own: QueueSettings) -> tuple[str, str]:
    if own.priority_expression is not None:
        return "by priority-expression", f"the largest {own.priority_expression} first; equal ones in order of arrival"
    if own.sort_key is not None:
        return f"sorted by {own.sort_key}", "messages without it first; equal keys in order of arrival"
    if own.queue_type == PRIORITY:
        return f"priority in {own.priority_levels} levels", "arrival order inside a level"
    if own.levels == 1:
        return "fifo", "arrival order, whatever the priority"
    return "priority", "priority 9 to 0, arrival order inside a priority"


def _activation_in_words(own: QueueSettings) -> list[tuple[str, str, str]]:
    if own.barrier_expression:
        why = "it waits until all messages before it are done, goes to every consumer, and is done; then others follow"
        return [("barriers", own.barrier_expression, why)]
    if own.target_queue_depth > 0:
        return [("active", f"the first {own.target_queue_depth} messages", "no other is delivered or shown")]
    return []


def _overflow_in_words(own: QueueSettings) -> tuple[str, str]:
    depth = DepthLimit(own.depth_messages_max, own.max_depth_bytes)
    if own.policy == "NONE" or not own.limits_depth:
        if own.ring_size < 0:
            return "unbounded", "no ring-size and no default-ring-size"
        return f"ring of {own.ring_size}", "the least ready entry is dropped when another arrives"
    by_metadata = "; that is file-backed-metadata" if own.policy != own.overflow_policy else ""
    words = {
        "RING": (f"ring of {depth}", "the least ready entries are dropped; entries in delivery count and stay"),
        "REJECT": (f"reject beyond {depth}", "the sender gets an ERROR, and no other queue gets the message"),
        "FLOW_TO_DISK": (f"flow to disk beyond {depth}", f"messages beyond it go to pages of the address{by_metadata}"),
        "PRODUCER_FLOW_CONTROL": (
            f"producer flow control beyond {depth}",
            f"senders wait until the depth is {depth.share(own.flow_resume_percent)}",
        ),
    }
    return words[own.policy]


def _time_in_words(own: QueueSettings) -> list[tuple[str, str, str]]:
    """Rows for what the queue sets itself, besides the settings of its address."""
    rows = []
    if own.expiration > 0:
        rows.append(("time to live", f"{own.expiration} ms", "for messages that have none of their own"))
    if own.min_message_ttl:
        rows.append(("time to live", f"at least {own.min_message_ttl} ms", "for messages that expire"))
    if own.max_message_ttl:
        rows.append(("time to live", f"at most {own.max_message_ttl} ms", "for all messages; applied last"))
    if own.hold_on_publish:
        rows.append(("hold", "until x-qpid-not-valid-before", "the message keeps its place; others overtake it"))
    return rows


def _ends_in_words(own: QueueSettings) -> list[tuple[str, str, str]]:
    rows = []
    if own.expiry_policy is not None:
        rows.append(("expired", own.expiry_policy, "expiry-policy of the queue"))
    if own.at_most_once:
        rows.append(("dead letters", "none", "what is sent is gone, so no delivery fails"))
    else:
        rows += _dead_letters_in_words(own)
    alerts = _alerts_for(own)
    if alerts is not None:
        rows.append(("alerts", "on", f"each kind is repeated after {own.alert_repeat_gap} ms"))
    return rows


def _dead_letters_in_words(own: QueueSettings) -> list[tuple[str, str, str]]:
    limit = own.max_delivery_attempts
    attempts = f"after {limit} failed deliveries" if limit > 0 else "never: failed deliveries have no limit"
    rows = [("dead letters", own.dead_letter_address or "discarded", attempts)]
    if own.max_deliveries:
        how = "delivery" if own.max_deliveries == 1 else "deliveries"
        rows.append(("dead letters", f"after {own.max_deliveries} {how}", "that ended without an ACK, failed or not"))
    if own.max_cancels:
        how = "cancel" if own.max_cancels == 1 else "cancels"
        rows.append(("dead letters", f"after {own.max_cancels} {how}", "each a NACK of a consumer"))
    return rows


def _distribution_in_words(own: QueueSettings) -> tuple[str, str]:
    if own.exclusive:
        return "exclusive", "the first consumer gets every message"
    how = {
        "fast": "the first consumer with room gets the next message",
        "round-robin": "consumers take turns",
        "proportional": "the consumer with the smallest share of its backlog in use gets the next message",
    }[own.fairness]
    if own.max_live_consumers:
        return f"{own.max_live_consumers} live consumers", f"the first to attach; of these {how}; the others wait"
    by_default = own.fairness_model is None and own.fairness == "proportional"
    default = "; the default with an attribute of AMPS" if by_default else ""
    return own.fairness, f"{how}, higher consumer priority first{default}"


def _groups_in_words(own: QueueSettings) -> list[tuple[str, str, str]]:
    rule = GroupRule.of(own)
    if rule is None:
        return [("groups", "none", "messages are not grouped")]
    named_by = rule.names[0].text
    if rule.shared:
        return [("groups", f"shared, by {named_by}", "a consumer keeps a group while it holds messages of it")]
    buckets = f", in {rule.buckets} buckets" if rule.buckets > 0 else ""
    return [
        ("groups", f"sticky, by {named_by}{buckets}", ("a group stays with its first consumer while that is attached"))
    ]


def _backlogs_in_words(own: QueueSettings) -> list[tuple[str, str, str]]:
    rows = []
    if own.limits_backlogs:
        most = _backlog_max_for(own)
        shown = "as many messages as it asks for" if most == maxsize else f"up to {most} messages"
        rows.append(("backlog", f"{'one message' if most == 1 else shown}, for each consumer", _why_backlog(own, most)))
    if own.max_backlog >= 0:
        rows.append(("backlog", f"{own.max_backlog} messages, for all", "at the limit nothing more is delivered"))
    return rows


def _why_backlog(own: QueueSettings, most: int) -> str:
    if own.max_per_subscription_backlog is None:
        return "no max-per-subscription-backlog; with an attribute of AMPS it is 1"
    return "that is max-per-subscription-backlog" if most == 1 else "one message for consumers without max-backlog"


def _leases_in_words(own: QueueSettings) -> list[tuple[str, str, str]]:
    if not own.has_leases:
        return []
    whose = "only its holder may" if own.leasing == "strict" else "any consumer may"
    if own.lease_period > 0:
        why = f"from when it is sent, then the message goes back; {whose} acknowledge it meanwhile"
        return [("lease", f"{own.lease_period} ms", why)]
    return [("lease", "until the consumer leaves", f"no lease-period; {whose} acknowledge the message")]


def _acquisition_in_words(own: QueueSettings) -> tuple[str, str]:
    if own.non_destructive:
        return "non-destructive", "messages stay after delivery"
    if own.at_most_once:
        return "at most once", "sending settles; an acknowledgement only frees the backlog"
    return f"{'lease' if own.has_leases else 'hold'} until acknowledged", "ack:auto settles when sent"


def _consumers_in_words(own: QueueSettings) -> list[tuple[str, str, str]]:
    rows = []
    if own.exclusivity_policy != "NONE":
        rows.append(("admits", own.exclusivity_policy.lower(), "only the owner's consumers are admitted"))
    if own.consumer_selector is not None:
        rows.append(("selector", own.consumer_selector, "for consumers without one"))
    if own.consumer_replay_period is not None:
        rows.append(("replay", f"{own.consumer_replay_period} s", "for consumers that ask for no period of their own"))
    return rows


def _view_in_words(own: QueueSettings, address: str) -> list[tuple[str, str, str]]:
    view = view_of(own.underlying_address, own.default_publish_target, address)
    if view is None:
        return []
    where = f"goes to {view.target}" if view.target != address else "stays there"
    return [("view", f"over {', '.join(view.underlying)}", f"what is sent to {address} {where}")]


def _recovery_in_words(own: QueueSettings) -> list[tuple[str, str, str]]:
    if own.recovery_point is None:
        return []
    point = recovery_point_of(own.recovery_point)
    if point.word:
        where = {"epoch": "the beginning of the log", "now": "what comes", "creation": "what came since it was made"}
        begins = where[point.word]
    elif point.lsn >= 0:
        begins = f"the messages behind bookmark {point.lsn}"
    else:
        begins = f"what was published at {own.recovery_point} or later"
    return [("begins with", begins, "when it is new, or this was changed")]


def describe(own: QueueSettings, settings: AddressSettings, address: str) -> list[tuple[str, str, str]]:
    """What ``artemis-py explain`` shows of a queue on ``address``: (axis, choice, why) for each axis."""
    gate = _gate_for(own)
    return [
        *_view_in_words(own, address),
        *_recovery_in_words(own),
        ("order", *_order_in_words(own)),
        *_activation_in_words(own),
        *(
            [("keeps", f"the last value of each {own.last_value_key}", ("older values are replaced"))]
            if own.last_value
            else []
        ),
        ("distribution", *_distribution_in_words(own)),
        *_groups_in_words(own),
        *_backlogs_in_words(own),
        *_leases_in_words(own),
        *_consumers_in_words(own),
        ("acquisition", *_acquisition_in_words(own)),
        ("overflow", *_overflow_in_words(own)),
        (
            "when full",
            settings.address_full_policy.lower(),
            _full_when(settings),
        ),
        *_time_in_words(own),
        *_ends_in_words(own),
        (
            "gates",
            f"{gate.consumers_min} consumers before dispatch" if gate.consumers_min > 0 else "none",
            "dispatch waits for them" if gate.consumers_min > 0 else "dispatch starts with the first consumer",
        ),
    ]
