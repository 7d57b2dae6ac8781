"""The steps of a work: what it says after each of them about when it can go on."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final, NamedTuple, Protocol

WAIT: Final = True
"""Only in another turn."""


class Until(NamedTuple):
    """At this steady time, in ms, and not before."""

    steady_ms: int


class Awaited(Protocol):
    """When this may go on. It is looked at in each turn; something else has a turn run then."""

    @property
    def may_go_on(self) -> bool:
        """Is the wait over?"""


class Coming(Protocol):
    """When this is there: it comes from elsewhere, such as a thread, and costs nothing meanwhile."""

    def add_done_callback(self, call: Callable[[Any], object], /) -> object:
        """Have ``call`` called when it is there."""

    def cancel(self) -> object:
        """Nobody waits for it any more."""


Step = bool | Until | Awaited | Coming | None
"""None: at once, if the turn has time left."""
AnySteps = Generator[Step, None, Any]
