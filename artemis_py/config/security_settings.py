"""Which roles have which permission on an address. What follows for a user, ``security/rights.py`` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, final

from artemis_py.config.matching import DEFAULT_SYNTAX, Repository, WildcardSyntax, uuid_key
from artemis_py.config.tables.declarations import NOWHERE, Origin

PERMISSIONS: Final = (
    "send",
    "consume",
    "browse",
    "manage",
    "createAddress",
    "deleteAddress",
    "createDurableQueue",
    "deleteDurableQueue",
    "createNonDurableQueue",
    "deleteNonDurableQueue",
    "view",
    "edit",
)
PERMISSION_ALIASES: Final = {
    "createTempQueue": "createNonDurableQueue",
    "deleteTempQueue": "deleteNonDurableQueue",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySetting:
    """One ``security-setting``: for each permission the roles that have it, role mappings already applied."""

    match: str
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    origin: Origin = NOWHERE


@final
class SecurityConfig:
    """All security-settings. The most specific one for an address decides alone; they are never merged.

    A setting whose match is ``address::queue`` applies only to that queue and comes before all others. If nothing
    matches, nothing is allowed.
    """

    __slots__ = ("_repository", "_uuid_namespace", "role_mappings", "settings")

    def __init__(
        self,
        settings: Sequence[SecuritySetting] = (),
        syntax: WildcardSyntax = DEFAULT_SYNTAX,
        *,
        role_mappings: Mapping[str, tuple[str, ...]] | None = None,
        uuid_namespace: str = "",
    ) -> None:
        self.settings: Final = tuple(settings)
        self.role_mappings: Final = dict(role_mappings or {})
        self._uuid_namespace: Final = uuid_namespace
        self._repository: Final = Repository([(each.match, each) for each in settings], syntax)

    def setting_for(self, name: str) -> SecuritySetting | None:
        """Return the setting that decides about ``name``, an address or ``address::queue``, or None."""
        if "::" in name:
            full = self._repository.exact(name)
            if full is not None:
                return full
        address = name.partition("::")[0]
        key = uuid_key(address, self._uuid_namespace, self._repository.syntax.delimiter)
        found = self._repository.candidates(key)
        return found[0][1] if found else None

    def is_written_out(self, name: str) -> bool:
        """Return whether a setting has exactly this match, without wildcards."""
        return self._repository.exact(name) is not None

    def roles_for(self, name: str, permission: str) -> tuple[str, ...]:
        """Return the roles that have ``permission`` on an address or ``address::queue``; empty: nobody has it."""
        setting = self.setting_for(name)
        return () if setting is None else tuple(setting.roles.get(permission, ()))
