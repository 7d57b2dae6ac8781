"""What an HTTP acceptor needs of a connection."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Protocol

from artemis_py.security.identity import Identity


class HttpClient(Protocol):
    """One client of HTTP. ``HttpConnection`` is the one that has a socket."""

    is_spare: bool
    """Was it accepted while all regular connections were being answered?"""
    number: int
    """The connection's number, counted by the acceptor."""
    peer: str
    """The client's IP address; empty if unknown."""
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

    def look(self, now_ms: int) -> None:
        """End the connection if it is idle too long, or its request takes too long to arrive."""

    def ask_again(self, users: Container[str]) -> None:
        """Rights have changed, or what is known of these users: end an answer that its user may not have any more."""

    def close(self) -> None:
        """End the connection; a response being sent is cut off."""

    def abort(self) -> None:
        """End the connection at once, without sending the rest."""
