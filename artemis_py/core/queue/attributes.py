"""Carries out changes of attributes on a queue that runs. ``config/tables/queue_settings.py`` says for each
attribute which parts of the queue it is for, and which changes wait for a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from artemis_py.config.changes import changed, held_back, in_force, why_held_back, why_in_conflict
from artemis_py.config.settings import AddressSettings, QueueConfig
from artemis_py.config.tables.fields import settings_of
from artemis_py.config.tables.queue_settings import (
    CONSUMERS,
    DISTRIBUTION,
    EXCLUSIVITY,
    GATE,
    GROUPS,
    LEASES,
    OVERFLOW,
    SWITCHES,
    THRESHOLDS,
    Part,
    QueueSettings,
    known_attributes,
    parts_of,
    queue_settings,
    written_attributes,
)
from artemis_py.core.pages import ReadAhead
from artemis_py.core.queue.consumers import Exclusivity
from artemis_py.core.queue.groups import GroupRule
from artemis_py.core.queue.overflow import Overflow
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.recipe import (
    backlog_max_of,
    consumer_defaults_for,
    live_max_of,
    overflow_for,
    own_settings,
    redelivery_for,
    rules_for,
)
from artemis_py.core.queue_reference import MessageRules
from artemis_py.errors import BrokerError, SelectorError
from artemis_py.selector import compile_selector
from artemis_py.terminal_output import many

# ---- changes ---------------------------------------------------------------------------------------------------------
#
# The one way to change a queue that exists, as far as its composition allows. A reload and an operator's update both
# end here. ``queue.own`` is what is in force afterwards, but for a ring-size that an operator set: that is kept
# beside it (``ring_size_changed``), because a reload leaves it alone. What a queue is composed of once stays as it is
# until a restart. Everything else takes effect here, in place: no message moves, and no consumer leaves.


def declaration_of(queue: Queue) -> QueueConfig:
    """What the queue would be declared with, but for a ring-size that an operator set."""
    return QueueConfig(
        name=queue.name,
        address=queue.address.name,
        routing_type=queue.routing_type,
        durable=queue.durable,
        filter=None if queue.selector is None else queue.selector.text,
        **known_attributes(dict(queue.attributes)),
    )


def use_declaration(queue: Queue, config: QueueConfig, now_ms: int) -> frozenset[str]:
    """Give a queue exactly the filter and the attributes of a declaration. Returns the attributes that need a restart.
    The routing type does not change. The caller must update the bindings afterwards. Raises SelectorError.
    """
    selector, text = queue.selector, config.filter or None
    if text != (None if selector is None else selector.text):
        selector = None if text is None else compile_selector(text)
    queue.attributes, before = written_attributes(config), queue.attributes
    wanted = own_settings(config, queue.address.settings, declared=not queue.auto_created)
    try:
        held = retune(queue, wanted, queue.address.settings, now_ms)
    except SelectorError:
        queue.attributes = before
        raise
    queue.selector = selector
    return held


def set_ring_size(queue: Queue, ring_size: int) -> None:
    """An operator's ring-size counts before that of the settings from now on; -1: no ring. A ring that was made smaller
    stops growing. Raises BrokerError for a queue that may not be a ring.
    """
    why = why_no_ring(queue, ring_size)
    if why:
        raise _refusal(queue, [_stays("ring_size", why)])
    _set_ring_size(queue, ring_size)


def why_no_ring(queue: Queue, ring_size: int) -> str:
    """Why the queue cannot be a ring of this size; empty: it can."""
    return why_in_conflict("ring_size", replace(queue.own, ring_size=ring_size))


def overflow_of(queue: Queue) -> Overflow:
    """What the queue does when it is full, by its settings and the ring-size that an operator set."""
    own, ring_size = queue.own, queue.ring_size_changed
    return overflow_for(own if ring_size is None else replace(own, ring_size=ring_size))


def _set_ring_size(queue: Queue, ring_size: int) -> None:
    queue.ring_size_changed = ring_size
    _use_overflow(queue)


def retune(queue: Queue, wanted: QueueSettings, settings: AddressSettings, now_ms: int) -> frozenset[str]:
    """Bring a queue to the settings that it would be composed from now. Returns the attributes that need a restart.
    ``settings`` are those of its address. Raises SelectorError, and nothing has changed then.
    """
    old = queue.own
    new, differing = in_force(old, wanted), changed(old, wanted) - held_back(old, wanted)
    defaults = consumer_defaults_for(new) if differing else queue.consumer_defaults
    queue.own = new
    queue.state.redelivery = redelivery_for(settings, new.max_delivery_attempts)
    queue.pages.reading.limits = ReadAhead.of(settings)
    if queue.pages.reading.cramped:
        queue.pages.may_have_news()
    if not differing:
        _use_rules(queue, new)
        return held_back(old, wanted)
    queue.consumer_defaults = defaults
    parts = {part for name in differing for part in parts_of(name)}
    for part, use in _STEPS.items():
        if part in parts:
            use(queue, new)
    _use_rules(queue, new)
    if OVERFLOW in parts:
        if old.ring_size != new.ring_size:
            queue.ring_size_changed = None
        _use_overflow(queue)
    if GATE in parts:
        _use_gate(queue, new, now_ms)
    queue.after_removal.run()
    queue.state.note_ready()
    return held_back(old, wanted)


def _use_overflow(queue: Queue) -> None:
    queue.flow.overflow = overflow_of(queue)
    if queue.flow.stopped:
        queue.flow.resume()
    queue.after_removal.use_room()


def _use_gate(queue: Queue, new: QueueSettings, now_ms: int) -> None:
    gate = queue.gate
    gate.set_delay(new.delay_before_dispatch)
    gate.backlog_max = backlog_max_of(new)
    gate.counts = new.max_backlog >= 0
    gate.consumers_min = new.consumers_before_dispatch
    if gate.consumers_min <= 0:
        gate.started, gate.opens_at_ms = True, 0
    elif not queue.taker_count:
        gate.started, gate.opens_at_ms = False, 0
    else:
        gate.consumer_joined(queue.taker_count, queue.host.clock.steady_ms(now_ms))
        if gate.opens_at_ms:
            queue.host.timers.gates.set(queue.id, gate.opens_at_ms)


def _use_distribution(queue: Queue, new: QueueSettings) -> None:
    queue.distribution.set_live_max(live_max_of(new))
    queue.wake_ups.has_lost_one = True  # others may be served now


def _use_grouping(queue: Queue, new: QueueSettings) -> None:
    """Group by another rule at once, if no consumer holds a message of a group that began by the old one. Otherwise the
    rule counts when the queue begins to look at groups the next time.
    """
    grouping = queue.grouping
    rule = None if queue.temporary else GroupRule.of(new)
    if grouping.groups is None:
        grouping.rule = rule
        if queue.message_count:
            grouping.begin()
    elif grouping.groups.rule == rule or queue.contents.has_held:
        grouping.rule = rule
    else:
        grouping.regroup(rule)
        queue.after_removal.use_room()


def _use_leases(queue: Queue, new: QueueSettings) -> None:
    leases, delivery_attempts = queue.contents.leases, queue.contents.delivery_attempts
    if leases is not None:
        leases.period_ms = max(new.lease_period, 0)
        leases.is_strict = new.leasing == "strict"
        leases.set_timer()
    if delivery_attempts is not None:
        delivery_attempts.deliveries_max, delivery_attempts.cancels_max = new.max_deliveries, new.max_cancels


def _use_thresholds(queue: Queue, new: QueueSettings) -> None:
    watch = queue.alerts
    if watch is not None:
        alerts = watch.alerts
        alerts.size_bytes = new.alert_threshold_message_size
        alerts.messages = new.alert_threshold_depth_messages
        alerts.bytes = new.alert_threshold_depth_bytes
        alerts.repeat_gap_ms = new.alert_repeat_gap
        watch.check(queue.host.log.now_ms)


def _use_rules(queue: Queue, new: QueueSettings) -> None:
    """How messages end. How long they live, and what holds them back, belongs to the composition."""
    before, reference = queue.reference.rules, queue.reference
    written = queue.attributes.get("dead_letter_address")
    dead_letter_address = written if isinstance(written, str) else None
    if (before.expiry_policy, before.dead_letter_address) == (new.expiry_policy, dead_letter_address):
        return
    queue.host.dead_letter_addresses.note(dead_letter_address)
    if before.alerts is None and before.lifetime is None and not before.holds:
        reference.rules = rules_for(new, dead_letter_address)
        return
    reference.rules = MessageRules(
        lifetime=before.lifetime,
        holds=before.holds,
        expiry_policy=new.expiry_policy,
        dead_letter_address=dead_letter_address,
        alerts=before.alerts,
    )


def _use_consumers(queue: Queue, new: QueueSettings) -> None:
    queue.consumer_registry.consumers_max = new.max_consumers


def _use_exclusivity(queue: Queue, new: QueueSettings) -> None:
    queue.consumer_registry.exclusivity = Exclusivity(new.exclusivity_policy)


def _use_switches(queue: Queue, new: QueueSettings) -> None:
    queue.enabled = new.enabled
    queue.purge_on_no_consumers = new.purge_on_no_consumers
    queue.non_destructive = new.non_destructive
    queue.consumer_registry.shows_returns = new.non_destructive


_STEPS: Final[Mapping[Part, Callable[[Queue, QueueSettings], None]]] = {
    SWITCHES: _use_switches,
    CONSUMERS: _use_consumers,
    EXCLUSIVITY: _use_exclusivity,
    DISTRIBUTION: _use_distribution,
    GROUPS: _use_grouping,
    LEASES: _use_leases,
    THRESHOLDS: _use_thresholds,
}


# ---- operators' changes ----------------------------------------------------------------------------------------------
#
# What an operator may change of a queue while it exists, and what is refused, with the reason. ``use_declaration``
# carries out a change, as it does one of broker.xml. An operator waits for an answer, so what a reload would hold back
# until a restart, or until consumers are gone, is refused here.


_ADVICE: Final = "delete the queue and create it again, or change broker.xml and restart"
_ATTRIBUTES: Final = tuple(
    row.attribute for row in settings_of(QueueConfig).values() if row.attribute != "user"
)  # who owns a queue has no effect


class _Change(NamedTuple):
    """A queue, with its settings as they are and as they are to be."""

    queue: Queue
    old: QueueSettings
    new: QueueSettings


def _too_many_consumers(change: _Change) -> str | None:
    count, consumers_max = change.queue.distribution.taker_count, change.new.max_consumers
    if not 0 <= consumers_max < count:
        return None
    return f"it has {many(count, 'consumer')}, more than max-consumers {consumers_max}"


def _groups_are_out(change: _Change) -> str | None:
    queue = change.queue
    if GroupRule.of(change.old) == GroupRule.of(change.new) or queue.grouping.groups is None:
        return None
    if queue.contents.has_held:
        return "messages of its groups are with consumers; change groups when they are settled"
    return None


REFUSALS: Final[Mapping[Part, Callable[[_Change], str | None]]] = {
    CONSUMERS: _too_many_consumers,
    GROUPS: _groups_are_out,
}
"""What is at times refused to an operator, though a reload would carry it out, in part or later."""


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
        raise _refusal(queue, reasons)
    if "ring_size" in changed:
        _set_ring_size(queue, change.new.ring_size)
    # The operator's ring-size is kept beside what is written: a reload of the file leaves it alone.
    written = known_attributes(dict(queue.attributes)).get("ring_size")
    use_declaration(queue, replace(config, ring_size=written), now_ms)
    return changed


def _why_not(change: _Change, changed: set[str], wanted: QueueSettings) -> list[str]:
    """The reasons against a change. What already waits for a restart is no reason against changing something else."""
    own = change.queue.own
    held = held_back(own, wanted)
    reasons = []
    for name in sorted(changed):
        if name in held:
            reasons.append(_stays(name, why_held_back(name, own, wanted)))
            continue
        for part in parts_of(name):
            reason = REFUSALS[part](change) if part in REFUSALS else None
            if reason is not None:
                reasons.append(reason)
    return reasons


def _stays(attribute: str, why: str) -> str:
    return f"{attribute.replace('_', '-')} stays as it is, because {why} ({_ADVICE})"


def _refusal(queue: Queue, reasons: list[str]) -> BrokerError:
    return BrokerError(f"Queue {queue.name} cannot be changed: {'; '.join(dict.fromkeys(reasons))}")
