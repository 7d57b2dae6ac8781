"""A configuration while it is read: first the XML, then the properties that override it.

Everything here is mutable; :mod:`artemis_py.config.reader` turns it into frozen settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

from artemis_py.config.problems import Problems
from artemis_py.config.tables.declarations import (
    NOWHERE,
    AuthenticatorConfig,
    BootstrapUsers,
    JaasConfig,
    Origin,
    RetentionConfig,
    SharedStoreConfig,
    UserLimits,
    UsersFileConfig,
    WebAccess,
)
from artemis_py.config.tables.fields import Setting


@final
@dataclass(eq=False, repr=False)
class Values:
    """Values by attribute, each with its place in the file."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)

    def put(self, attribute: str, value: Any, origin: Origin) -> None:
        """Set a value."""
        self.values[attribute] = value
        self.origins[attribute] = origin

    def remove(self, attribute: str) -> None:
        """Remove a value, so that the default applies."""
        self.values.pop(attribute, None)
        self.origins.pop(attribute, None)


@final
@dataclass(eq=False, repr=False)
class QueueDraft:
    """A queue; ``written`` holds its attributes."""

    name: str
    address: str
    routing_type: str
    origin: Origin
    written: Values = field(default_factory=Values)


@final
@dataclass(eq=False, repr=False)
class AddressDraft:
    """An address; ``queues`` are its own, by name."""

    name: str
    origin: Origin
    routing_types: list[str] = field(default_factory=list)
    queues: dict[str, QueueDraft] = field(default_factory=dict)


@final
@dataclass(eq=False, repr=False)
class NamedDraft:
    """A divert by its name, or an address-setting by its match, with its values."""

    name: str
    origin: Origin
    written: Values = field(default_factory=Values)


@final
@dataclass(eq=False, repr=False)
class BridgeDraft:
    """A bridge with its values; ``connectors`` are the names of those that it refers to."""

    name: str
    origin: Origin
    written: Values = field(default_factory=Values)
    connectors: list[tuple[str, Origin]] = field(default_factory=list)


@final
@dataclass(eq=False, repr=False)
class AcceptorDraft:
    """An acceptor, or a connector: the parsed URI, before its parameters are checked."""

    name: str
    origin: Origin
    scheme: str = "tcp"
    host: str = "localhost"
    port: int = 61616
    params: dict[str, str] = field(default_factory=dict)
    param_origins: dict[str, Origin] = field(default_factory=dict)


@final
@dataclass(eq=False, repr=False)
class SecurityDraft:
    """A security-setting: permission to roles, before role mappings."""

    match: str
    origin: Origin
    roles: dict[str, list[str]] = field(default_factory=dict)


@final
@dataclass(eq=False, repr=False)
class Draft:
    """Everything that was read so far.

    ``ignored`` maps names without effect to their first place and the reason; ``tuning`` does so for settings whose
    absence no user would notice. ``doubtful`` are the booleans that are false only because they read ``1`` or are
    empty.
    """

    file: str
    problems: Problems
    origin: Origin = NOWHERE
    core: Values = field(default_factory=Values)
    wildcards: Values = field(default_factory=Values)
    entries: dict[str, NamedDraft] = field(default_factory=dict)
    addresses: dict[str, AddressDraft] = field(default_factory=dict)
    queues: dict[str, QueueDraft] = field(default_factory=dict)
    diverts: dict[str, NamedDraft] = field(default_factory=dict)
    acceptors: list[AcceptorDraft] = field(default_factory=list)
    connectors: dict[str, tuple[str, Origin]] = field(default_factory=dict)
    """Their URIs, which are parsed when a bridge needs them."""
    bridges: dict[str, BridgeDraft] = field(default_factory=dict)
    security: dict[str, SecurityDraft] = field(default_factory=dict)
    role_mappings: list[tuple[str, list[str]]] = field(default_factory=list)
    jaas: JaasConfig | None = None
    bootstrap: BootstrapUsers | None = None
    has_users_beside: bool = False
    authenticators: list[AuthenticatorConfig] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    user_limits: dict[str, UserLimits] = field(default_factory=dict)
    ignored: dict[str, tuple[Origin, str]] = field(default_factory=dict)
    tuning: dict[str, Origin] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)
    retention: RetentionConfig | None = None
    retention_origin: Origin = NOWHERE
    users_file: UsersFileConfig | None = None
    shared_store: SharedStoreConfig | None = None
    web_access: WebAccess | None = None
    files: dict[str, None] = field(default_factory=dict)
    """Every file that was read, each once."""

    def ignore(self, name: str, origin: Origin, reason: str) -> None:
        """Report that ``name`` has no effect; only the first place of each name is kept."""
        self.ignored.setdefault(name, (origin, reason))

    def ignore_setting(self, row: Setting, origin: Origin, name: str = "") -> None:
        """Report that a plain setting has no effect, under its own name or ``name``."""
        if row.is_tuning:
            self.tuning.setdefault(name or row.name, origin)
        else:
            self.ignore(name or row.name, origin, row.reason)

    def address(self, name: str, origin: Origin) -> AddressDraft:
        """Return the address of that name; create it if there is none yet."""
        return self.addresses.setdefault(name, AddressDraft(name, origin))

    def add_queue(self, queue: QueueDraft) -> bool:
        """Add a queue to its address. Returns False if a queue of that name exists, on this address or another."""
        if queue.name in self.queues:
            return False
        self.queues[queue.name] = queue
        self.address(queue.address, queue.origin).queues[queue.name] = queue
        return True
