"""What an HTTP acceptor needs of a connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class HttpClient(Protocol):
    """One client of HTTP. ``HttpConnection`` is the one that has a socket."""

    is_spare: bool
    """Did it come when all regular connections were being answered?"""
    number: int
    """The how manieth connection of the acceptor it is."""
    waiting_since_ms: int
    """When the last answer went, or the connection came."""

    @property
    def is_waiting(self) -> bool:
        """Is there no whole request to be answered?"""

    def guard(self, step: Callable[..., None], *arguments: object) -> None:
        """Do a step of this connection; when it breaks off, nobody else's ends with it."""

    def look(self, now_ms: int) -> None:
        """End the connection when nothing happens on it, or its request takes too long to come."""

    def close(self) -> None:
        """End the connection; an answer on its way is cut off."""

    def abort(self) -> None:
        """End the connection at once, unsent bytes too."""
