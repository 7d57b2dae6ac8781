"""What an answer to a question "why" tells: one row for each reason."""

from __future__ import annotations

from typing import Final

from artemis_py.management.lists.field import NUMBER, TEXT, Field, Kind
from artemis_py.management.why.finding import Finding

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
