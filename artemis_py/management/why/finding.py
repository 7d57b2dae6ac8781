"""One reason that applies now: its word, a sentence, numbers, and the setting behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, final

from artemis_py.management.fields import NUMBER, TEXT, Field, Kind
from artemis_py.management.why.causes import CAUSES
from artemis_py.management.why.places import NOWHERE, Place

UNKNOWN: Final = -1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``about`` is whom it is about, such as a consumer; empty: the queue or address that was asked for. ``used`` of
    ``limit`` are in ``unit``; -1: there is no such number. ``connection`` is the number of a client's connection; 0:
    none.
    """

    code: str
    sentence: str
    about: str = ""
    connection: int = 0
    used: int = UNKNOWN
    limit: int = UNKNOWN
    unit: str = ""
    place: Place = NOWHERE
    help: str = ""
    """What helps in this case; empty: what the table says."""

    @property
    def remedy(self) -> str:
        """What helps."""
        return self.help or CAUSES[self.code].remedy

    def saying(self, sentence: str) -> Finding:
        """The same in other words."""
        return replace(self, sentence=sentence)

    @property
    def text(self) -> str:
        """The sentence, with whom it is about."""
        return f"{self.about}: {self.sentence}" if self.about else self.sentence


REASONS: Final[Kind[Finding]] = Kind(
    "reason",
    "reasons",
    [
        Field("reason", TEXT, "The reason's word (docs/why.md)", lambda it: it.code, is_brief=True),
        Field("about", TEXT, "Whom it is about; empty: what was asked for", lambda it: it.about, is_brief=True),
        Field("sentence", TEXT, "The reason in words", lambda it: it.sentence, is_brief=True),
        Field("connection", NUMBER, "The number of the client's connection; 0: none", lambda it: it.connection),
        Field("used", NUMBER, "How much is used, or how often it happened; -1: nobody counts", lambda it: it.used),
        Field("limit", NUMBER, "Of how much; -1: no limit", lambda it: it.limit),
        Field("unit", TEXT, "The unit of both", lambda it: it.unit),
        Field("setting", TEXT, "The setting behind it; empty: none", lambda it: it.place.setting, is_brief=True),
        Field("value", TEXT, "Its value in force", lambda it: it.place.value, is_brief=True),
        Field("place", TEXT, "Where it is written, such as broker.xml:12", lambda it: it.place.where, is_brief=True),
        Field("remedy", TEXT, "What helps", lambda it: it.remedy, is_brief=True),
    ],
)
