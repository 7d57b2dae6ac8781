"""What the elements of broker.xml declare, each with its place in the file: addresses, queues and diverts, limits of
users, the retention of the journal, the part in a pair of brokers, and where users come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.fields import (
    NO_EFFECT,
    NOT_EMPTY,
    NOT_NEGATIVE,
    OFF_OR_NOT_NEGATIVE,
    RING,
    boolean,
    choice,
    inherited,
    int32,
    int64,
    settings_of,
    text,
    texts,
)

ANYCAST: Final = "ANYCAST"
MULTICAST: Final = "MULTICAST"
DIVERT_ROUTING_TYPES: Final = ("STRIP", "PASS", ANYCAST, MULTICAST)
SCHEDULES: Final = "$schedules"
"""The broker's own address and queue for messages that are sent again and again; no address-setting counts there."""
CURSOR_TTL_S_DEFAULT: Final = 86_400

_SETTINGS: Final = settings_of(AddressSettings)


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
    """``journal-retention-directory``: where closed journal files are kept, and how long or how many bytes; None: no
    such limit.
    """

    directory: str
    period_ms: int | None
    storage_limit: int | None
    cursor_ttl_s: int
    """How long a cursor that is not moved holds files back, unless it sets a time itself."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UserLimits:
    """``resource-limit-setting``: what one login may have at once; -1: no limit."""

    connections_max: int = -1
    queues_max: int = -1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """A queue as declared. None: the attribute is absent, and the address-setting's default applies."""

    name: str
    address: str
    routing_type: str
    durable: bool = boolean(True, "the queue's persistent messages survive a restart")
    filter: str | None = text(None, "selector (in filter's attribute string) that messages must match")
    user: str | None = text(None, "owner of the queue", ignored="permissions do not ask who owns a queue")
    max_consumers: int | None = int32(
        None, "maximum consumers; -1: no limit", check=OFF_OR_NOT_NEGATIVE, shown="default-max-consumers"
    )
    purge_on_no_consumers: bool | None = boolean(None, "empty the queue when its last consumer leaves", shown="false")
    exclusive: bool | None = boolean(None, "one consumer at a time gets all messages", shown="default-exclusive-queue")
    non_destructive: bool | None = boolean(
        None, "acknowledged messages stay in the queue", shown="default-non-destructive"
    )
    consumers_before_dispatch: int | None = int32(
        None, "consumers that must be attached before delivery begins", shown="default-consumers-before-dispatch"
    )
    delay_before_dispatch: int | None = int64(
        None, "maximum time to wait for them; -1: no limit", unit="ms", shown="default-delay-before-dispatch"
    )
    ring_size: int | None = int64(
        None,
        "messages that the ring keeps; 0: none, -1: no ring",
        unit="messages",
        check=RING,
        shown="default-ring-size",
    )
    enabled: bool | None = boolean(None, "messages are routed to the queue", shown="true")
    last_value: bool | None = inherited(_SETTINGS["default-last-value-queue"])
    last_value_key: str | None = inherited(_SETTINGS["default-last-value-key"])
    group_rebalance: bool | None = inherited(_SETTINGS["default-group-rebalance"])
    group_rebalance_pause_dispatch: bool | None = inherited(_SETTINGS["default-group-rebalance-pause-dispatch"])
    group_buckets: int | None = inherited(_SETTINGS["default-group-buckets"])
    group_first_key: str | None = inherited(_SETTINGS["default-group-first-key"])
    queue_type: str | None = inherited(_SETTINGS["default-queue-type"])
    priority_levels: int | None = inherited(_SETTINGS["default-priority-levels"])
    sort_key: str | None = inherited(_SETTINGS["default-sort-key"])
    priority_expression: str | None = inherited(_SETTINGS["default-priority-expression"])
    group_type: str | None = inherited(_SETTINGS["default-group-type"])
    group_key: str | None = inherited(_SETTINGS["default-group-key"])
    fallback_group: str | None = inherited(_SETTINGS["default-fallback-group"])
    min_message_ttl: int | None = inherited(_SETTINGS["default-min-message-ttl"])
    max_message_ttl: int | None = inherited(_SETTINGS["default-max-message-ttl"])
    expiration: int | None = inherited(_SETTINGS["default-expiration"])
    consumer_replay_period: int | None = inherited(_SETTINGS["default-consumer-replay-period"])
    consumer_selector: str | None = inherited(_SETTINGS["default-consumer-selector"])
    hold_on_publish: bool | None = inherited(_SETTINGS["default-hold-on-publish"])
    barrier_expression: str | None = inherited(_SETTINGS["default-barrier-expression"])
    target_queue_depth: int | None = inherited(_SETTINGS["default-target-queue-depth"])
    expiry_policy: str | None = inherited(_SETTINGS["default-expiry-policy"])
    overflow_policy: str | None = inherited(_SETTINGS["default-overflow-policy"])
    max_depth_messages: int | None = inherited(_SETTINGS["default-max-depth-messages"])
    max_depth_bytes: int | None = inherited(_SETTINGS["default-max-depth-bytes"])
    flow_resume_percent: float | None = inherited(_SETTINGS["default-flow-resume-percent"])
    exclusivity_policy: str | None = inherited(_SETTINGS["default-exclusivity-policy"])
    max_live_consumers: int | None = inherited(_SETTINGS["default-max-live-consumers"])
    delivery_semantics: str | None = inherited(_SETTINGS["default-delivery-semantics"])
    fairness_model: str | None = inherited(_SETTINGS["default-fairness-model"])
    max_backlog: int | None = inherited(_SETTINGS["default-max-backlog"])
    max_per_subscription_backlog: int | None = inherited(_SETTINGS["default-max-per-subscription-backlog"])
    lease_period: int | None = inherited(_SETTINGS["default-lease-period"])
    leasing: str | None = inherited(_SETTINGS["default-leasing"])
    max_deliveries: int | None = inherited(_SETTINGS["default-max-deliveries"])
    max_cancels: int | None = inherited(_SETTINGS["default-max-cancels"])
    file_backed_metadata: bool | None = inherited(_SETTINGS["default-file-backed-metadata"])
    alert_threshold_message_age: int | None = inherited(_SETTINGS["default-alert-threshold-message-age"])
    alert_threshold_message_size: int | None = inherited(_SETTINGS["default-alert-threshold-message-size"])
    alert_threshold_depth_messages: int | None = inherited(_SETTINGS["default-alert-threshold-depth-messages"])
    alert_threshold_depth_bytes: int | None = inherited(_SETTINGS["default-alert-threshold-depth-bytes"])
    alert_repeat_gap: int | None = inherited(_SETTINGS["default-alert-repeat-gap"])
    underlying_address: str | None = text(
        None,
        "addresses whose messages the queue gets, too, separated by commas; each may be a wildcard",
        check=NOT_EMPTY,
    )
    default_publish_target: str | None = text(
        None,
        "the underlying address to which messages go that are sent to the queue's own address",
        check=NOT_EMPTY,
        shown="the only underlying address",
    )
    recovery_point: str | None = text(
        None,
        "where in the retained log the queue begins when it is new, or when this value was changed: `epoch` (the "
        "beginning), `now`, `creation` (when the queue was made), the bookmark of a message, after which it begins, or "
        "a time in UTC as 20260131T235959Z",
        check=NOT_EMPTY,
        shown="epoch for a view of a retained log, else now",
    )
    dead_letter_address: str | None = inherited(_SETTINGS["dead-letter-address"])
    max_delivery_attempts: int | None = inherited(_SETTINGS["max-delivery-attempts"])
    origin: Origin = NOWHERE
    origins: tuple[tuple[str, Origin], ...] = ()

    def origin_of(self, attribute: str) -> Origin:
        """Return the place of ``attribute``, or of the queue if the attribute is not set."""
        return dict(self.origins).get(attribute, self.origin)


# For each attribute of a queue whose row shows one, the address-setting that counts where the attribute is absent.
QUEUE_DEFAULTS: Final = {
    row.attribute: _SETTINGS[row.shown].attribute
    for row in settings_of(QueueConfig).values()
    if row.shown is not None and row.shown in _SETTINGS
}

# The queue's own defaults: address-settings are not asked for these (of a declared queue).
QUEUE_CONSTANTS: Final = {
    "purge_on_no_consumers": False,
    "enabled": True,
    "underlying_address": None,
    "default_publish_target": None,
    "recovery_point": None,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UsersFileConfig:
    """``users-file``: where users and roles are, relative to the folder of broker.xml. ``first_user`` is made with
    ``first_role`` at a start without the file; "": nobody is.
    """

    users: str
    roles: str
    first_user: str = ""
    first_role: str = ""
    origin: Origin = NOWHERE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AddressConfig:
    """An address as declared, with its queues in the order of the file."""

    name: str
    routing_types: tuple[str, ...] = ()
    queues: tuple[QueueConfig, ...] = ()
    origin: Origin = NOWHERE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DivertConfig:
    """A divert: copies (or, if exclusive, moves) messages sent to ``address`` to ``forwarding_addresses``."""

    name: str
    address: str = text("", "the address whose messages are diverted", shown="required")
    forwarding_addresses: tuple[str, ...] = texts(
        (), "address to forward to; several are separated by commas", name="forwarding-address", shown="required"
    )
    routing_name: str = text("", "name of the divert in routing", shown="the divert's name")
    exclusive: bool = boolean(False, "forward only: messages do not go to the address's own queues")
    filter: str | None = text(None, "selector (in filter's attribute string) that messages must match")
    routing_type: str = choice(
        "STRIP",
        DIVERT_ROUTING_TYPES,
        "routing type of forwarded messages: none (STRIP), the message's own (PASS), or the one named",
    )
    origin: Origin = NOWHERE


# ---- ha-policy/shared-store: two brokers on one data directory -----------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStoreConfig:
    """What a broker of a pair does. A primary takes the lock whenever it is free; a backup takes it when the primary
    died, and gives it back when a primary waits for it.
    """

    is_backup: bool
    failover_on_shutdown: bool = boolean(
        False, "after an orderly stop the other broker takes over; false: it waits until this one, or a primary, starts"
    )
    wait_for_activation: bool = boolean(
        True,
        "the start ends when the broker has the lock",
        tuning="HTTP answers while a broker waits, in either case",
    )
    allow_failback: bool = boolean(True, "a backup that took over gives the lock to a primary that waits for it")
    restart_backup: bool = boolean(True, "after that it waits as a backup again; false: it ends")
    failback_delay: int = int64(5000, "delay before a failback", unit="ms", check=NOT_NEGATIVE, tuning=NO_EFFECT)
    origin: Origin = NOWHERE


PRIMARY_ELEMENTS: Final = ("failback-delay", "failover-on-shutdown", "wait-for-activation")
BACKUP_ELEMENTS: Final = ("allow-failback", "failback-delay", "failover-on-shutdown", "restart-backup")
POLICY_ROLES: Final = {"primary": False, "master": False, "backup": True, "slave": True}
"""The elements in ``shared-store``; true: a backup."""


# ---- where users come from -----------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JaasConfig:
    """A login.config, and the domains in it for clients without and with a certificate. ``file`` is its path."""

    file: str
    domain: str
    certificate_domain: str | None = None
    origin: Origin = NOWHERE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapUsers:
    """The first users of Artemis' basic security manager: one user, or the paths of a file of users and one of roles.
    ``password`` never appears in a ``repr``.
    """

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    role: str | None = None
    user_file: str | None = None
    role_file: str | None = None
    origin: Origin = NOWHERE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticatorConfig:
    """An ``authenticator`` by the name of its entry point, with options. Values may be secret: no ``repr`` has them."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    origin: Origin = NOWHERE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSources:
    """All sources of users that the configuration names, in the order in which they are asked. ``has_files``: there is
    a users file, named or beside broker.xml, or the start makes one.
    """

    jaas: JaasConfig | None = None
    bootstrap: BootstrapUsers | None = None
    has_files: bool = False
    authenticators: tuple[AuthenticatorConfig, ...] = ()

    @property
    def are_known(self) -> bool:
        """Is there any?"""
        return self.of_instance or self.has_files or bool(self.authenticators)

    @property
    def of_instance(self) -> bool:
        """Do the files of an Artemis instance say who may log in? Then files that are merely there do not count."""
        return self.jaas is not None or self.bootstrap is not None


# ---- jolokia-access.xml of an Artemis instance ---------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WebAccess:
    """``allow-origin`` in lower case, in which ``*`` stands for any text, and whether there is ``strict-checking``."""

    origins: tuple[str, ...] = ()
    is_strict: bool = False
    origin: Origin = NOWHERE
