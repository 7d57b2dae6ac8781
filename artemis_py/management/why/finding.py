"""One reason that applies now: its word, a sentence, numbers, and the setting behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, final

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
