"""What is known of the configuration of a running broker: what is in force, since when, and what is wrong with the file
as it is now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

from artemis_py.config.changes.change import Change
from artemis_py.errors import Problem

APPLIED: Final = "applied"
UNCHANGED: Final = "unchanged"
REFUSED: Final = "refused"
PARTLY: Final = "partly"
RESULTS: Final = (APPLIED, UNCHANGED, REFUSED, PARTLY)
"""How a reload ends: everything was brought into force; nothing differs; the file is wrong, and nothing has changed;
some of it could not be done, and that stays as it was.
"""


_SHOWN_MAX: Final = 100


def told(problem: Problem) -> str:
    """A problem for people. Some have their place in their text."""
    return str(problem) if problem.file else problem.message


@final
@dataclass
class ConfigurationState:
    """Dates are in epoch ms."""

    file: str
    read_ms: int
    """When what is in force was read."""
    tried_ms: int
    """When the file was read last, also if it was refused."""
    problems: Sequence[Problem] = ()
    """What is wrong with the file as it is now; empty if it is in force."""
    failures: Sequence[str] = ()
    """What the last reload could not do."""
    changes: Sequence[Change] = ()
    """What the last reload that changed something has changed."""
    pending: Sequence[Change] = ()
    """What the file says and only a restart brings into force."""
    is_watched: bool = False
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESULTS, 0))
    """Reloads since the start, by result."""

    @property
    def is_valid(self) -> bool:
        """Is the file as it is now in force, as far as that needs no restart?"""
        return not self.problems and not self.failures

    def warnings(self) -> list[str]:
        """For ``/health``."""
        if self.problems:
            count = len(self.problems)
            more = f" (and {count - 1} more)" if count > 1 else ""
            first = told(self.problems[0])
            return [f"the configuration is refused, and the one read before is in force: {first}{more}"]
        return [f"the configuration is in force but for this: {failure}" for failure in self.failures[:1]]

    def row(self) -> dict[str, Any]:
        """For operators."""
        return {
            "file": self.file,
            "valid": self.is_valid,
            "readAt": self.read_ms,
            "triedAt": self.tried_ms,
            "watched": self.is_watched,
            "problems": [told(each) for each in self.problems[:_SHOWN_MAX]],
            "failures": list(self.failures),
            "pendingRestart": [str(each) for each in self.pending[:_SHOWN_MAX]],
            "reloads": dict(self.counts),
        }
