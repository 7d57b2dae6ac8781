"""Header values that are not fixed text: relative to the clock, or only there or not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.kit.frames import ServerFrame
from tests.oracle.scenario_run import ScenarioRun


@dataclass(frozen=True)
class In:
    """A time this many milliseconds after the frame is sent."""

    ms: int


Value = str | In


@dataclass(frozen=True)
class AfterSend:
    """A time this many milliseconds after the last SEND reached the broker."""

    ms: int


@dataclass(frozen=True)
class Contains:
    """A text with this part."""

    part: str


@dataclass(frozen=True)
class Presence:
    """Any value, or no such header at all."""

    there: bool


PRESENT: Final = Presence(True)
ABSENT: Final = Presence(False)

Expected = str | AfterSend | Contains | Presence


def given(headers: Mapping[str, Value], stage: ScenarioRun) -> dict[str, str]:
    """Headers to send, now."""
    return {
        name: str(stage.broker.now_ms() + value.ms) if isinstance(value, In) else value
        for name, value in headers.items()
    }


def check_headers(frame: ServerFrame, expected: Mapping[str, Expected], stage: ScenarioRun) -> None:
    """Fails unless each of these headers is as expected; others may be there."""
    for name, value in expected.items():
        seen = frame.headers.get(name)
        assert _is_as_expected(seen, value, stage), f"header {name} should be {value}, not {seen!r}: {frame.text}"


def _is_as_expected(seen: str | None, expected: Expected, stage: ScenarioRun) -> bool:
    if isinstance(expected, Presence):
        return (seen is not None) == expected.there
    if seen is None:
        return False
    if isinstance(expected, Contains):
        return expected.part in seen
    if isinstance(expected, AfterSend):
        earliest, latest = stage.sent_ms
        return earliest + expected.ms <= int(seen) <= latest + expected.ms
    return seen == expected
