"""Gathers what is wrong with a configuration, so that one run reports everything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from artemis_py.config.entities import Origin
from artemis_py.errors import Problem

ERROR: Final = "error"
WARNING: Final = "warning"
NOTE: Final = "note"

_PART_LENGTH_MIN: Final = 3
_MESSAGE_LENGTH_MAX: Final = 400


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that ``word`` was probably meant to be, or None.

    One that is the same but for case, else the most similar one, else the shortest one that contains the word.
    """
    from difflib import get_close_matches

    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    folded = word.strip().casefold()
    if folded in by_folded:
        return by_folded[folded]
    found = get_close_matches(folded, by_folded, n=1, cutoff=0.7)
    if not found and len(folded) > _PART_LENGTH_MIN:
        found = sorted((candidate for candidate in by_folded if folded in candidate), key=len)
    return by_folded[found[0]] if found else None


def shorten(text: str, length_max: int = 120) -> str:
    """Make a value fit for a message: one line, and cut where it is very long."""
    flat = text if text.isprintable() else " ".join(text.split())
    return flat if len(flat) <= length_max else flat[: length_max - 1] + "…"


@final
class Problems:
    """An ordered collection of findings. Does not decide what to do about them."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(
        self,
        severity: str,
        origin: Origin,
        message: str,
        *,
        value: str | None = None,
        allowed: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        """Add a finding; the same text at the same place is kept once."""
        shown = None if value is None else shorten(value)
        brief = shorten(message, _MESSAGE_LENGTH_MAX)
        problem = Problem(severity, origin.file, origin.line, brief, shown, allowed, suggestion)
        if problem not in self.found:
            self.found.append(problem)

    def error(
        self,
        origin: Origin,
        message: str,
        *,
        value: str | None = None,
        allowed: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        """Add a finding for which the configuration is refused."""
        self.add(ERROR, origin, message, value=value, allowed=allowed, suggestion=suggestion)

    def warning(
        self,
        origin: Origin,
        message: str,
        *,
        value: str | None = None,
        allowed: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        """Add a finding that is probably not meant so."""
        self.add(WARNING, origin, message, value=value, allowed=allowed, suggestion=suggestion)

    def note(self, origin: Origin, message: str) -> None:
        """Add something worth knowing."""
        self.add(NOTE, origin, message)

    def has_error_at(self, origin: Origin) -> bool:
        """Whether an error was found at this place already."""
        return any(
            problem.severity == ERROR and (problem.file, problem.line) == (origin.file, origin.line)
            for problem in self.found
        )

    @property
    def has_errors(self) -> bool:
        """Whether any finding is an error."""
        return any(problem.severity == ERROR for problem in self.found)

    def in_order(self, first_file: str) -> list[Problem]:
        """Return the findings by file and line, those of ``first_file`` first."""
        return sorted(self.found, key=lambda each: (each.file != first_file, each.file, each.line))
