"""Cursors in the log: named positions of readers, so that unread files are not removed.

They are journal records (CURSOR). A cursor not moved within its time to live holds nothing back, and no cursor holds
anything back while the disk is too full: so a forgotten reader cannot fill the disk.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from operator import itemgetter
from typing import Any, Final

from artemis_py.errors import ArtemisError
from artemis_py.storage.retention.retention import RetentionHolds

TTL_S_MAX: Final = 10 * 366 * 86_400
CURSORS_MAX: Final = 1000
OWNER_SIZE_MAX: Final = 500
_NAME: Final = re.compile(r"[A-Za-z0-9._:@-]{1,128}", re.ASCII)
_KEYS: Final = ("lsn", "owner", "ttl_s")


class CursorError(ArtemisError):
    """A cursor is invalid."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """A reader has everything up to ``lsn``. ``moved_ms`` is when the cursor was last moved; ``ttl_s`` later it holds
    nothing back.
    """

    name: str
    lsn: int
    owner: str
    ttl_s: float
    moved_ms: int

    def holds(self, now_ms: int) -> bool:
        """Does it still hold back what comes after it?"""
        return now_ms < self.moved_ms + self.ttl_s * 1000

    def fields(self) -> dict[str, Any]:
        """The fields as stored in the journal."""
        return asdict(self)


def check_name(name: str) -> str:
    """Return a valid cursor name. Raises CursorError."""
    if _NAME.fullmatch(name) is None:
        raise CursorError(
            f"{name[:140]!r} is not a valid cursor name: use 1 to 128 of the characters A-Z a-z 0-9 . _ : @ -"
        )
    return name


def wanted_cursor(name: str, given: object, ttl_s: float, now_ms: int) -> Cursor:
    """The cursor requested by name and by the JSON ``{"lsn": n, "owner": text, "ttl_s": seconds}``. Only ``lsn`` is
    required; the argument ``ttl_s`` is the default. Raises CursorError with what is wrong.
    """
    check_name(name)
    if not isinstance(given, dict):
        raise CursorError('a cursor must be a JSON object such as {"lsn": 0, "owner": "who", "ttl_s": 86400}')
    unknown = sorted(given.keys() - set(_KEYS))
    if unknown:
        raise CursorError(f"a cursor has no field {_brief(unknown[0])}; its fields are {', '.join(_KEYS)}")
    lsn: object = given.get("lsn")
    owner: object = given.get("owner", "")
    ttl: object = given.get("ttl_s", ttl_s)
    if not isinstance(lsn, int) or isinstance(lsn, bool) or lsn < 0:
        raise CursorError(f"lsn must be a number, 0 or more, not {_brief(lsn)}")
    if not isinstance(owner, str) or len(owner) > OWNER_SIZE_MAX:
        raise CursorError(f"owner must be a text of at most {OWNER_SIZE_MAX} characters")
    if not isinstance(ttl, int | float) or isinstance(ttl, bool) or not 0 < ttl <= TTL_S_MAX:
        raise CursorError(f"ttl_s must be a number of seconds above 0 and at most {TTL_S_MAX}, not {_brief(ttl)}")
    return Cursor(name, lsn, owner, ttl, now_ms)


def _brief(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:80] + "..."


class Cursors(RetentionHolds):
    """What the cursors of a journal hold back. ``found`` maps names to the fields of their records; the journal's index
    keeps it up to date. ``crowded`` says whether the disk is too full to hold anything back; ``say`` gets lines for
    people.
    """

    def __init__(
        self,
        found: Mapping[str, dict[str, Any]],
        clock_ms: Callable[[], int],
        crowded: Callable[[], bool],
        say: Callable[[str], None],
        ttl_s: float,
    ) -> None:
        self.ttl_s = ttl_s
        self.overrun_files = 0
        self.overrun_bytes = 0
        self._found = found
        self._clock_ms = clock_ms
        self._crowded = crowded
        self._say = say

    def all(self) -> list[Cursor]:
        """Every cursor, by name."""
        return [Cursor(**fields) for _, fields in sorted(self._found.items())]

    def get(self, name: str) -> Cursor | None:
        """A cursor by name, or None."""
        fields = self._found.get(name)
        return None if fields is None else Cursor(**fields)

    def held_from(self) -> int | None:
        now_ms = self._clock_ms()
        holding = [cursor.lsn for cursor in self.all() if cursor.holds(now_ms)]
        return min(holding) + 1 if holding else None

    def is_crowded(self) -> bool:
        return self._crowded()

    def overrun(self, file_name: str, size_bytes: int, last_lsn: int) -> None:
        now_ms = self._clock_ms()
        names = [cursor.name for cursor in self.all() if cursor.holds(now_ms) and cursor.lsn < last_lsn]
        self.overrun_files += 1
        self.overrun_bytes += size_bytes
        self._say(
            f"warning: the disk is full: {file_name} was removed from the retained log before these cursors had read "
            f"it: {', '.join(names)}"
        )


class Lag:
    """How many bytes of the log come after an lsn. ``spans`` are its segments in order: first lsn, last lsn, bytes."""

    def __init__(self, spans: Sequence[tuple[int, int, int]]) -> None:
        self._spans = spans
        self._totals = [0, *accumulate(size_bytes for _, _, size_bytes in spans)]

    def bytes_behind(self, lsn: int) -> int:
        """The bytes of segments that begin after the lsn, plus a share of the segment that contains it."""
        place = bisect_right(self._spans, lsn, key=itemgetter(0))
        behind = self._totals[-1] - self._totals[place]
        if place:
            first_lsn, last_lsn, size_bytes = self._spans[place - 1]
            behind += size_bytes * max(last_lsn - lsn, 0) // max(last_lsn - first_lsn + 1, 1)
        return behind
