"""One difference between two configurations, and when it takes effect in a running broker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, final

from artemis_py.config.tables.entities import NOWHERE, Origin

NOW: Final = "now"
WHEN_IDLE: Final = "when idle"
"""Once the queue is empty and has no consumers; at once if it has no message groups."""
RESTART: Final = "restart"
NOTHING: Final = "none"
"""The broker does not use what was changed, or the rules say that what is there stays."""

ADDED: Final = "added"
REMOVED: Final = "removed"
CHANGED: Final = "changed"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """``part`` is the kind of element and ``name`` its name or match; ``setting`` is empty where the whole element is
    meant. ``old`` and ``new`` are shown as in the file; None: not set. ``effect`` is one of the words above.
    """

    part: str
    name: str
    action: str
    effect: str
    setting: str = ""
    old: str | None = None
    new: str | None = None
    note: str = ""
    origin: Origin = NOWHERE

    @property
    def what(self) -> str:
        """The element, and the setting if one is meant."""
        named = f"{self.part} {self.name}" if self.name else self.part
        return f"{named}: {self.setting}" if self.setting else named

    def __str__(self) -> str:
        values = f" {self.old or 'not set'} → {self.new or 'not set'}" if self.setting else f" {self.action}"
        return f"{self.what}{values} ({self.origin}){f'; {self.note}' if self.note else ''}"

    def as_row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "part": self.part,
            "name": self.name,
            "setting": self.setting,
            "action": self.action,
            "old": self.old,
            "new": self.new,
            "effect": self.effect,
            "note": self.note,
            "file": self.origin.file,
            "line": self.origin.line,
        }


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """The differences, in the order of the parts: core, then what is declared, then acceptors and logins."""

    changes: tuple[Change, ...] = ()

    def those(self, effects: Iterable[str]) -> tuple[Change, ...]:
        """The changes with one of these effects."""
        wanted = frozenset(effects)
        return tuple(change for change in self.changes if change.effect in wanted)

    @property
    def need_restart(self) -> tuple[Change, ...]:
        """What only a restart brings into effect."""
        return self.those((RESTART,))
