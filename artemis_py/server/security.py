"""Logins and rights: the parts that only a broker with ``security-enabled`` has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from artemis_py.config.settings import BrokerConfig
from artemis_py.log_codes import DENIED, LOGIN
from artemis_py.security.identity import Authenticator, WebLogin
from artemis_py.security.login import Login
from artemis_py.server.failures import Isolation, RateLimitedLog
from artemis_py.server.stats import ServerStats
from artemis_py.server.turn_client import Client
from artemis_py.server.wall_clock import steady_clock_ms, wall_clock_ms

if TYPE_CHECKING:
    from artemis_py.security.rights import Authorizer
    from artemis_py.server.logins.login_service import LoginService


@final
class Security:
    """``logins`` checks logins, ``authorizer`` knows what each user may do.
    ``on_refusal`` gets each login over HTTP that is refused: the user (empty if none was named), the IP address of the
    client, and the reason that the client gets. Sessions of STOMP report theirs themselves.
    """

    __slots__ = ("authorizer", "logins", "on_refusal")

    def __init__(self, logins: LoginService, authorizer: Authorizer) -> None:
        self.logins = logins
        self.authorizer = authorizer
        self.on_refusal: Callable[[str, str, str], None] | None = None

    def web_logins(self) -> Sequence[WebLogin]:
        """Where people log in with a browser, as the configuration in force says."""
        found: Sequence[WebLogin] = getattr(self.logins.authenticator, "web_logins", ())
        return found

    def note_refusal(self, login: Login, user: str | None, peer: str) -> None:
        """A login over HTTP was refused."""
        if self.on_refusal is not None:
            self.on_refusal(user or "", peer, login.refusal)


def security_of(
    config: BrokerConfig,
    authenticator: Authenticator | None,
    loop: asyncio.AbstractEventLoop,
    stats: ServerStats,
    limited_log: RateLimitedLog,
) -> Security | None:
    """The security of a broker; None without an ``authenticator``: then everybody may do everything."""
    if authenticator is None:
        return None
    from artemis_py.security.rights import Authorizer
    from artemis_py.server.logins.login_service import LoginService

    def warn(code: str, line: str, kind: str, user: str, address: str, acceptor: str) -> None:
        limited_log.write(line, kind, code=code, user=user, from_=address, acceptor=acceptor)

    logins = LoginService(
        authenticator,
        config,
        loop,
        steady_ms=steady_clock_ms,
        date_ms=wall_clock_ms,
        warn=partial(warn, LOGIN),
        counts=stats.logins,
    )
    authorizer = Authorizer(config, partial(warn, DENIED))
    stats.permission_checks = authorizer.checks
    stats.login_file_warnings = logins.file_warnings
    return Security(logins, authorizer)


# ---- withdrawn rights ------------------------------------------------------------------------------------------------
#
# What goes on for long ends with the right to it: answers of HTTP, and subscriptions that only read.


_CLIENTS_PER_STEP: Final = 16


@final
class RightsCheck:
    """Checks rights again when they have changed, or users have. For the event loop's thread. ``check_http`` does it
    for the answers of HTTP, ``carry_out`` makes steps inside turns.
    """

    def __init__(
        self,
        check_http: Callable[[Set[str]], None],
        clients: Iterable[Client],
        isolation: Isolation,
        carry_out: Callable[[Iterator[bool | None]], asyncio.Future[Any]],
    ) -> None:
        self._check_http = check_http
        self._clients = clients
        self._isolation = isolation
        self._carry_out = carry_out

    def begin(self, users: Set[str] = frozenset()) -> asyncio.Future[Any]:
        """End what is under way without the right to it any more: rights have changed, or what is known of ``users``.
        Returns what ``carry_out`` does: when that is done, all such subscriptions have ended.
        """
        self._check_http(users)
        return self._carry_out(self._check_subscriptions(users))

    def _check_subscriptions(self, users: Set[str]) -> Iterator[bool | None]:
        """A subscription that only reads goes on for as long as its client wants. One that consumes a queue keeps its
        right, as in Artemis.
        """
        for checked, client in enumerate(list(self._clients), 1):
            try:
                reason = client.session.subscriptions.recheck_rights(users)
                if reason:
                    client.dismiss(reason, self._isolation.turn_ms)
            except Exception as error:
                self._isolation.fail(client, "rights", error)
            if checked % _CLIENTS_PER_STEP == 0:
                yield None
        yield None
