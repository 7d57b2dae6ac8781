"""The element ``address-setting``: settings for every address that its ``match`` applies to.

Several address-settings may apply to one address; :mod:`artemis_py.config.settings` merges them into one
:class:`AddressSettings`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from artemis_py.config.tables.fields import (
    INT_SIZE,
    JAVA,
    LEVELS,
    NO_COUNTERS,
    NO_EFFECT,
    NOT_EMPTY,
    NOT_NEGATIVE,
    NOT_SPOKEN,
    OFF_OR_INT_SIZE,
    OFF_OR_NOT_NEGATIVE,
    OFF_OR_POSITIVE,
    OFF_OR_YEAR,
    PERCENT,
    POSITIVE,
    POWER_OF_TWO,
    RING,
    SHARE,
    SINGLE_NODE,
    boolean,
    choice,
    double,
    int32,
    int64,
    period,
    size,
    text,
)
from artemis_py.config.tables.queue_types import QUEUE_TYPES

FULL_POLICIES: Final = ("DROP", "FAIL", "PAGE", "BLOCK")
ROUTING_TYPES: Final = ("ANYCAST", "MULTICAST")
NO_GROUPS: Final = "NONE"
STICKY_GROUPS: Final = "STANDARD"
SHARED_GROUPS: Final = "SHARED_GROUPS"
_GROUP_TYPES: Final = (NO_GROUPS, STICKY_GROUPS, SHARED_GROUPS)
_OVERFLOW_POLICIES: Final = ("NONE", "RING", "PRODUCER_FLOW_CONTROL", "FLOW_TO_DISK", "REJECT")
_EXPIRY_POLICIES: Final = ("DELETE", "ROUTE_TO_ALTERNATE")
_EXCLUSIVITY_POLICIES: Final = (
    "NONE", "SESSION", "CONNECTION", "CONTAINER", "PRINCIPAL", "LINK", "SHARED_SUBSCRIPTION",
)  # fmt: skip
_DELIVERY_SEMANTICS: Final = ("at-least-once", "at-most-once")
_LEASINGS: Final = ("strict", "sublet")
_FAIRNESS_MODELS: Final = ("fast", "round-robin", "proportional")
_DELETION: Final = ("OFF", "FORCE")
_RATES: Final = ("MESSAGES_PER_SECOND", "MESSAGES_PER_MINUTE", "MESSAGES_PER_HOUR", "MESSAGES_PER_DAY")

# Stands for a default that is derived from another setting; no value of any setting is as small.
DERIVED: Final = -(2**63) - 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AddressSettings:
    """The effective settings of one address: merged, with every default filled in.

    Times are in ms unless the table says otherwise. None means "not set" where that has a meaning of its own.
    """

    # Dead letters and redelivery
    dead_letter_address: str | None = text(None, "address for undeliverable messages; without it they are discarded")
    auto_create_dead_letter_resources: bool = boolean(
        False, "on first use, create a queue for each source address on the dead-letter address"
    )
    dead_letter_queue_prefix: str = text("DLQ.", "prefix of the names of these queues")
    dead_letter_queue_suffix: str = text("", "suffix of the names of these queues", shown="empty")
    redelivery_delay: int = int64(0, "delay before a message is redelivered", unit="ms")
    redelivery_delay_multiplier: float = double(1.0, "factor applied to the delay for each further attempt")
    redelivery_collision_avoidance_factor: float = double(
        0.0, "share of the delay that is randomly added or subtracted", check=SHARE
    )
    max_redelivery_delay: int = int64(
        DERIVED, "maximum delay between attempts", unit="ms", shown="10 × redelivery-delay"
    )
    max_delivery_attempts: int = int32(
        10, "delivery attempts before a message goes to the dead-letter address; 0 or less: no limit"
    )
    send_to_dla_on_no_route: bool = boolean(False, "send messages that reach no queue to the dead-letter address")

    # Expiry
    expiry_address: str | None = text(None, "address for expired messages; without it they are discarded")
    auto_create_expiry_resources: bool = boolean(
        False, "on first use, create a queue for each source address on the expiry address"
    )
    expiry_queue_prefix: str = text("EXP.", "prefix of the names of these queues")
    expiry_queue_suffix: str = text("", "suffix of the names of these queues", shown="empty")
    no_expiry: bool = boolean(False, "remove the expiration from every message")
    expiry_delay: int = int64(-1, "time to live of messages without an expiration; -1: none", unit="ms")
    min_expiry_delay: int = int64(-1, "minimum time to live, unless expiry-delay is set", unit="ms")
    max_expiry_delay: int = int64(-1, "maximum time to live, unless expiry-delay is set", unit="ms")

    # Full addresses and paging
    max_size_bytes: int = size(-1, "the address is full beyond this limit; -1: no limit")
    max_size_messages: int = int32(-1, "the address is full beyond this limit; -1: no limit", unit="messages")
    address_full_policy: str = choice(
        "PAGE",
        FULL_POLICIES,
        "what happens to messages sent to a full address",
    )
    max_size_bytes_reject_threshold: int = int64(
        -1, "AMQP senders are refused beyond this limit", unit="bytes", ignored=NOT_SPOKEN
    )
    page_size_bytes: int = size(10 * 1024**2, "size of a page file", check=INT_SIZE)
    page_limit_bytes: int | None = size(
        None, "maximum size of the pages of an address, in whole pages", check=OFF_OR_POSITIVE
    )
    page_limit_messages: int | None = int64(
        None,
        "maximum messages in pages, of the address' deepest queue",
        unit="messages",
        check=OFF_OR_POSITIVE,
    )
    page_full_policy: str | None = choice(None, ("DROP", "FAIL"), "what happens when the page limit is reached")
    page_max_cache_size: int = int32(5, "page files kept in memory", tuning=NO_EFFECT)
    max_read_page_messages: int = int32(
        -1,
        "limit of a queue's paged messages in memory, ready or with consumers",
        unit="messages",
        check=OFF_OR_INT_SIZE,
    )
    max_read_page_bytes: int = size(
        DERIVED,
        "limit of a queue's paged messages in memory, ready or with consumers",
        check=OFF_OR_INT_SIZE,
        shown="2 × page-size-bytes",
    )
    prefetch_page_messages: int = int32(
        DERIVED,
        "limit of a queue's paged messages that are ready in memory",
        check=OFF_OR_INT_SIZE,
        shown="max-read-page-messages",
    )
    prefetch_page_bytes: int = size(
        DERIVED,
        "limit of a queue's paged messages that are ready in memory",
        check=OFF_OR_INT_SIZE,
        shown="max-read-page-bytes",
    )
    disk_full_policy: str = choice("BLOCK", ("DROP", "FAIL", "BLOCK"), "what happens to messages when the disk is full")

    # What is created and deleted by itself
    auto_create_queues: bool = boolean(True, "create a queue when a client sends to it or subscribes")
    auto_delete_queues: bool = boolean(True, "delete such a queue when it is empty and unused")
    auto_delete_created_queues: bool = boolean(False, "also delete declared queues in this way")
    auto_delete_queues_delay: int = int64(0, "how long such a queue must be idle first", unit="ms", check=NOT_NEGATIVE)
    auto_delete_queues_message_count: int = int64(
        0,
        "delete with at most this many messages; -1: any number",
        unit="messages",
        check=OFF_OR_NOT_NEGATIVE,
    )
    auto_delete_queues_skip_usage_check: bool = boolean(False, "also delete queues that were never used")
    auto_create_addresses: bool = boolean(True, "create an address when a client sends to it or subscribes")
    auto_delete_addresses: bool = boolean(True, "delete such an address when it has no queue left")
    auto_delete_addresses_delay: int = int64(
        0, "how long such an address must be without queues first", unit="ms", check=NOT_NEGATIVE
    )
    auto_delete_addresses_skip_usage_check: bool = boolean(False, "also delete addresses that never had a queue")
    default_queue_routing_type: str = choice("MULTICAST", ROUTING_TYPES, "routing type of auto-created queues")
    default_address_routing_type: str = choice("MULTICAST", ROUTING_TYPES, "routing type of auto-created addresses")

    # Defaults for queues
    default_max_consumers: int = int32(-1, "maximum consumers of a queue; -1: no limit", unit="consumers")
    default_purge_on_no_consumers: bool = boolean(
        False, "empty a queue when its last consumer leaves; not for declared queues"
    )
    default_exclusive_queue: bool = boolean(False, "one consumer at a time gets all messages")
    default_non_destructive: bool = boolean(False, "acknowledged messages stay in the queue")
    default_consumers_before_dispatch: int = int32(
        0, "consumers that must be attached before delivery begins", unit="consumers"
    )
    default_delay_before_dispatch: int = int64(-1, "maximum time to wait for these consumers; -1: no limit", unit="ms")
    default_ring_size: int = int64(
        -1, "messages that a ring queue keeps; 0: none, -1: no ring", unit="messages", check=RING
    )
    default_last_value_queue: bool = boolean(
        False, "keep only the last message of each key", aliases=("last-value-queue",)
    )
    default_last_value_key: str | None = text(
        None, "header with the key; setting it also makes queues last-value queues", shown="_AMQ_LVQ_NAME"
    )
    default_group_rebalance: bool = boolean(False, "reassign message groups when a consumer joins")
    default_group_rebalance_pause_dispatch: bool = boolean(
        False, ("before reassigning, wait until delivered messages are settled")
    )
    default_group_buckets: int = int32(-1, "buckets that groups are hashed into; 0: no groups, -1: one per group")
    default_group_first_key: str | None = text(
        None, ("header (true) on the first message of a group that a consumer gets")
    )
    default_consumer_window_size: int = int32(1024**2, "window of Core consumers", unit="bytes", ignored=NOT_SPOKEN)

    # Defaults for queues: what Qpid's queues can do beyond Artemis'
    default_queue_type: str | None = choice(
        None,
        QUEUE_TYPES,
        "type of a queue (docs/queues.md); lvq is last-value; none: the other settings decide",
    )
    default_priority_levels: int | None = int32(
        None, "levels of a priority queue; the ten priorities are mapped to them", check=LEVELS
    )
    default_sort_key: str | None = text(None, "header whose text a sorted queue sorts by", check=NOT_EMPTY)
    default_priority_expression: str | None = text(
        None,
        "expression of headers, numbers, + - * / % and parentheses; the largest value is first",
        check=NOT_EMPTY,
    )
    default_group_type: str = choice(STICKY_GROUPS, _GROUP_TYPES, "how long a group stays with its consumer")
    default_group_key: str | None = text(
        None,
        "header with the name of the group",
        check=NOT_EMPTY,
        shown="JMSXGroupID",
    )
    default_fallback_group: str = text(
        "qpid.no-group", "group for messages without one, in shared groups", check=NOT_EMPTY
    )
    default_min_message_ttl: int = int64(
        0, "minimum time to live of messages that expire; 0: no limit", unit="ms", check=NOT_NEGATIVE
    )
    default_max_message_ttl: int = int64(
        0, "maximum time to live of all messages; 0: no limit", unit="ms", check=NOT_NEGATIVE
    )
    default_expiration: int = period(
        -1,
        "time to live of messages without one; -1: none",
        check=OFF_OR_YEAR,
    )
    default_consumer_replay_period: int | None = int64(
        None,
        "how old the messages are that new consumers get at most; none: any age",
        unit="s",
        check=NOT_NEGATIVE,
    )
    default_consumer_selector: str | None = text(None, "selector of consumers that set none", check=NOT_EMPTY)
    default_hold_on_publish: bool = boolean(
        False, "hold a message until the time in its header x-qpid-not-valid-before"
    )
    default_barrier_expression: str | None = text(
        None,
        "selector of barriers: a barrier waits until all messages before it are settled, then goes to every consumer, "
        "then messages behind it follow; the empty text: none",
    )
    default_target_queue_depth: int = int64(
        -1,
        "how many messages, in order of arrival, are active; others are not delivered or shown; -1: all",
        unit="messages",
        check=OFF_OR_POSITIVE,
    )
    default_expiry_policy: str | None = choice(
        None,
        _EXPIRY_POLICIES,
        "expired messages are discarded, or sent to the expiry-address, else the dead-letter-address; none: sent to "
        "the expiry-address if there is one",
    )
    default_overflow_policy: str = choice("NONE", _OVERFLOW_POLICIES, "what a queue beyond its maximum depth does")
    default_max_depth_messages: int = int64(
        -1, "maximum depth of a queue; -1: no limit", unit="messages", check=OFF_OR_NOT_NEGATIVE
    )
    default_max_depth_bytes: int = size(-1, "maximum depth of a queue; -1: no limit", check=OFF_OR_NOT_NEGATIVE)
    default_flow_resume_percent: float = double(
        80.0, "senders resume when the depth falls to this share of its limits", unit="%", check=PERCENT
    )
    default_exclusivity_policy: str = choice(
        "NONE", _EXCLUSIVITY_POLICIES, "a queue admits only consumers with the same owner as the first one"
    )
    default_max_live_consumers: int = int32(
        0,
        "consumers that get messages while the others wait; 0: all",
        unit="consumers",
        check=NOT_NEGATIVE,
    )
    default_delivery_semantics: str | None = choice(
        None,
        _DELIVERY_SEMANTICS,
        "when a message leaves a queue: acknowledged (at-least-once, the default) or sent (at-most-once)",
    )
    default_fairness_model: str | None = choice(
        None,
        _FAIRNESS_MODELS,
        "which consumer with room is next: the first (fast), each in turn (round-robin), or that with the smallest "
        "share of its backlog in use (proportional, the default with a backlog)",
    )
    default_max_backlog: int = int32(
        -1, "maximum unacknowledged messages of a queue; -1: no limit", unit="messages", check=OFF_OR_POSITIVE
    )
    default_max_per_subscription_backlog: int | None = int32(
        None,
        "maximum unacknowledged messages that a consumer may ask for with max-backlog, else it has one; -1: no limit; "
        "none: 1 on a queue with another attribute of AMPS, else no limit",
        unit="messages",
        check=OFF_OR_POSITIVE,
    )
    default_lease_period: int = period(
        -1,
        "how long a consumer may hold a message; then it goes back to its queue; -1: while the consumer is there",
        check=OFF_OR_YEAR,
    )
    default_leasing: str | None = choice(
        None,
        _LEASINGS,
        "who may acknowledge a message: its holder (strict), or any consumer of the queue (sublet, the default)",
    )
    default_max_deliveries: int = int32(
        0,
        "deliveries, however they end, after which a message is dead; 0: no limit",
        unit="deliveries",
        check=NOT_NEGATIVE,
    )
    default_max_cancels: int = int32(
        0, "cancels (NACK) after which a message is dead; 0: no limit", unit="cancels", check=NOT_NEGATIVE
    )
    default_file_backed_metadata: bool = boolean(
        False,
        "keep messages beyond the maximum depth, else beyond 1,000, in pages, as FLOW_TO_DISK does",
    )
    default_alert_threshold_message_age: int = int64(
        0, "alert when a message is older than this; 0: never", unit="ms", check=NOT_NEGATIVE
    )
    default_alert_threshold_message_size: int = size(
        0, "alert for a message of this size or more; 0: never", check=NOT_NEGATIVE
    )
    default_alert_threshold_depth_messages: int = int64(
        0, "alert at this depth or more; 0: never", unit="messages", check=NOT_NEGATIVE
    )
    default_alert_threshold_depth_bytes: int = size(0, "alert at this depth or more; 0: never", check=NOT_NEGATIVE)
    default_alert_repeat_gap: int = int64(
        30_000, "minimum time between two equal alerts", unit="ms", check=NOT_NEGATIVE
    )

    # Queues of later
    retroactive_message_count: int = int64(
        0, "messages kept for queues created later, per routing type", unit="messages", check=NOT_NEGATIVE
    )

    # Duplicates, metrics, time stamps
    id_cache_size: int | None = int32(
        None, "duplicate ids remembered", check=NOT_NEGATIVE, shown="id-cache-size of core"
    )
    enable_metrics: bool = boolean(True, "export metrics of the address and its queues")
    enable_ingress_timestamp: bool = boolean(False, "add the time of arrival as header ingress-timestamp")

    # What this version does without
    redistribution_delay: int = int64(-1, "delay before messages are redistributed in the cluster", ignored=SINGLE_NODE)
    slow_consumer_threshold: int = int64(
        -1, "rate of acknowledgements below which a consumer is slow; -1: none is", check=OFF_OR_POSITIVE
    )
    slow_consumer_threshold_measurement_unit: str = choice("MESSAGES_PER_SECOND", _RATES, "unit of this rate")
    slow_consumer_policy: str = choice(
        "NOTIFY", ("KILL", "NOTIFY"), "close the connection of slow consumers, or report them"
    )
    slow_consumer_check_period: int = int64(5, "how often consumers are checked", unit="s", check=POSITIVE)
    config_delete_queues: str = choice(
        "OFF", _DELETION, "FORCE: delete queues removed from the file, with their messages"
    )
    config_delete_addresses: str = choice(
        "OFF", _DELETION, "FORCE: delete addresses removed from the file, with their queues and messages"
    )
    config_delete_diverts: str = choice("OFF", _DELETION, "FORCE: delete diverts removed from the file")
    message_counter_history_day_limit: int = int32(0, "days of message counters", unit="days", tuning=NO_COUNTERS)
    management_browse_page_size: int = int32(
        200, "messages on a page of a browsed queue; at most 1,000 are shown", check=POSITIVE
    )
    management_message_attribute_size_limit: int = int32(
        256, "characters of a header or body in the list of a browsed queue; -1: 65,536", check=OFF_OR_NOT_NEGATIVE
    )
    auto_create_jms_queues: bool = boolean(True, "old name of a deprecated setting", tuning=NO_EFFECT)
    auto_delete_jms_queues: bool = boolean(True, "old name of a deprecated setting", tuning=NO_EFFECT)
    auto_create_jms_topics: bool = boolean(True, "old name of a deprecated setting", tuning=NO_EFFECT)
    auto_delete_jms_topics: bool = boolean(True, "old name of a deprecated setting", tuning=NO_EFFECT)
    initial_queue_buffer_size: int = int32(8192, "initial capacity of a queue", check=POWER_OF_TWO, tuning=JAVA)

    def __post_init__(self) -> None:
        """Fill in the defaults that follow from other settings."""
        self._derive("max_redelivery_delay", 10 * self.redelivery_delay)
        self._derive("max_read_page_bytes", 2 * self.page_size_bytes)
        self._derive("prefetch_page_messages", self.max_read_page_messages)
        self._derive("prefetch_page_bytes", self.max_read_page_bytes)

    @property
    def limits_memory(self) -> bool:
        """Is there a limit on what an address has in memory?"""
        return max(self.max_size_bytes, self.max_size_messages) > -1

    @property
    def limits_pages(self) -> bool:
        """Is there a limit on pages? Without a ``page_full_policy`` it has no effect."""
        return max(self.page_limit_bytes or -1, self.page_limit_messages or -1) > 0

    def _derive(self, attribute: str, value: int) -> None:
        if getattr(self, attribute) == DERIVED:
            object.__setattr__(self, attribute, value)
