"""The typed settings of a broker: all that the rest of the program knows of broker.xml.

All of it is frozen. :func:`artemis_py.config.reader.load` makes it from a file.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, final

from artemis_py.config.matching import DEFAULT_SYNTAX, Repository, WildcardSyntax, uuid_key
from artemis_py.config.security_settings import SecurityConfig, SecuritySetting
from artemis_py.config.tables.acceptor import AcceptorConfig
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.bridges import BridgeConfig
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.declarations import (
    NOWHERE,
    SCHEDULES,
    AddressConfig,
    DivertConfig,
    LoginSources,
    Origin,
    QueueConfig,
    RetentionConfig,
    SharedStoreConfig,
    UserLimits,
    UsersFileConfig,
    WebAccess,
)
from artemis_py.config.tables.fields import settings_of
from artemis_py.errors import Problem

__all__ = [
    "NOWHERE",
    "AcceptorConfig",
    "AddressConfig",
    "AddressSettings",
    "BridgeConfig",
    "BrokerConfig",
    "CoreSettings",
    "DivertConfig",
    "Origin",
    "QueueConfig",
    "RetentionConfig",
    "SecurityConfig",
    "SecuritySetting",
    "SettingsEntry",
    "SettingsRepository",
    "SharedStoreConfig",
    "Traced",
    "UserLimits",
    "UsersFileConfig",
]

_CACHE_SIZE: Final = 4096


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsEntry:
    """One ``address-setting`` of the file: its values by attribute, each with its place."""

    match: str
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    origin: Origin = NOWHERE


class Traced(NamedTuple):
    """The effective value of a setting, the ``match`` it came from and its place; both None for a default."""

    value: Any
    match: str | None
    origin: Origin | None


@final
class SettingsRepository:
    """The address-settings of a configuration, in the order of the file, merged into the effective one of an address.
    Immutable.

    For each field, the most specific address-setting that sets it wins. A field that none sets has its default; a
    default that follows from another setting uses that setting's merged value. Writing a default explicitly stops
    inheritance; nothing can be unset.
    """

    __slots__ = ("_by_match", "_cached", "_merged", "_repository", "_uuid_namespace", "entries")

    def __init__(
        self,
        entries: Sequence[SettingsEntry] = (),
        syntax: WildcardSyntax = DEFAULT_SYNTAX,
        *,
        literal_match_markers: str | None = None,
        uuid_namespace: str = "",
    ) -> None:
        self.entries: Final = tuple(entries)
        self._by_match: Final = {entry.match: entry for entry in entries}
        self._uuid_namespace: Final = uuid_namespace
        self._repository: Final = Repository(
            [(entry.match, entry) for entry in entries], syntax, literal_match_markers=literal_match_markers
        )
        self._cached: Final = functools.lru_cache(maxsize=_CACHE_SIZE)(self._merge)
        self._merged: Final = functools.lru_cache(maxsize=_CACHE_SIZE)(self._merge_entries)

    def candidates(self, address: str) -> list[SettingsEntry]:
        """Return the entries that apply to ``address`` (``address::queue`` is cut), the most specific first."""
        if address == SCHEDULES:
            return []
        key = uuid_key(address.partition("::")[0], self._uuid_namespace, self._repository.syntax.delimiter)
        return [entry for _, entry in self._repository.candidates(key)]

    def settings_for(self, address: str) -> AddressSettings:
        """Return the merged settings of an address; the most recent ones are cached. Addresses to which the same
        entries apply share one object.
        """
        return self._cached(address.partition("::")[0])

    def trace(self, address: str) -> dict[str, Traced]:
        """Return the effective value and the origin of each attribute of :class:`AddressSettings`."""
        winners: dict[str, SettingsEntry] = {}
        for entry in self.candidates(address):
            for attribute in entry.values:
                winners.setdefault(attribute, entry)
        effective = self.settings_for(address)
        traced: dict[str, Traced] = {}
        for row in settings_of(AddressSettings).values():
            value = getattr(effective, row.attribute)
            winner = winners.get(row.attribute)
            if winner is None:
                traced[row.attribute] = Traced(value, None, None)
            else:
                traced[row.attribute] = Traced(value, winner.match, winner.origins.get(row.attribute, winner.origin))
        return traced

    def decided_by(self, address: str, attribute: str) -> str | None:
        """Return the match of the entry that decides an attribute for an address, or None if the default does."""
        return next((entry.match for entry in self.candidates(address) if attribute in entry.values), None)

    def _merge(self, address: str) -> AddressSettings:
        return self._merged(tuple(entry.match for entry in self.candidates(address)))

    def _merge_entries(self, matches: tuple[str, ...]) -> AddressSettings:
        values: dict[str, Any] = {}
        for match in matches:
            for attribute, value in self._by_match[match].values.items():
                values.setdefault(attribute, value)
        return AddressSettings(**values)


@final
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class BrokerConfig(CoreSettings):
    """A configuration that was read and is valid.

    ``notices`` are warnings and notes, such as everything ignored in the file with its reason.
    """

    file: str = "broker.xml"
    addresses: tuple[AddressConfig, ...] = ()
    diverts: tuple[DivertConfig, ...] = ()
    bridges: tuple[BridgeConfig, ...] = ()
    acceptors: tuple[AcceptorConfig, ...] = ()
    wildcards: WildcardSyntax = field(default_factory=WildcardSyntax)
    address_settings: SettingsRepository = field(default_factory=SettingsRepository)
    security: SecurityConfig = field(default_factory=SecurityConfig)
    logins: LoginSources = field(default_factory=LoginSources)
    properties: dict[str, str] = field(default_factory=dict)
    """Java's system properties, which an Artemis instance defines; empty for a plain file."""
    user_limits: dict[str, UserLimits] = field(default_factory=dict)
    """By login; ``*`` for every login without limits of its own."""
    journal_retention: RetentionConfig | None = None
    users_file: UsersFileConfig | None = None
    shared_store: SharedStoreConfig | None = None
    """The part of this broker in a pair; None: it stands alone."""
    web_access: WebAccess | None = None
    """Which web pages may use Jolokia besides those of the acceptors' hosts; None: no instance says so."""
    files: tuple[str, ...] = ()
    """Every file that was read: the main one, what it includes, properties, and those of an instance."""
    notices: tuple[Problem, ...] = ()
    origins: dict[str, Origin] = field(default_factory=dict)

    def settings_for(self, address: str) -> AddressSettings:
        """Return the merged settings of an address; ``address::queue`` is cut at the colons."""
        return self.address_settings.settings_for(address)
