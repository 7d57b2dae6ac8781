"""The results as a table for people and as JSON for programs, and a line on the terminal meanwhile."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final, TextIO

from artemis_py.perf.result import METRICS, Outcome
from artemis_py.terminal_output import escaped
from artemis_py.text_table import Column, text_of

COLUMNS: Final = (
    "messages_per_second",
    "cpu_s_per_million",
    "generator_cpu_s_per_million",
    "resident_mb",
    "p50_us",
    "p99_us",
    "p999_us",
)
HIDDEN: Final = frozenset({"messages", "max_us", "other_load_percent"})
RED: Final = "\x1b[31m"
PLAIN: Final = "\x1b[0m"


def number(metric: str, value: float) -> str:
    """A value with the digits of its metric and commas between thousands."""
    return f"{value:,.{METRICS[metric].digits}f}"


def with_unit(metric: str, value: float) -> str:
    """A value with its unit, as in ``1,234 B`` or ``5,678/s``."""
    unit = METRICS[metric].unit
    gap = "" if unit.startswith("/") or not unit else " "
    return f"{number(metric, value)}{gap}{unit}"


def table(outcomes: Sequence[Outcome], colour: bool) -> str:
    """One line per scenario with medians over its rounds, without empty columns. Failures follow."""
    used = [name for name in COLUMNS if any(name in outcome.medians() for outcome in outcomes)]
    extras = [_extras(outcome) for outcome in outcomes]
    columns = [Column(), Column("scenario"), *(Column(METRICS[name].label, is_number=True) for name in used), Column()]
    rows: list[list[str]] = []
    for outcome, extra in zip(outcomes, extras, strict=True):
        medians = outcome.medians()
        cells = [number(name, medians[name]) if name in medians else "-" for name in used]
        rows.append([outcome.scenario, outcome.title, *cells, extra])
    lines = [text_of(columns, rows, has_colours=colour)]
    for outcome in outcomes:
        for failure in outcome.failures:
            text = f"scenario {outcome.scenario} failed: {escaped(failure)}"
            lines.append(f"{RED}{text}{PLAIN}" if colour else text)
    return "\n".join(lines)


def _extras(outcome: Outcome) -> str:
    shown = {name: value for name, value in outcome.medians().items() if name not in COLUMNS and name not in HIDDEN}
    return ", ".join(f"{METRICS[name].label} {with_unit(name, value)}" for name, value in shown.items())


def as_json(url: str, rounds: int, outcomes: Sequence[Outcome]) -> str:
    """Everything measured, one object."""
    return json.dumps({"url": url, "rounds": rounds, "results": [outcome.as_json() for outcome in outcomes]}, indent=2)


# ---- progress --------------------------------------------------------------------------------------------------------
#
# A line while a measurement runs; none if standard error is no terminal.


INTERVAL_S: Final = 0.2


class Progress:
    """Rewrites one line on ``stream``, at most five times a second."""

    __slots__ = ("_enabled", "_next", "_stream", "label")

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._enabled = self._stream.isatty()
        self._next = 0.0
        self.label = ""

    def show(self, text: Callable[[], str]) -> None:
        """Shows what ``text`` returns after the label; does not call it while the last line is fresh."""
        if not self._enabled or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + INTERVAL_S
        self._stream.write(f"\r\x1b[K{self.label}: {text()}"[:160])
        self._stream.flush()

    def clear(self) -> None:
        """Removes the line, so that the table begins on a clean one."""
        if self._enabled:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
