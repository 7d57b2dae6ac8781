"""Writes docs/differences.md: ``python -m tests.oracle.differences.document``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.oracle.differences.catalogue import SECTIONS
from tests.oracle.differences.departure import Departure

FILE: Final = Path(__file__).resolve().parents[3] / "docs" / "differences.md"

_HEAD: Final = """\
# Differences from Artemis

The broker reads Artemis' files and, over STOMP, behaves like Artemis. This page lists the
differences. One rule decides: the STOMP specification takes precedence over Artemis' manual, and the manual over
Artemis' actual behaviour.

Scenarios that run on both brokers show the rows with ✓ (`tests/oracle/`; Artemis 2.44.0). The same scenarios show where
the two agree. Features that this version leaves out are not listed here: [configuration.md](configuration.md) marks
them as *ignored* or *refused*.

This page is written by `python -m tests.oracle.differences.document`; a test fails when it is out of date.
"""
_COLUMNS: Final = "| | Artemis | artemis_py | why |\n|---|---|---|---|\n"


def render() -> str:
    """The whole document."""
    parts = [_HEAD]
    for title, departures in SECTIONS.items():
        rows = "".join(_row(departure) for departure in departures)
        parts.append(f"\n## {title}\n\n{_COLUMNS}{rows}")
    return "".join(parts)


def _row(departure: Departure) -> str:
    mark = " ✓" if departure.shown else ""
    return f"| {departure.subject}{mark} | {departure.artemis} | {departure.ours} | {departure.why} |\n"


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
