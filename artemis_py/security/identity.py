"""Who somebody says they are, who they are, and what finds it out: an authenticator, one small class.

Built in are the files of an Artemis instance, JWT and LDAP. Others are found by the entry point group
``artemis_py.authenticators``: its name is what ``broker.xml`` names, its object is called with the options written
there and returns an ``Authenticator``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final, Protocol, TypeVar, final

from artemis_py.config.problems import nearest
from artemis_py.errors import ArtemisError


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
    ``why_these_roles`` says where they come from, for somebody who lacks one; empty: from files.
    """

    user: str
    roles: frozenset[str]
    expires_ms: int = 0
    why_these_roles: str = field(default="", compare=False)


Options = TypeVar("Options")


def options_of(kind: type[Options], given: Mapping[str, str]) -> Options:
    """The options of an authenticator, as a dataclass has them. Raises ArtemisError for one that does not exist or is
    missing, in the spelling of broker.xml.
    """
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            near = nearest(name, known)
            hint = f"; did you mean {near.replace('_', '-')}?" if near else ""
            raise ArtemisError(f"there is no option {name.replace('_', '-')}{hint}")
    lacking = [name for name, each in known.items() if each.default is MISSING and name not in given]
    if lacking:
        raise ArtemisError(f"the option {lacking[0].replace('_', '-')} is missing")
    return kind(**given)


ENTRY_POINTS: Final = "artemis_py.authenticators"


class Authenticator(Protocol):
    """Says who somebody is.

    ``authenticate`` runs in a thread, never in a turn, and several threads may call it at once. What it returns is
    remembered for ``security-invalidation-interval``.
    """

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Return who this is, or None if the user, password, token or certificate is wrong. Raises AuthenticatorError
        if that cannot be found out now (a directory does not answer, a file cannot be read): the client is refused, and
        the reason goes to the log and not to the client. Raises NotYetError to be asked again in a moment, and
        CredentialsRefusedError to tell the client what is wrong.
        """


class WebLogin(Authenticator):
    """An authenticator where people log in with a browser. All but the name may wait for others: only for threads."""

    name: str
    """What the button says."""

    @abstractmethod
    def begin(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Where a page sends its user. Raises as ``redeem``."""

    @abstractmethod
    def redeem(self, given: Mapping[str, str]) -> dict[str, Any]:
        """The tokens for what a page has got there, or for a token that refreshes them. Raises BadRequestError if the
        page gives too little, CredentialsRefusedError if the provider or the broker refuses that, and
        AuthenticatorError if nobody can tell now.
        """
