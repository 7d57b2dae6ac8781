"""What a queue is composed of: from broker.xml's words to strategies. The only place that names the strategy
classes.

Everything that counts for a queue comes as one :class:`~artemis_py.config.queue_settings.QueueSettings`.
"""

from __future__ import annotations

from artemis_py.config.queue_settings import QueueSettings, queue_settings, written_attributes
from artemis_py.config.queue_types import PRIORITY
from artemis_py.config.settings import AddressSettings, QueueConfig
from artemis_py.core.address import Address
from artemis_py.core.backlog import ReadAhead
from artemis_py.core.distribution import Distribution, Exclusive, RoundRobin
from artemis_py.core.gate import Gate
from artemis_py.core.host import Host
from artemis_py.core.order.last_value import LastValues
from artemis_py.core.order.order import Order
from artemis_py.core.order.priority import PRIORITIES, PriorityOrder
from artemis_py.core.order.sorted import SortedOrder
from artemis_py.core.overflow import Overflow, Ring, Unbounded
from artemis_py.core.queue import Queue
from artemis_py.core.redelivery import Redelivery
from artemis_py.selector import compile_selector


def overflow_for(ring_size: int) -> Overflow:
    """A ring, or no bound (-1)."""
    return Ring(ring_size) if ring_size >= 0 else Unbounded()


def redelivery_for(settings: AddressSettings) -> Redelivery:
    """The address-setting's redelivery rules."""
    return Redelivery(
        delay_ms=settings.redelivery_delay,
        multiplier=settings.redelivery_delay_multiplier,
        delay_ms_max=settings.max_redelivery_delay,
        collision_factor=settings.redelivery_collision_avoidance_factor,
        attempts_max=settings.max_delivery_attempts,
    )


def _order_for(own: QueueSettings) -> Order:
    """One level is strict FIFO; without a type it is Artemis' ten priorities."""
    if own.sort_key is not None:
        return SortedOrder(own.sort_key)
    if own.queue_type == PRIORITY:
        return PriorityOrder(own.priority_levels or PRIORITIES)
    return PriorityOrder() if own.queue_type is None else PriorityOrder(1)


def _last_values_for(own: QueueSettings) -> LastValues | None:
    return None if own.last_value_key is None else LastValues(own.last_value_key)


def _gate_for(own: QueueSettings) -> Gate:
    return Gate(own.consumers_before_dispatch, own.delay_before_dispatch)


def _distribution_for(own: QueueSettings) -> Distribution:
    return Exclusive() if own.exclusive else RoundRobin()


def build_queue(
    id: int, config: QueueConfig, address: Address, host: Host, *, auto_created: bool = False, temporary: bool = False
) -> Queue:
    """Compose a queue. Raises SelectorError for a filter that does not parse."""
    settings = address.settings
    own = queue_settings(config, settings, declared=not auto_created)
    return Queue(
        id,
        config.name,
        address,
        host,
        order=_order_for(own),
        last_values=_last_values_for(own),
        distribution=_distribution_for(own),
        overflow=overflow_for(own.ring_size),
        gate=_gate_for(own),
        redelivery=redelivery_for(settings),
        read_ahead=ReadAhead.of(settings),
        routing_type=config.routing_type,
        durable=own.durable,
        selector=compile_selector(own.filter) if own.filter else None,
        non_destructive=own.non_destructive,
        consumers_max=own.max_consumers,
        purge_on_no_consumers=own.purge_on_no_consumers,
        enabled=own.enabled,
        auto_created=auto_created,
        temporary=temporary,
        attributes=written_attributes(config),
    )


def _full_when(settings: AddressSettings) -> str:
    """In words: when an address with these settings is full."""
    limits = []
    if settings.max_size_bytes >= 0:
        limits.append(f"{settings.max_size_bytes} bytes")
    if settings.max_size_messages >= 0:
        limits.append(f"{settings.max_size_messages} messages")
    own = " or ".join(limits)
    return f"from {own} of the address in memory on" if own else "when all addresses together reach global-max-size"


def _order_in_words(own: QueueSettings) -> tuple[str, str]:
    if own.sort_key is not None:
        return f"sorted by {own.sort_key}", "messages without it first, arrival order where it is equal"
    if own.queue_type == PRIORITY:
        return f"priority in {own.priority_levels} levels", "arrival order inside a level"
    if own.queue_type is None:
        return "priority", "priority 9 to 0, arrival order inside a priority"
    return "fifo", "arrival order, whatever the priority"


def describe(own: QueueSettings, settings: AddressSettings) -> list[tuple[str, str, str]]:
    """What ``artemis-py explain`` shows: (axis, choice, why) for each axis a queue is composed of."""
    ring_size = own.ring_size
    exclusive = own.exclusive
    non_destructive = own.non_destructive
    gate = _gate_for(own)
    return [
        ("order", *_order_in_words(own)),
        *([("keeps", f"the last value of each {own.last_value_key}", "others are replaced")] if own.last_value else []),
        (
            "distribution",
            "exclusive" if exclusive else "round-robin",
            "the first consumer gets everything"
            if exclusive
            else "consumers take turns, higher consumer priority first",
        ),
        (
            "acquisition",
            "non-destructive" if non_destructive else "hold until acknowledged",
            "messages stay when read" if non_destructive else "ack:auto settles when sent",
        ),
        (
            "overflow",
            f"ring of {ring_size}" if ring_size >= 0 else "unbounded",
            "the least ready entry goes when one more arrives"
            if ring_size >= 0
            else "no ring-size and no default-ring-size",
        ),
        (
            "when full",
            settings.address_full_policy.lower(),
            _full_when(settings),
        ),
        (
            "gates",
            f"{gate.consumers_min} consumers before dispatch" if gate.consumers_min > 0 else "none",
            "dispatch waits for them" if gate.consumers_min > 0 else "dispatch starts with the first consumer",
        ),
    ]
