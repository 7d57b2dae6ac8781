"""``artemis-py explain NAME --user USER``: what somebody may do there, and what is missing for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from artemis_py.config.problems import nearest
from artemis_py.config.security_settings import PERMISSIONS
from artemis_py.config.settings import BrokerConfig
from artemis_py.errors import ArtemisError
from artemis_py.security.identity import Identity
from artemis_py.security.rights import Authorizer, Grant, access_to
from artemis_py.security.user_files import all_user_files, user_files_to_change
from artemis_py.security.users.accounts import Accounts

NOBODY_NAMED: Final = "somebody"


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """One permission: is it there, and why or why not."""

    permission: str
    is_granted: bool
    why: str


@final
@dataclass(frozen=True, slots=True)
class Verdicts:
    """What one user may do at an address or queue. ``notes`` say what does not count, although it might seem so."""

    user: str
    roles: tuple[str, ...]
    rows: tuple[Verdict, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """Return what ``--json`` prints."""
        rows = {row.permission: {"granted": row.is_granted, "why": row.why} for row in self.rows}
        return {"user": self.user, "roles": list(self.roles), "permissions": rows, "notes": list(self.notes)}


def identity_of(config: BrokerConfig, user: str | None, roles: Sequence[str] | None) -> Identity:
    """Return somebody with these roles, or with those that the roles file gives the user. Raises ArtemisError if the
    user is not in the users file.
    """
    if roles is not None:
        return Identity(user or NOBODY_NAMED, frozenset(roles))
    places = list(all_user_files(config)) or [user_files_to_change(config)]
    known = {account.user: account.roles for files in places if files.are_there for account in Accounts(files).all()}
    if user is None or user not in known:
        guess = nearest(user or "", list(known))
        meant = f"; did you mean {guess}?" if guess is not None else ""
        raise ArtemisError(
            f"there is no user {user} in {' or '.join(str(files.users) for files in places)}{meant}; for a user from "
            "elsewhere give the roles: --roles ROLE,…"
        )
    return Identity(user, frozenset(known[user]))


def verdicts(config: BrokerConfig, name: str, identity: Identity) -> Verdicts:
    """Work out what somebody may do at ``name``, an address or ``address::queue``."""
    rights = Authorizer(config).rights_of(identity)
    access = access_to(config, name)
    address, _, queue = name.partition("::")
    rows: list[Verdict] = []
    for grant in access.grants:
        is_granted = rights.may(grant.permission, address, queue or None)
        by = sorted(identity.roles.intersection(grant.roles))
        if is_granted:
            why = f"by {' and '.join(by)}" if by else f"by the setting for {address}.{queue}, unless named in full"
        else:
            why = _missing(grant)
        rows.append(Verdict(grant.permission, is_granted, why))
    notes: list[str] = []
    if access.setting is None:
        notes.append(f"no security-setting matches {name}, so nobody may do anything")
    missing = {row.permission for row in rows if not row.is_granted}
    for other in access.passed_over:
        would = [
            permission
            for permission in PERMISSIONS
            if permission in missing and not identity.roles.isdisjoint(other.roles.get(permission, ()))
        ]
        if would:
            notes.append(f"match {other.match} ({other.origin}) grants {', '.join(would)}, but is passed over")
    return Verdicts(identity.user, tuple(sorted(identity.roles)), tuple(rows), tuple(notes))


def _missing(grant: Grant) -> str:
    inside = [role for role in grant.roles if role not in grant.mapped]
    needed = " or ".join(inside) or "nobody has it"
    if not inside:
        return needed
    mapped = [role for role in grant.roles if role in grant.mapped]
    also = f" (or {' or '.join(mapped)}, by role-mapping)" if mapped else ""
    return f"needs the role {needed}{also}"
