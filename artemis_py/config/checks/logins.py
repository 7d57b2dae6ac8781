"""Can anybody log in, and where? And may everybody connect only if that is really meant?"""

from __future__ import annotations

import os

from artemis_py.config.draft import Draft
from artemis_py.config.tables.acceptor import AcceptorConfig, is_loopback
from artemis_py.config.tables.logins import LoginSources
from artemis_py.config.xml.source import relative_to


def refusal_of(draft: Draft, acceptor: AcceptorConfig, logins: LoginSources) -> str | None:
    """Return why a port must not be opened to its clients, None if it may."""
    if not _is_secured(draft):
        if "security_enabled" in draft.doubtful and not is_loopback(acceptor.host):
            return (
                f"{acceptor.host} is reachable from other machines, and everybody could connect; if that is meant, "
                "write <security-enabled>false</security-enabled>"
            )
        return None
    if acceptor.params.get("securityDomain") and not logins.of_instance:
        return (
            "its securityDomain is a domain of a login.config, and none is known; name one by login-config in the "
            "element authentication, or run the folder of the Artemis instance"
        )
    if not logins.are_known and not is_loopback(acceptor.host):
        return (
            f"{acceptor.host} is reachable from other machines, and there are no users who could log in; make some, "
            "listen on 127.0.0.1, or write <security-enabled>false</security-enabled> if everybody may connect"
        )
    return None


def sources_of(draft: Draft) -> LoginSources:
    """Return every source of users of a draft. Looks whether a users file exists."""
    named = draft.users_file
    if named is None:
        has_files = draft.has_users_beside
    else:
        has_files = bool(named.first_user) or os.path.isfile(relative_to(draft.file, named.users))
    return LoginSources(
        jaas=draft.jaas,
        bootstrap=draft.bootstrap,
        has_files=has_files,
        authenticators=tuple(draft.authenticators),
    )


def _is_secured(draft: Draft) -> bool:
    return bool(draft.core.values.get("security_enabled", True))
