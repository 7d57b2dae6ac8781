"""The place of one connection at its acceptor: it counts as open, and until its login as a newcomer of its peer."""

from __future__ import annotations

from typing import Protocol, final

from artemis_py.server.logins.networks import Newcomers, network_of


class Counting(Protocol):
    """What an acceptor counts."""

    newcomers: Newcomers

    def admit(self) -> str | None:
        """Count one more connection, or return why it is refused."""

    def forget(self) -> None:
        """A connection that was counted is gone."""

    def why_crowded(self) -> str:
        """Count a client whose peer has too many connections without a login, and return what it is told."""


@final
class Place:
    """Taken once, and left once."""

    __slots__ = ("_acceptor", "_is_counted", "_network", "is_crowded")

    def __init__(self, acceptor: Counting) -> None:
        self._acceptor = acceptor
        self._is_counted = False
        self._network: str | None = None
        """The peer whose connections without a login include this one; None if none does."""
        self.is_crowded = False
        """Was the connection refused because its peer has too many without a login?"""

    def take(self, peer: str) -> str | None:
        """Count the connection of the IP address ``peer``, or return why it is refused."""
        refusal = self._acceptor.admit()
        if refusal is not None:
            return refusal
        self._is_counted = True
        newcomers = self._acceptor.newcomers
        if newcomers.each_max < 0:
            return None
        network = network_of(peer)
        if not newcomers.add(network):
            self.is_crowded = True
            return self._acceptor.why_crowded()
        self._network = network
        return None

    def logged_in(self) -> None:
        """It is no newcomer any more."""
        if self._network is not None:
            self._acceptor.newcomers.forget(self._network)
            self._network = None

    def leave(self) -> None:
        """The connection is gone; may be called twice."""
        self.logged_in()
        if self._is_counted:
            self._is_counted = False
            self._acceptor.forget()
