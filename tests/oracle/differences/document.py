"""Writes docs/differences.md: ``python -m tests.oracle.differences.document``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.oracle.differences.catalogue import SECTIONS
from tests.oracle.differences.departure import Departure
from tools.docs.table import table

FILE: Final = Path(__file__).resolve().parents[3] / "docs" / "differences.md"

_HEAD: Final = """\
# Differences from Artemis

The broker reads Artemis' files and behaves like Artemis over STOMP, with these differences. The STOMP specification
takes precedence over Artemis' manual, and the manual over Artemis' actual behaviour.

Scenarios that run on both brokers show the rows with ✓ (`tests/oracle/`, which has the reasons, too; Artemis 2.44.0).
Settings that have no effect here are in [configuration.md](configuration.md), below each list.
"""
_ADDITION: Final = "an addition"


def render() -> str:
    """The whole document: what differs, section by section, and what Artemis has not."""
    parts = [_HEAD]
    for title, departures in SECTIONS.items():
        rows = [(_name(one), one.artemis, one.ours) for one in departures if not is_addition(one)]
        parts.append(f"\n## {title}\n\n{table(('', 'Artemis', 'artemis_py'), rows)}\n")
    added = [(_name(one), one.ours) for departures in SECTIONS.values() for one in departures if is_addition(one)]
    parts.append(f"\n## Additions\n\n{table(('', 'artemis_py'), added)}\n")
    return "".join(parts)


def is_addition(departure: Departure) -> bool:
    """Is it about what Artemis does not have at all?"""
    return departure.why.startswith(_ADDITION)


def _name(departure: Departure) -> str:
    return f"{departure.subject} ✓" if departure.shown else departure.subject


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
