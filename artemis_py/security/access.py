"""Who may do what on an address: which security-setting decides, and what it grants.

For people to read (``explain``). ``rights`` enforces the same rules, which are Artemis': the most specific
security-setting that matches decides alone, nothing is merged; of two with the same ``match`` the later one counts; one
for ``address::queue`` counts for that queue only and only when written out in full; where none matches, nobody may do
anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from artemis_py.config.matching import setting_matches
from artemis_py.config.merging import uuid_key
from artemis_py.config.security_settings import PERMISSIONS, SecuritySetting
from artemis_py.config.settings import BrokerConfig


@final
@dataclass(frozen=True, slots=True)
class Grant:
    """One permission and the roles that have it; no roles: nobody has it.

    ``mapped`` gives for each role that stands for others by ``role-mapping`` those of them that have it.
    """

    permission: str
    roles: tuple[str, ...]
    mapped: dict[str, tuple[str, ...]]

    def __str__(self) -> str:
        return f"{self.permission}: {', '.join(self._described(role) for role in self.roles) or 'nobody'}"

    def _described(self, role: str) -> str:
        return f"{role} (mapped to {', '.join(self.mapped[role])})" if role in self.mapped else role


@final
@dataclass(frozen=True, slots=True)
class Access:
    """What the security-settings say about one address or ``address::queue``.

    ``setting`` is the one that decides, None where nothing matches. ``passed_over`` are the others that match, in the
    order of the file: what they grant does not count. ``grants`` has every permission once.
    """

    name: str
    setting: SecuritySetting | None
    passed_over: tuple[SecuritySetting, ...]
    grants: tuple[Grant, ...]

    def permissions_of(self, roles: Iterable[str]) -> tuple[str, ...]:
        """Return what somebody with all of ``roles`` may do."""
        held = frozenset(roles)
        return tuple(grant.permission for grant in self.grants if not held.isdisjoint(grant.roles))

    def lines(self) -> list[str]:
        """Explain in plain lines: where the decision comes from, what is granted, what was passed over."""
        if self.setting is None:
            return [f"no security-setting matches {self.name}, so nobody may do anything"]
        found = [f"security-setting match={self.setting.match!r} ({self.setting.origin}) alone decides"]
        found.extend(f"  {grant}" for grant in self.grants)
        found.extend(f"passed over: match={other.match!r} ({other.origin})" for other in self.passed_over)
        return found


def access_to(config: BrokerConfig, name: str) -> Access:
    """Resolve the permissions on ``name``, an address or ``address::queue``."""
    setting = config.security.setting_for(name)
    address = uuid_key(name.partition("::")[0], config.uuid_namespace, config.wildcards.delimiter)
    passed_over = tuple(
        other
        for other in config.security.settings
        if other is not setting and (other.match == name or setting_matches(other.match, address, config.wildcards))
    )
    grants = tuple(_grant(config, setting, permission) for permission in PERMISSIONS)
    return Access(name, setting, passed_over, grants)


def _grant(config: BrokerConfig, setting: SecuritySetting | None, permission: str) -> Grant:
    roles = setting.roles.get(permission, ()) if setting is not None else ()
    mapped: dict[str, tuple[str, ...]] = {}
    for role in roles:
        for outside in config.security.role_mappings.get(role, ()):
            mapped[outside] = (*mapped.get(outside, ()), role)
    return Grant(permission, roles, mapped)
