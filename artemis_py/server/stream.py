"""The body of a response of HTTP that goes on until somebody leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from mypy_extensions import mypyc_attr


def _nobody() -> None:
    """Nobody sends the stream yet, or any more."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Stream(ABC):
    """The body of a response that does not end by itself. Whoever has something for it calls ``wake``; the connection
    takes it when the client reads. Only for the event loop's thread.
    """

    def __init__(self) -> None:
        self.wake: Callable[[], None] = _nobody
        """Tells the connection that there is something to take."""
        self.is_over = False
        """Does it end when everything is taken?"""
        self.is_closed = False
        """Is the client gone?"""

    @abstractmethod
    def take(self) -> bytes:
        """What there is, or some of it; empty if there is nothing now."""

    def end(self, why: str) -> None:
        """The broker ends it, and tells the client why if the stream has a way to; nothing else is told from now on."""
        self.is_over = True
        self.wake()

    def close(self) -> None:
        """The client is gone."""
        self.is_closed = True
        self.wake = _nobody
