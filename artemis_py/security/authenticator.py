"""The seam for ways to log in: an authenticator is one small class.

Built in are the files of an Artemis instance, JWT and LDAP. Others are found by the entry point group
``artemis_py.authenticators``: its name is what ``broker.xml`` names, its object is called with the options written
there and returns an ``Authenticator``.
"""

from __future__ import annotations

from typing import Final, Protocol

from artemis_py.security.identity import Credentials, Identity

ENTRY_POINTS: Final = "artemis_py.authenticators"


class Authenticator(Protocol):
    """Says who somebody is.

    ``authenticate`` runs in a thread, never in a turn, and several threads may call it at once. What it returns is
    remembered for ``security-invalidation-interval``.
    """

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Return who this is, or None if the user, password, token or certificate is wrong. Raises AuthenticatorError
        if that cannot be found out now (a directory does not answer, a file cannot be read): the client is refused, and
        the reason goes to the log and not to the client.
        """
