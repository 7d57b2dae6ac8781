"""What ``addresses`` and ``diverts`` declare: addresses, queues, diverts, each with the place where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, final

from artemis_py.config.fields import (
    NO_GROUPS,
    NO_LAST_VALUE,
    NOT_ENFORCED,
    OFF_OR_NOT_NEGATIVE,
    RING,
    boolean,
    choice,
    int32,
    int64,
    text,
    texts,
)

ANYCAST: Final = "ANYCAST"
MULTICAST: Final = "MULTICAST"
DIVERT_ROUTING_TYPES: Final = ("STRIP", "PASS", ANYCAST, MULTICAST)


class Origin(NamedTuple):
    """A place in a configuration file; ``line`` counts from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


NOWHERE: Final = Origin("default", 0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionConfig:
    """``journal-retention-directory``: where closed journal files are kept, and how long or how much of them; None: no
    such limit.
    """

    directory: str
    period_ms: int | None
    storage_limit: int | None
    cursor_ttl_s: int
    """How long a cursor that is not moved holds files back, when it does not say itself."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """A queue as it was declared. None: the attribute is absent, and the address-setting's default counts."""

    name: str
    address: str
    routing_type: str
    durable: bool = boolean(True, "the queue is meant to outlive a restart; this version keeps no queue over one")
    filter: str | None = text(None, "selector (in filter's attribute string) that messages must match")
    user: str | None = text(None, "owner of the queue", ignored=NOT_ENFORCED)
    max_consumers: int | None = int32(
        None, "consumers the queue allows; -1: any number", check=OFF_OR_NOT_NEGATIVE, shown="default-max-consumers"
    )
    purge_on_no_consumers: bool | None = boolean(None, "empty the queue when its last consumer leaves", shown="false")
    exclusive: bool | None = boolean(None, "one consumer at a time gets all messages", shown="default-exclusive-queue")
    non_destructive: bool | None = boolean(
        None, "acknowledged messages stay in the queue", shown="default-non-destructive"
    )
    consumers_before_dispatch: int | None = int32(
        None, "consumers that must be there before delivery begins", shown="default-consumers-before-dispatch"
    )
    delay_before_dispatch: int | None = int64(
        None, "how long to wait for them at most; -1: for ever", unit="ms", shown="default-delay-before-dispatch"
    )
    ring_size: int | None = int64(
        None, "messages the ring keeps; -1: no ring", unit="messages", check=RING, shown="default-ring-size"
    )
    enabled: bool | None = boolean(None, "messages are routed to the queue", shown="true")
    last_value: bool | None = boolean(
        None, "keep only the last message of each key", shown="default-last-value-queue", ignored=NO_LAST_VALUE
    )
    last_value_key: str | None = text(
        None, "the property that is the key", shown="default-last-value-key", ignored=NO_LAST_VALUE
    )
    group_rebalance: bool | None = boolean(
        None, "hand groups out anew when a consumer joins", shown="default-group-rebalance", ignored=NO_GROUPS
    )
    group_rebalance_pause_dispatch: bool | None = boolean(
        None,
        "pause delivery while groups are handed out anew",
        shown="default-group-rebalance-pause-dispatch",
        ignored=NO_GROUPS,
    )
    group_buckets: int | None = int32(
        None, "buckets that groups are sorted into; -1: none", shown="default-group-buckets", ignored=NO_GROUPS
    )
    group_first_key: str | None = text(
        None,
        "property set on the first message of a group",
        shown="default-group-first-key",
        ignored=NO_GROUPS,
    )
    origin: Origin = NOWHERE
    origins: tuple[tuple[str, Origin], ...] = ()

    def origin_of(self, attribute: str) -> Origin:
        """Return where ``attribute`` was written, the queue's own place if it was not written at all."""
        return dict(self.origins).get(attribute, self.origin)


# For each attribute of a queue, the address-setting that counts where the attribute is absent.
QUEUE_DEFAULTS: Final = {
    "max_consumers": "default_max_consumers",
    "exclusive": "default_exclusive_queue",
    "non_destructive": "default_non_destructive",
    "consumers_before_dispatch": "default_consumers_before_dispatch",
    "delay_before_dispatch": "default_delay_before_dispatch",
    "ring_size": "default_ring_size",
    "last_value": "default_last_value_queue",
    "last_value_key": "default_last_value_key",
    "group_rebalance": "default_group_rebalance",
    "group_rebalance_pause_dispatch": "default_group_rebalance_pause_dispatch",
    "group_buckets": "default_group_buckets",
    "group_first_key": "default_group_first_key",
}

# The queue's own defaults: address-settings are not asked for these (of a declared queue).
QUEUE_CONSTANTS: Final = {"purge_on_no_consumers": False, "enabled": True}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AddressConfig:
    """An address as it was declared, with its queues in the order of the file."""

    name: str
    routing_types: tuple[str, ...] = ()
    queues: tuple[QueueConfig, ...] = ()
    origin: Origin = NOWHERE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DivertConfig:
    """A divert: copies (or, when exclusive, moves) what is sent to ``address`` to ``forwarding_addresses``."""

    name: str
    address: str = text("", "the address whose messages are diverted", shown="required")
    forwarding_addresses: tuple[str, ...] = texts(
        (), "where they go; several addresses with commas between", name="forwarding-address", shown="required"
    )
    routing_name: str = text("", "name of the divert in routing", shown="the divert's name")
    exclusive: bool = boolean(False, "messages go to the forwarding address only, not to the address's queues")
    filter: str | None = text(None, "selector (in filter's attribute string) that messages must match")
    routing_type: str = choice(
        "STRIP",
        DIVERT_ROUTING_TYPES,
        "routing type of what is forwarded: none (STRIP), the message's own (PASS), or the one named",
    )
    origin: Origin = NOWHERE
