"""The typed settings of a broker: all that the rest of the program knows of broker.xml.

All of it is frozen. :func:`artemis_py.config.reader.load` makes it from a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.merging import SettingsEntry, SettingsRepository, Traced
from artemis_py.config.security_settings import SecurityConfig, SecuritySetting
from artemis_py.config.tables.acceptor import AcceptorConfig
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.bridges import BridgeConfig
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.declarations import (
    NOWHERE,
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
