"""Can anybody log in? Asked while security-enabled is true."""

from __future__ import annotations

from artemis_py.config.draft import Draft
from artemis_py.config.tables.logins import LoginSources


def check_logins(draft: Draft, logins: LoginSources) -> None:
    """Warn if no source of users is named: then every client is refused."""
    if logins.are_named:
        return
    draft.problems.warning(
        "security",
        draft.core.origins.get("security_enabled", draft.origin),
        "security-enabled is true and there are no users, so every login is refused; make some (artemis-py user add "
        "admin --role amq), name a login.config or an authenticator in the element authentication, or write "
        "<security-enabled>false</security-enabled>",
    )
