"""What a queue under test is made of: every combination of the axes that exist, and what its address adds."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from artemis_py.config.settings import (
    AddressConfig,
    BrokerConfig,
    QueueConfig,
    SettingsEntry,
    SettingsRepository,
)

ADDRESS: Final = "a"
DEAD: Final = "dead"
EXPIRED: Final = "expired"
RED_ONLY: Final = "color = 'red'"
KEY: Final = "key"

# The kinds of queues: Artemis' order by all priorities and Qpid's three others, and the two kinds of last-value queues.
PLAIN: Final = "plain"
STANDARD: Final = "standard"
LEVELS: Final = "three-levels"
SORTED: Final = "sorted"
LAST_VALUE: Final = "last-value"
LVQ: Final = "lvq"
KINDS: Final[dict[str, dict[str, Any]]] = {
    PLAIN: {},
    STANDARD: {"queue_type": "standard"},
    LEVELS: {"priority_levels": 3},
    SORTED: {"sort_key": KEY},
    LAST_VALUE: {"last_value_key": KEY},
    LVQ: {"queue_type": "lvq", "last_value_key": KEY},
}


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """One queue's place on each axis. Sizes in messages, times in ms; -1 is none for ring_size, depth (of a ring that
    counts all) and delay_before.
    """

    kind: str = PLAIN
    exclusive: bool = False
    non_destructive: bool = False
    ring_size: int = -1
    depth: int = -1
    consumers_before: int = 0
    delay_before: int = -1
    red_only: bool = False
    purge: bool = False
    durable: bool = True

    @property
    def keeps_last(self) -> bool:
        """Does a newer value replace an older one?"""
        return self.kind in (LAST_VALUE, LVQ)

    def config(self, name: str) -> QueueConfig:
        """The queue as broker.xml would declare it."""
        return QueueConfig(
            name=name,
            address=ADDRESS,
            routing_type="MULTICAST",
            durable=self.durable,
            filter=RED_ONLY if self.red_only else None,
            exclusive=self.exclusive,
            non_destructive=self.non_destructive,
            ring_size=self.ring_size,
            overflow_policy="NONE" if self.depth < 0 else "RING",
            max_depth_messages=self.depth,
            consumers_before_dispatch=self.consumers_before,
            delay_before_dispatch=self.delay_before,
            purge_on_no_consumers=self.purge,
            **KINDS[self.kind],
        )


@dataclass(frozen=True, slots=True)
class AddressPlan:
    """What holds for all queues of the address. attempts_max -1 and messages_max -1 mean no limit."""

    redelivery_delay: int = 0
    multiplier: float = 1.0
    redelivery_delay_max: int = 0
    attempts_max: int = -1
    dead_letter: bool = False
    expiry: bool = False
    messages_max: int = -1
    full_policy: str = "BLOCK"
    scan_period: int = -1

    def settings(self) -> dict[str, Any]:
        """The address-setting that says the same."""
        values: dict[str, Any] = {
            "redelivery_delay": self.redelivery_delay,
            "redelivery_delay_multiplier": self.multiplier,
            "max_redelivery_delay": self.redelivery_delay_max,
            "max_delivery_attempts": self.attempts_max,
            "max_size_messages": self.messages_max,
            "address_full_policy": self.full_policy,
        }
        if self.dead_letter:
            values["dead_letter_address"] = DEAD
        if self.expiry:
            values["expiry_address"] = EXPIRED
        return values


@dataclass(frozen=True, slots=True)
class Plan:
    """A world: one address with its queues, and an address each for dead and for expired messages."""

    queues: tuple[QueuePlan, ...] = (QueuePlan(),)
    address: AddressPlan = field(default_factory=AddressPlan)

    def config(self) -> BrokerConfig:
        """The broker's configuration."""
        queues = tuple(plan.config(f"q{number}") for number, plan in enumerate(self.queues))
        aside = tuple(
            AddressConfig(
                name=name,
                routing_types=("MULTICAST",),
                queues=(QueueConfig(name=name, address=name, routing_type="MULTICAST"),),
            )
            for name in (DEAD, EXPIRED)
        )
        return BrokerConfig(
            addresses=(AddressConfig(name=ADDRESS, routing_types=("MULTICAST",), queues=queues), *aside),
            address_settings=SettingsRepository([SettingsEntry(match=ADDRESS, values=self.address.settings())]),
            message_expiry_scan_period=self.address.scan_period,
            address_queue_scan_period=-1,
        )


GATES: Final = ((0, -1), (2, -1), (2, 300))
OVERFLOWS: Final = ((-1, -1), (1, -1), (3, -1), (-1, 1), (-1, 3))
"""Size of a ring that counts what is ready, and of one that counts the depth."""
FAILURES: Final = tuple(
    AddressPlan(
        redelivery_delay=delay,
        multiplier=2.0,
        redelivery_delay_max=10 * delay,
        attempts_max=attempts,
        dead_letter=dead_letter,
        expiry=dead_letter,
        scan_period=100 if delay else -1,
    )
    for delay, (attempts, dead_letter) in product((0, 200), ((-1, False), (2, False), (2, True)))
)


def queue_plans() -> list[QueuePlan]:
    """Every combination of kind, distribution, acquisition by the queue, overflow and gate."""
    return [
        QueuePlan(
            kind=kind,
            exclusive=exclusive,
            non_destructive=non_destructive,
            ring_size=overflow[0],
            depth=overflow[1],
            consumers_before=gate[0],
            delay_before=gate[1],
        )
        for kind, exclusive, non_destructive, overflow, gate in product(
            KINDS, (False, True), (False, True), OVERFLOWS, GATES
        )
    ]


def all_plans() -> list[Plan]:
    """Every combination of those with what a failed delivery leads to."""
    return [Plan((queue,), failure) for queue, failure in product(queue_plans(), FAILURES)]


def plan_id(queue: QueuePlan) -> str:
    """A short name for a test's id."""
    gate = (
        "open"
        if not queue.consumers_before
        else f"gate{queue.consumers_before}" + (f"-{queue.delay_before}ms" if queue.delay_before >= 0 else "")
    )
    ring = "unbounded" if queue.ring_size < 0 else f"ring{queue.ring_size}"
    if queue.depth >= 0:
        ring = f"depth{queue.depth}"
    return "-".join(
        (
            queue.kind,
            "exclusive" if queue.exclusive else "round-robin",
            "non-destructive" if queue.non_destructive else "destructive",
            ring,
            gate,
        )
    )
