"""Who somebody says they are, and who they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client gave to log in. ``password`` (or a token) never appears in a ``repr``.

    ``certificate`` is the client's verified TLS certificate as DER, None without one. ``domain`` is the acceptor's
    ``securityDomain``, None without one. ``peer`` is the client's IP address, or "" if it has none; it is for an
    authenticator's log and must not decide, because a result counts for all peers with the same credentials.
    ``asks_first``: does the client send what it has only when it is asked, as browsers do? ``address`` is the client's
    as host:port, and ``acceptor`` the one that it came by: both for the log.
    """

    user: str | None
    password: str | None = field(default=None, repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    domain: str | None = None
    peer: str = ""
    asks_first: bool = field(default=False, compare=False)
    address: str = field(default="", compare=False)
    acceptor: str = field(default="", compare=False)

    @property
    def is_question(self) -> bool:
        """Has the client only asked whether it must log in? To be told so is no failed login."""
        return self.asks_first and self.user is None and self.password is None and self.certificate is None


@final
@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody who has logged in: the user's name and roles. Which roles count where, the security-settings say.

    ``expires_ms`` is the date, in epoch milliseconds, at which the login ends, such as that of a token; 0: never.
    """

    user: str
    roles: frozenset[str]
    expires_ms: int = 0
