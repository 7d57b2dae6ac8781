"""Reasons as a person reads them: the word and the sentence, the setting with its line, and what helps."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from artemis_py.cli import colour
from artemis_py.shown import escaped, say


def print_reasons(answer: Mapping[str, Any]) -> None:
    """A paragraph for each reason."""
    rows: Sequence[Mapping[str, Any]] = answer["data"]
    paint = colour.painter(sys.stdout)
    told: set[tuple[str, str]] = set()
    for place, row in enumerate(rows):
        if place:
            say()
        about = f"{escaped(row['about'])}: " if row["about"] else ""
        say(f"{paint(colour.BOLD, row['reason'])}  {about}{escaped(row['sentence'])}")
        if row["setting"]:
            say(f"  setting  {row['setting']} = {escaped(row['value'])}  ({escaped(row['place'])})")
        if row["remedy"] and (row["reason"], row["remedy"]) not in told:
            say(f"  remedy   {escaped(row['remedy'])}")
        told.add((row["reason"], row["remedy"]))
