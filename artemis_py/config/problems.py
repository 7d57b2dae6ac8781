"""Collects the problems of a configuration, so that one run reports everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final, final

from artemis_py.config.secrets_in_text import LOOKED_AT_MAX, MASK, masked, names_a_secret
from artemis_py.config.tables.declarations import Origin
from artemis_py.errors import Problem
from artemis_py.terminal_output import escaped

ERROR: Final = "error"
WARNING: Final = "warning"
NOTE: Final = "note"

ARTEMIS_KNOWN: Final = "2.57"
"""The Artemis whose elements, attributes, parameters and properties all mean something here."""

KEPT_MAX: Final = 200
"""Maximum number of findings kept per severity. Beyond it, fix these first and check again."""

_PART_LENGTH_MIN: Final = 3
_SLIP_RATIO_MIN: Final = 0.7
_WORD_LENGTH_MAX: Final = 256
_MESSAGE_LENGTH_MAX: Final = 400
_NOTE_LENGTH_MAX: Final = 1000


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that ``word`` probably means, or None.

    First choice is one that differs only in case, then the most similar one, then the shortest one that contains the
    word.
    """
    if len(word) > _WORD_LENGTH_MAX:
        return None
    from difflib import get_close_matches

    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    folded = word.strip().casefold()
    if folded in by_folded:
        return by_folded[folded]
    found = get_close_matches(folded, by_folded, n=1, cutoff=0.7)
    if not found and len(folded) > _PART_LENGTH_MIN:
        found = sorted((candidate for candidate in by_folded if folded in candidate), key=len)
    return by_folded[found[0]] if found else None


def unless_newer(name: str, guess: str | None) -> str:
    """Return what to add to "… is unknown" about a ``name`` that may belong to a newer Artemis: nothing if it is only
    ``guess`` with a slip in one of its words.
    """
    if guess is not None:
        from difflib import SequenceMatcher

        words, meant = name.casefold().split("-"), guess.casefold().split("-")
        if len(words) == len(meant) and all(
            SequenceMatcher(None, *pair).ratio() >= _SLIP_RATIO_MIN for pair in zip(words, meant, strict=True)
        ):
            return ""
    return f"; Artemis up to {ARTEMIS_KNOWN} does not know it either, so it may belong to a newer one"


def shorten(text: str, length_max: int = 120) -> str:
    """Shorten a value for a message: one line, no control characters, and cut if very long."""
    flat = text if text.isprintable() else escaped(" ".join(text.split()))
    return flat if len(flat) <= length_max else flat[: length_max - 1] + "…"


@final
class Problems:
    """An ordered collection of findings. Does not decide what to do about them. Each finding costs the same, however
    many there are.
    """

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self._known: set[Problem] = set()
        self._counts: Counter[str] = Counter()
        self._places_of_errors: set[tuple[str, int]] = set()

    def add(
        self,
        severity: str,
        code: str,
        origin: Origin,
        message: str,
        *,
        value: str | None = None,
        allowed: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        """Add a finding. The same text at the same place is kept once, and at most ``KEPT_MAX`` of each severity.
        Passwords are masked.
        """
        if severity == ERROR:
            self._places_of_errors.add((origin.file, origin.line))
        if self._counts[severity] > KEPT_MAX:
            return
        about, text = message[:LOOKED_AT_MAX], None if value is None else value[:LOOKED_AT_MAX]
        shown = None if text is None else shorten(MASK if names_a_secret(about) else masked(text))
        brief = shorten(masked(about), _NOTE_LENGTH_MAX if severity == NOTE else _MESSAGE_LENGTH_MAX)
        problem = Problem(severity, origin.file, origin.line, brief, shown, allowed, suggestion, code)
        if problem in self._known:
            return
        self._counts[severity] += 1
        if self._counts[severity] > KEPT_MAX:
            rest = f"there are more than {KEPT_MAX} {severity}s; the rest are not shown. Fix these and check again"
            problem = Problem(severity, origin.file, origin.line, rest, code=code)
        self._known.add(problem)
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
        self.add(ERROR, "", origin, message, value=value, allowed=allowed, suggestion=suggestion)

    def warning(
        self,
        code: str,
        origin: Origin,
        message: str,
        *,
        value: str | None = None,
        allowed: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        """Add a finding that is probably unintended; ``code`` is one of :data:`CODES`."""
        self.add(WARNING, code, origin, message, value=value, allowed=allowed, suggestion=suggestion)

    def note(self, code: str, origin: Origin, message: str) -> None:
        """Add something worth knowing; ``code`` is one of :data:`CODES`."""
        self.add(NOTE, code, origin, message)

    def take(self, found: Iterable[Problem]) -> None:
        """Add warnings and notes that were found elsewhere."""
        self.found.extend(found)

    def has_error_at(self, origin: Origin) -> bool:
        """Was an error already found at this place?"""
        return (origin.file, origin.line) in self._places_of_errors

    @property
    def has_errors(self) -> bool:
        """Is any finding an error?"""
        return self._counts[ERROR] > 0

    @property
    def are_full(self) -> bool:
        """Are there more errors than are kept? Then checks need not look for more."""
        return self._counts[ERROR] > KEPT_MAX

    def in_order(self, first_file: str) -> list[Problem]:
        """Return the findings by file and line, those of ``first_file`` first."""
        return sorted(self.found, key=lambda each: (each.file != first_file, each.file, each.line))


# ---- the kinds of warnings and notes, which ``--silence`` hides; errors cannot be silenced -------

CODES: Final = {
    "acceptor-closed": "a configured port is not opened",
    "bridge": "a bridge cannot connect with its stores or its password",
    "certificate": "clients will refuse a certificate of this broker",
    "circle": "diverts, bridges, expiry or dead-letter addresses form a loop",
    "declared-twice": "something is declared twice; one declaration is ignored, or both are merged",
    "doubtful-value": "a value is accepted, but probably means something else than intended",
    "foreign-protocol": "an acceptor names unsupported protocols",
    "include-place": "an included file also exists where Artemis would look for it",
    "instance": "something in an Artemis instance is done differently here",
    "kept-messages": "the journal has messages, and a start leaves a queue as it is for them, or reads none",
    "left-out": "a property, parameter or permission is unknown or has a wrong value, and is ignored",
    "loses-messages": "messages would be dropped, deleted or expire",
    "no-effect": "a setting asks for something that this broker does not support",
    "no-port": "no port is opened",
    "not-read": "an element is ignored",
    "old-form": "something is written in a deprecated form",
    "placeholder": "a placeholder has no value or no closing brace",
    "tuning": "settings for the internals of Artemis, without effect here",
    "users": "something in the files of users and roles keeps somebody out, or lets them in too easily",
    "without-limit": "a limit or policy has no effect without another setting",
}


def told(problems: Iterable[Problem], silenced: Collection[str]) -> list[Problem]:
    """Return the problems that are not silenced."""
    return [problem for problem in problems if problem.code not in silenced or not problem.code]


def kind_of(problem: Problem) -> str:
    """Return severity and code as shown before the text: ``warning[no-effect]``."""
    return f"{problem.severity}[{problem.code}]" if problem.code else problem.severity
