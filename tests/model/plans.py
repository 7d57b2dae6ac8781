"""What a queue under test is made of: every combination of the axes that exist, and what its address adds."""

from __future__ import annotations

from dataclasses import dataclass, field
from sys import maxsize
from typing import Any, Final

from artemis_py.config.settings import (
    AddressConfig,
    BrokerConfig,
    QueueConfig,
    SettingsEntry,
    SettingsRepository,
)
from artemis_py.core.addresses.routing_table import Route
from artemis_py.core.destinations.auto_create import Resolver

ADDRESS: Final = "a"
DEAD: Final = "dead"
EXPIRED: Final = "expired"
RED_ONLY: Final = "color = 'red'"
KEY: Final = "key"

# The kinds of queues: Artemis' order by all priorities, Qpid's three others, the one of AMPS, and the two kinds of
# last-value queues.
PLAIN: Final = "plain"
STANDARD: Final = "standard"
LEVELS: Final = "three-levels"
SORTED: Final = "sorted"
BY_VALUE: Final = "by-value"
LAST_VALUE: Final = "last-value"
LVQ: Final = "lvq"
KINDS: Final[dict[str, dict[str, Any]]] = {
    PLAIN: {},
    STANDARD: {"queue_type": "standard"},
    LEVELS: {"priority_levels": 3},
    SORTED: {"sort_key": KEY},
    BY_VALUE: {"priority_expression": "AMQPriority % 5 * 4 - 3"},
    LAST_VALUE: {"last_value_key": KEY},
    LVQ: {"queue_type": "lvq", "last_value_key": KEY},
}


# A message with this key is a barrier, on queues that have any.
BARRIER_KEY: Final = "b"

# How messages are grouped (group-type).
UNGROUPED: Final = "NONE"
STICKY: Final = "STANDARD"
SHARED: Final = "SHARED_GROUPS"
GROUP: Final = "JMSXGroupID"
FALLBACK: Final = "qpid.no-group"


# What a queue does when it is full (overflow-policy).
NO_POLICY: Final = "NONE"
RING: Final = "RING"
REJECT: Final = "REJECT"
FLOW_CONTROL: Final = "PRODUCER_FLOW_CONTROL"
TO_DISK: Final = "FLOW_TO_DISK"

# Which consumer gets the next message (fairness-model).
FAST: Final = "fast"
ROUND_ROBIN: Final = "round-robin"
PROPORTIONAL: Final = "proportional"

# Where groups go when a consumer comes (group-rebalance, group-rebalance-pause-dispatch).
STAY: Final = "stay"
REBALANCE: Final = "rebalance"
PAUSE: Final = "rebalance-and-pause"

# What a queue reads if it is a view (underlying-address).
NO_VIEW: Final = ""
EXACT: Final = ADDRESS
WILDCARD: Final = f"{ADDRESS},{ADDRESS}.#,#.{ADDRESS}"


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """One queue's place on each axis. Sizes in messages or bytes, times in ms, the replay period in s; -1 is none for
    sizes, buckets and delay_before.
    """

    kind: str = PLAIN
    exclusive: bool = False
    live_max: int = 0
    groups: str = UNGROUPED
    buckets: int = -1
    rebalances: str = STAY
    marks_first: bool = False
    non_destructive: bool = False
    ring_size: int = -1
    policy: str = NO_POLICY
    backed: bool = False
    """Does the policy, TO_DISK, follow from file-backed-metadata?"""
    depth_messages: int = -1
    depth_bytes: int = -1
    resume_percent: float = 80
    holds: bool = False
    ttl_min: int = 0
    ttl_max: int = 0
    ttl_usual: int = 0
    barriers: bool = False
    active_max: int = 0
    expiry_policy: str | None = None
    replay_s: int | None = None
    default_selector: str | None = None
    admits: str = "NONE"
    consumers_max: int = -1
    alerts: bool = False
    once: bool = False
    lease_ms: int = 0
    strict: bool = False
    deliveries_max: int = 0
    cancels_max: int = 0
    fairness: str | None = None
    backlog_each: int | None = None
    backlog_all: int = -1
    consumers_before: int = 0
    delay_before: int = -1
    red_only: bool = False
    purge: bool = False
    durable: bool = True
    view: str = NO_VIEW

    @property
    def keeps_last(self) -> bool:
        """Does a newer value replace an older one?"""
        return self.kind in (LAST_VALUE, LVQ)

    @property
    def is_grouped(self) -> bool:
        """Are messages grouped? Not where one consumer gets everything, and not where nobody takes anything away."""
        return not (self.groups == UNGROUPED or self.buckets == 0 or self.exclusive or self.non_destructive)

    @property
    def is_like_amps(self) -> bool:
        """Has a consumer one message unless it asks for more?"""
        limited = self.deliveries_max > 0 or self.cancels_max > 0 or self.leases or self.activates_in_order
        rules = self.ttl_usual > 0 or self.kind == BY_VALUE or self.backed
        limited = limited or (rules and not self.non_destructive)
        return (
            limited or self.once or self.fairness is not None or self.backlog_each is not None or self.backlog_all >= 0
        )

    @property
    def activates_in_order(self) -> bool:
        """Do messages become active one after the other?"""
        return self.barriers or self.active_max > 0

    @property
    def bounds_time(self) -> bool:
        """Has the queue a say in how long messages live?"""
        return max(self.ttl_min, self.ttl_max, self.ttl_usual) > 0

    @property
    def leases(self) -> bool:
        """Does the queue know who holds what until when?"""
        return self.lease_ms > 0 or self.strict

    @property
    def fair(self) -> str:
        """How messages are shared out."""
        return self.fairness or (PROPORTIONAL if self.is_like_amps and not self.once else ROUND_ROBIN)

    def backlog_for(self, asked: int | None) -> int:
        """How many messages a consumer may have that asks for so many."""
        if asked is None:
            return 1 if self.is_like_amps else maxsize
        most = 1 if self.backlog_each is None and self.is_like_amps else self.backlog_each or maxsize
        return min(asked, most)

    def home(self, name: str) -> str:
        """The address that the queue is on: a view has one of its own."""
        return f"{name}.home" if self.view else ADDRESS

    def config(self, name: str) -> QueueConfig:
        """The queue as broker.xml would declare it."""
        alerting: dict[str, Any] = {
            "alert_threshold_message_age": 100,
            "alert_threshold_depth_messages": 2,
            "alert_repeat_gap": 50,
        }
        return QueueConfig(
            name=name,
            address=self.home(name),
            routing_type="ANYCAST" if self.view else "MULTICAST",
            durable=self.durable,
            filter=RED_ONLY if self.red_only else None,
            exclusive=self.exclusive,
            max_live_consumers=self.live_max,
            group_type=self.groups,
            group_buckets=self.buckets,
            group_rebalance=self.rebalances != STAY,
            group_rebalance_pause_dispatch=self.rebalances == PAUSE,
            group_first_key="first" if self.marks_first else None,
            non_destructive=self.non_destructive,
            ring_size=self.ring_size,
            overflow_policy=NO_POLICY if self.backed else self.policy,
            file_backed_metadata=self.backed,
            max_depth_messages=self.depth_messages,
            max_depth_bytes=self.depth_bytes,
            flow_resume_percent=self.resume_percent,
            hold_on_publish=self.holds,
            min_message_ttl=self.ttl_min,
            max_message_ttl=self.ttl_max,
            expiration=self.ttl_usual or -1,
            barrier_expression=f"{KEY} = '{BARRIER_KEY}'" if self.barriers else None,
            target_queue_depth=self.active_max or -1,
            expiry_policy=self.expiry_policy,
            consumer_replay_period=self.replay_s,
            consumer_selector=self.default_selector,
            exclusivity_policy=self.admits,
            max_consumers=self.consumers_max,
            consumers_before_dispatch=self.consumers_before,
            delay_before_dispatch=self.delay_before,
            purge_on_no_consumers=self.purge,
            delivery_semantics="at-most-once" if self.once else None,
            fairness_model=self.fairness,
            lease_period=self.lease_ms or -1,
            leasing="strict" if self.strict else None,
            max_deliveries=self.deliveries_max,
            max_cancels=self.cancels_max,
            max_backlog=self.backlog_all,
            max_per_subscription_backlog=self.backlog_each,
            underlying_address=self.view or None,
            default_publish_target=ADDRESS if self.view == WILDCARD else None,
            **(alerting if self.alerts else {}),
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


@dataclass(frozen=True, slots=True)
class PagePlan:
    """How an address pages. -1: not set."""

    messages_max: int = 2
    page_bytes: int = 400
    read_messages_max: int = -1
    ready_messages_max: int = -1
    limit_messages: int = -1
    limit_policy: str = "DROP"


@dataclass(frozen=True, slots=True)
class Plan:
    """A world: one address with its queues, and an address each for dead and for expired messages. With ``pages`` it
    stands on a disk.
    """

    queues: tuple[QueuePlan, ...] = (QueuePlan(),)
    address: AddressPlan = field(default_factory=AddressPlan)
    pages: PagePlan | None = None

    def route(self, resolver: Resolver) -> Route:
        """How clients send: to the address, as anycast where all queues are views; or to a view itself."""
        if self.queues[0].view == WILDCARD:
            return resolver.route(self.queues[0].home("q0"), None, "ANYCAST")
        return resolver.route(ADDRESS, None, "ANYCAST" if all(queue.view for queue in self.queues) else "MULTICAST")

    def config(self) -> BrokerConfig:
        """The broker's configuration: the address under test, and those of views, have the same settings."""
        address, pages = self.address, self.pages
        values: dict[str, Any] = {
            "redelivery_delay": address.redelivery_delay,
            "redelivery_delay_multiplier": address.multiplier,
            "max_redelivery_delay": address.redelivery_delay_max,
            "max_delivery_attempts": address.attempts_max,
            "max_size_messages": address.messages_max,
            "address_full_policy": address.full_policy,
            "auto_create_queues": False,
        }
        if address.dead_letter:
            values["dead_letter_address"] = DEAD
        if address.expiry:
            values["expiry_address"] = EXPIRED
        if pages is not None:
            values |= {
                "address_full_policy": "PAGE",
                "max_size_messages": pages.messages_max,
                "page_size_bytes": pages.page_bytes,
                "max_read_page_messages": pages.read_messages_max,
                "prefetch_page_messages": pages.ready_messages_max,
            }
            if pages.limit_messages >= 0:
                values |= {"page_limit_messages": pages.limit_messages, "page_full_policy": pages.limit_policy}
        queues = [plan.config(f"q{number}") for number, plan in enumerate(self.queues)]
        own = tuple(queue for queue in queues if queue.address == ADDRESS)
        views = tuple(
            AddressConfig(name=queue.address, routing_types=("ANYCAST",), queues=(queue,))
            for queue in queues
            if queue.address != ADDRESS
        )
        aside = tuple(
            AddressConfig(
                name=name,
                routing_types=("MULTICAST",),
                queues=(QueueConfig(name=name, address=name, routing_type="MULTICAST"),),
            )
            for name in (DEAD, EXPIRED)
        )
        return BrokerConfig(
            addresses=(AddressConfig(name=ADDRESS, routing_types=("MULTICAST",), queues=own), *views, *aside),
            address_settings=SettingsRepository(
                [SettingsEntry(match=name, values=values) for name in (ADDRESS, *(view.name for view in views))]
            ),
            message_expiry_scan_period=self.address.scan_period,
            address_queue_scan_period=-1,
        )
