"""What came of logins, in plain ints that a scrape reads."""

from __future__ import annotations

from typing import Final, final

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
