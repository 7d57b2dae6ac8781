"""Can anybody log in, and where? And may everybody connect only if that is really meant?"""

from __future__ import annotations

from artemis_py.config.draft import Draft
from artemis_py.config.tables.acceptor import AcceptorConfig, is_loopback
from artemis_py.config.tables.logins import LoginSources


def refusal_of(draft: Draft, acceptor: AcceptorConfig, logins: LoginSources) -> str | None:
    """Return why a port must not be opened to its clients, None if it may."""
    if not _is_secured(draft):
        if "security_enabled" in draft.doubtful and not is_loopback(acceptor.host):
            return (
                f"{acceptor.host} is reachable from other machines, and everybody could connect; write true or false "
                "into security-enabled"
            )
        return None
    if acceptor.params.get("securityDomain") and logins.jaas is None and logins.bootstrap is None:
        return (
            "its securityDomain is a domain of a login.config, and none is known; name one by login-config in the "
            "element authentication, or run the folder of the Artemis instance"
        )
    if not logins.are_named and not is_loopback(acceptor.host):
        return (
            f"{acceptor.host} is reachable from other machines, and there are no users who could log in; make some, "
            "listen on 127.0.0.1, or write <security-enabled>false</security-enabled> if everybody may connect"
        )
    return None


def check_logins(draft: Draft, logins: LoginSources) -> None:
    """Warn if clients must log in and no source of users is named: then every login is refused."""
    if logins.are_named or not _is_secured(draft):
        return
    draft.problems.warning(
        "security",
        draft.core.origins.get("security_enabled", draft.origin),
        "security-enabled is true and there are no users, so every login is refused; make users, name a login.config "
        "or an authenticator in the element authentication, or write <security-enabled>false</security-enabled>",
    )


def _is_secured(draft: Draft) -> bool:
    return bool(draft.core.values.get("security_enabled", True))
