"""How many HTTP connections there may be, and which ends for a new one."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from operator import attrgetter
from typing import Final, Protocol, final

from artemis_py.core.memory import HTTP, HTTP_CONNECTION_BYTES, Holdings
from artemis_py.security.identity import Identity
from artemis_py.server.http.requests import HttpLimits
from artemis_py.server.http.routing import Route
from artemis_py.server.logins.networks import network_of

# ---- client ----------------------------------------------------------------------------------------------------------
#
# What an HTTP acceptor needs of a connection.


class HttpClient(Protocol):
    """One client of HTTP. ``HttpConnection`` is the one that has a socket."""

    is_spare: bool
    """Was it accepted while all regular connections were being answered?"""
    number: int
    """The connection's number, counted by the acceptor."""
    peer: str
    """The client's IP address; empty if unknown."""
    address: str
    """The same as host:port."""
    is_known: bool
    """Has somebody logged in here?"""
    user: str | None
    """Who has logged in for the current request."""
    identity: Identity | None
    """The same with the roles; None where nobody logs in."""
    waiting_since_ms: int
    """When the last response was sent, or the connection accepted."""

    @property
    def is_waiting(self) -> bool:
        """Is there no complete request to answer, or nobody who waits for the answer?"""

    def guard(self, step: Callable[..., None], *arguments: object) -> None:
        """Run a step of this connection; if it fails, no other connection is affected."""

    def check_timeouts(self, now_ms: int) -> None:
        """End the connection if it is idle too long, or its request takes too long to arrive."""

    def recheck_rights(self, users: Container[str]) -> None:
        """Rights have changed, or what is known of these users: end an answer that its user may not have any more."""

    def close(self) -> None:
        """End the connection; a response being sent is cut off."""

    def abort(self) -> None:
        """End the connection at once, without sending the rest."""


# ---- connection limit ------------------------------------------------------------------------------------------------
#
# The open connections of one HTTP acceptor, and which one to close when there are too many.


_by_need: Final = attrgetter("is_known", "waiting_since_ms", "number")
"""Of connections that nobody needs now, the first is needed least."""
_by_time: Final = attrgetter("waiting_since_ms", "number")


@final
class ConnectionLimit:
    """Counts connections, also in ``holdings``. As many as ``limits`` allow are regular, a few more are spares. Where
    users log in (``knows_users``), strangers do not get the places of those who have. While it ``is_short`` of
    descriptors, those that come are spares.
    """

    def __init__(
        self,
        limits: HttpLimits,
        holdings: Holdings | None,
        *,
        knows_users: bool = False,
        is_short: Callable[[], bool] = lambda: False,
    ) -> None:
        self.accepted_count = 0
        """The number of connections accepted since the start."""
        self._limits = limits
        self._holdings = holdings
        self._knows_users = knows_users
        self._is_short = is_short
        self._connections: set[HttpClient] = set()

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator[HttpClient]:
        return iter(list(self._connections))

    def hold(self, size_bytes: int) -> str | None:
        """Add bytes of a request's body to the account (a negative number takes away). Returns why it must not go on:
        the broker holds too much.
        """
        holdings = self._holdings
        if holdings is None:
            return None
        holdings.move(HTTP, size_bytes)
        if size_bytes <= 0 or not holdings.is_full:
            return None
        holdings.refused_count += 1
        return holdings.why_full("a message")

    @property
    def _regular_count(self) -> int:
        return sum(not one.is_spare for one in self._connections)

    def admit(self, connection: HttpClient) -> None:
        """Counts a connection.

        With ``connections_max`` connections, the one that has gone longest without a complete request, or whose client
        has left, is closed. If all of them are being answered, the new one is a spare, for the open routes; if there
        are too many spares, the oldest is closed. So a client that opens connections and does nothing, or reads
        nothing, cannot block health checks. Connections without a login are closed first, and one IP address has few of
        them.
        """
        limits = self._limits
        if self._knows_users:
            self._make_room_for_peer(network_of(connection.peer))
        if self._regular_count >= limits.connections_max:
            waiting = [one for one in self._connections if one.is_waiting and not one.is_spare]
            if waiting:
                self.end(min(waiting, key=_by_need))
        connection.is_spare = self._regular_count >= limits.connections_max or self._is_short()
        spare = [one for one in self._connections if one.is_spare]
        if connection.is_spare and len(spare) >= limits.spare_connections:
            self.end(min(spare, key=attrgetter("number")))
        self.accepted_count += 1
        connection.number = self.accepted_count
        self._connections.add(connection)
        if self._holdings is not None:
            self._holdings.move(HTTP, HTTP_CONNECTION_BYTES)

    def _make_room_for_peer(self, network: str) -> None:
        strangers = [one for one in self._connections if not one.is_known and network_of(one.peer) == network]
        if len(strangers) >= self._limits.strangers_per_peer_max:
            waiting = [one for one in strangers if one.is_waiting]
            self.end(min(waiting or strangers, key=_by_time))

    @property
    def waiting_count(self) -> int:
        """How many connections nobody needs now."""
        return sum(one.is_waiting for one in self._connections)

    def end_least_needed(self) -> bool:
        """Descriptors are short: close an idle connection; False if there is none."""
        return self._end_one([one for one in self._connections if one.is_waiting])

    def end_oldest_spare(self) -> bool:
        """The descriptors of spares are short, too: close one of those; False if there is none."""
        return self._end_one([one for one in self._connections if one.is_spare])

    def _end_one(self, those: list[HttpClient]) -> bool:
        if those:
            self.end(min(those, key=_by_need))
        return bool(those)

    def end(self, connection: HttpClient) -> None:
        """Another one needs its place more."""
        self.forget(connection)
        connection.guard(connection.abort)

    def may_have(self, route: Route, connection: HttpClient) -> bool:
        """Is there room for a request on this connection? If so, a spare becomes a regular one. Who is idle gives way,
        except to what is always answered.
        """
        if connection.is_spare:
            is_full = self._regular_count >= self._limits.connections_max or self._is_short()
            connection.is_spare = is_full and (route.is_open or not self._end_one(self._idle_before(connection)))
        return route.is_open or not connection.is_spare

    def _idle_before(self, connection: HttpClient) -> list[HttpClient]:
        """Regular connections that were idle before this one. Whoever came later may be about to ask for health."""
        since = _by_time(connection)
        return [one for one in self._connections if one.is_waiting and not one.is_spare and _by_time(one) < since]

    def forget(self, connection: HttpClient) -> None:
        """Remove a connection that is gone."""
        if connection in self._connections:
            self._connections.discard(connection)
            if self._holdings is not None:
                self._holdings.move(HTTP, -HTTP_CONNECTION_BYTES)
