"""What a queue is composed of: from broker.xml's words to strategies. The only place that names the strategy
classes.
"""

from __future__ import annotations

from artemis_py.config.settings import AddressSettings, QueueConfig
from artemis_py.core.address import Address
from artemis_py.core.backlog import ReadAhead
from artemis_py.core.distribution import Distribution, Exclusive, RoundRobin
from artemis_py.core.gate import Gate
from artemis_py.core.host import Host
from artemis_py.core.order.priority import PriorityOrder
from artemis_py.core.overflow import Overflow, Ring, Unbounded
from artemis_py.core.queue import Queue
from artemis_py.core.redelivery import Redelivery
from artemis_py.selector import compile_selector


def ring_size_of(config: QueueConfig, settings: AddressSettings) -> int:
    """The queue's own ``ring-size``, else the matching ``default-ring-size`` (seed: also for declared queues); -1
    for no ring.
    """
    return settings.default_ring_size if config.ring_size is None else config.ring_size


def overflow_for(ring_size: int) -> Overflow:
    """A ring, or no bound."""
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


def _choose(own: bool | None, default: bool) -> bool:
    return default if own is None else own


def _gate_for(config: QueueConfig, settings: AddressSettings) -> Gate:
    minimum = (
        settings.default_consumers_before_dispatch
        if config.consumers_before_dispatch is None
        else config.consumers_before_dispatch
    )
    delay = (
        settings.default_delay_before_dispatch if config.delay_before_dispatch is None else config.delay_before_dispatch
    )
    return Gate(minimum, delay)


def _distribution_for(config: QueueConfig, settings: AddressSettings) -> Distribution:
    return Exclusive() if _choose(config.exclusive, settings.default_exclusive_queue) else RoundRobin()


def build_queue(
    id: int, config: QueueConfig, address: Address, host: Host, *, auto_created: bool = False, temporary: bool = False
) -> Queue:
    """Compose a queue. Queue attributes beat address-settings. Raises SelectorError for a filter that does not
    parse.
    """
    settings = address.settings
    return Queue(
        id,
        config.name,
        address,
        host,
        order=PriorityOrder(),
        distribution=_distribution_for(config, settings),
        overflow=overflow_for(ring_size_of(config, settings)),
        gate=_gate_for(config, settings),
        redelivery=redelivery_for(settings),
        read_ahead=ReadAhead.of(settings),
        routing_type=config.routing_type,
        durable=config.durable,
        selector=compile_selector(config.filter) if config.filter else None,
        non_destructive=_choose(config.non_destructive, settings.default_non_destructive),
        consumers_max=settings.default_max_consumers if config.max_consumers is None else config.max_consumers,
        purge_on_no_consumers=_choose(
            config.purge_on_no_consumers, settings.default_purge_on_no_consumers if auto_created else False
        ),
        enabled=_choose(config.enabled, True),
        auto_created=auto_created,
        temporary=temporary,
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


def describe(config: QueueConfig, settings: AddressSettings) -> list[tuple[str, str, str]]:
    """What ``artemis-py explain`` shows: (axis, choice, why) for each axis a queue is composed of."""
    ring_size = ring_size_of(config, settings)
    exclusive = _choose(config.exclusive, settings.default_exclusive_queue)
    non_destructive = _choose(config.non_destructive, settings.default_non_destructive)
    gate = _gate_for(config, settings)
    return [
        ("order", "priority", "priority 9 to 0, arrival order inside a priority"),
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
