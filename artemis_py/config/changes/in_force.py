"""What is in force after a reload: the new file, but for everything that only a start reads."""

from __future__ import annotations

from dataclasses import fields, replace

from artemis_py.config.merging import SettingsRepository
from artemis_py.config.security_settings import SecurityConfig
from artemis_py.config.settings import BrokerConfig, CoreSettings

_OF_THE_START = (
    *(field.name for field in fields(CoreSettings)),
    "wildcards", "properties", "user_limits", "journal_retention", "shared_store",
    "web_access",
)  # fmt: skip


def in_force(old: BrokerConfig, new: BrokerConfig) -> BrokerConfig:
    """The configuration of a running broker that goes from ``old`` to ``new``. Matches are read with the wildcards that
    it began with. Raises MatchError when one makes no sense with them.
    """
    kept = {name: getattr(old, name) for name in _OF_THE_START}
    settings, security = new.address_settings, new.security
    if (old.wildcards, old.literal_match_markers, old.uuid_namespace) != (
        new.wildcards, new.literal_match_markers, new.uuid_namespace,
    ):  # fmt: skip
        settings = SettingsRepository(
            settings.entries,
            old.wildcards,
            literal_match_markers=old.literal_match_markers,
            uuid_namespace=old.uuid_namespace,
        )
        security = SecurityConfig(
            security.settings,
            old.wildcards,
            role_mappings=security.role_mappings,
            uuid_namespace=old.uuid_namespace,
        )
    return replace(new, address_settings=settings, security=security, **kept)
