"""The routes of recent SENDs, kept so that a destination is resolved once and not for each message."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.addresses.route import Route

ENTRIES_MAX: Final = 4096
TARGET_CHARACTERS_MAX: Final = 1024
CHARACTERS_MAX: Final = 1 << 20
"""Clients choose the names, so the table has a limit; at the limit it starts again from nothing."""


@final
class Routes:
    """One acceptor's routes, by ``Shape.target``. A route may be out of date (``Bindings.is_current``)."""

    __slots__ = ("_characters", "by_target")

    def __init__(self) -> None:
        self.by_target: dict[str, Route] = {}
        self._characters = 0

    def remember(self, target: str, route: Route) -> None:
        """Keep a route for the next SEND to the same target."""
        if target not in self.by_target:
            if len(target) > TARGET_CHARACTERS_MAX:
                return
            self._characters += len(target)
            if len(self.by_target) >= ENTRIES_MAX or self._characters > CHARACTERS_MAX:
                self.by_target.clear()
                self._characters = len(target)
        self.by_target[target] = route
