"""A login under way, and who decides it: what STOMP and HTTP ask, and what the server answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, final

from artemis_py.security.identity import Credentials, Identity

WRONG: Final = "User name or password is invalid"
"""Why most are refused: whoever guesses must not learn more."""


@final
class Login:
    """One attempt. It is decided once, by an identity or by a refusal."""

    __slots__ = ("identity", "is_given_up", "is_open", "refusal")

    def __init__(self) -> None:
        self.identity: Identity | None = None
        self.refusal = ""
        """Why the client is refused, in the words of the ERROR; empty while undecided, and for an identity."""
        self.is_open = False
        """Was the client refused without an answer to who it is? The same credentials may be good later."""
        self.is_given_up = False
        """The client has left; nobody waits for the decision any more."""

    @property
    def may_go_on(self) -> bool:
        """Is it decided?"""
        return self.identity is not None or bool(self.refusal)


class Logins(Protocol):
    """Decides logins. For the event loop's thread; the work is done elsewhere."""

    def begin(self, credentials: Credentials, wake: Callable[[], None]) -> Login:
        """Begin a login. It may be decided when this returns; otherwise ``wake`` is called when it is. If the client
        leaves meanwhile, set ``is_given_up``, which saves the work of a verification that has not begun.
        """


# ---- counts ----------------------------------------------------------------------------------------------------------
#
# The results of logins, in plain ints that a scrape reads.


INVALID: Final = "invalid"
UNAVAILABLE: Final = "unavailable"
BUSY: Final = "busy"
SLOWED: Final = "slowed"
CONNECTIONS: Final = "connections"
DEADLINE: Final = "deadline"
EXPIRED: Final = "expired"

REASONS: Final = (INVALID, UNAVAILABLE, BUSY, SLOWED, CONNECTIONS, DEADLINE, EXPIRED)


@final
class LoginCounts:
    """Logins by result, and refusals by reason: wrong credentials (``invalid``), nobody could check them
    (``unavailable``), too many were waiting (``busy``), too many of this address after failures (``slowed``), too many
    connections of one address without a login (``connections``), no CONNECT or no decision in time (``deadline``), and
    sessions ended because their login did (``expired``).
    """

    __slots__ = ("failures", "refusals", "successes", "verified", "waiting")

    def __init__(self) -> None:
        self.successes = 0
        self.failures = 0
        self.verified = 0
        """How often an authenticator was asked; the other logins were decided from memory."""
        self.waiting = 0
        """Attempts that wait now, for a thread or because of earlier failures, or are being verified."""
        self.refusals = dict.fromkeys(REASONS, 0)

    def results(self) -> dict[str, int]:
        """Logins by result, as Artemis counts them."""
        return {"failure": self.failures, "success": self.successes}
