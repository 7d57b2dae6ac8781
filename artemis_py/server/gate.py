"""Who may come in, and what they may do then: the parts that a broker with security-enabled has, and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, final

from artemis_py.config.settings import BrokerConfig
from artemis_py.log_codes import DENIED, LOGIN
from artemis_py.security.authenticator import Authenticator
from artemis_py.server.clocks import steady_clock_ms, wall_clock_ms
from artemis_py.server.stats import ServerStats

if TYPE_CHECKING:
    from artemis_py.security.rights import Authorizer
    from artemis_py.server.console_sessions import Sessions
    from artemis_py.server.logins.desk import Desk
    from artemis_py.server.logins.refusals import Refusals


@final
class SecurityGate:
    """The desk that decides logins, the authorizer that decides what each user may do, who uses the console, and who
    hears of logins that were refused.
    """

    __slots__ = ("desk", "authorizer", "sessions", "refusals")

    def __init__(self, desk: Desk, authorizer: Authorizer, sessions: Sessions, refusals: Refusals) -> None:
        self.desk = desk
        self.authorizer = authorizer
        self.sessions = sessions
        self.refusals = refusals


def gate_of(
    config: BrokerConfig,
    authenticator: Authenticator | None,
    loop: asyncio.AbstractEventLoop,
    stats: ServerStats,
    complain: Callable[..., None],
) -> SecurityGate | None:
    """The gate of a broker, None without an ``authenticator``: then everybody may do everything."""
    if authenticator is None:
        return None
    from artemis_py.security.rights import Authorizer
    from artemis_py.server.console_sessions import Sessions
    from artemis_py.server.logins.desk import Desk
    from artemis_py.server.logins.refusals import Refusals

    def told(code: str, line: str, kind: str, user: str, address: str, acceptor: str) -> None:
        complain(line, kind, code=code, user=user, from_=address, acceptor=acceptor)

    desk = Desk(
        authenticator,
        config,
        loop,
        steady_ms=steady_clock_ms,
        date_ms=wall_clock_ms,
        complain=partial(told, LOGIN),
        counts=stats.logins,
    )
    authorizer = Authorizer(config, partial(told, DENIED))
    stats.permission_checks = authorizer.checks
    stats.login_complaints = desk.complaints
    return SecurityGate(desk, authorizer, Sessions(steady_clock_ms, wall_clock_ms), Refusals())
