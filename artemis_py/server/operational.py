"""The operational log: one line for each event of a queue, with a code and fields that programs can read.

A line is ``CODE queue=NAME key=value … meaning``, in logfmt. Each queue may write one line per code every ten seconds
(a few more of the codes that occur once in a queue's life); the next line counts the omitted ones.
"""

from __future__ import annotations

import logging
import re
import time
from typing import Final

from artemis_py.core.events import (
    CREATED,
    DELETED,
    FOREIGN_HEADER,
    LIMITED,
    MEANINGS,
    OPENED,
    SUBSCRIBED,
    UNSUBSCRIBED,
    Event,
)
from artemis_py.shown import escaped

LOGGER_NAME: Final = "artemis_py.operational"
WINDOW_MS: Final = 10_000
"""The window in which lines of one kind are counted together."""
COMMON_LINES_MAX: Final = 20
"""Maximum lines per window of codes that occur once per queue or subscription."""
_KEYS_MAX: Final = 10_000
_NAME_MAX: Final = 256
"""Queues whose names share this many leading characters share a line, because clients choose names."""

_COMMON: Final = frozenset({CREATED, DELETED, FOREIGN_HEADER, LIMITED, OPENED, SUBSCRIBED, UNSUBSCRIBED})
_PLAIN: Final = re.compile(r"[^\s\"=]+")


def quoted(value: str | int) -> str:
    """A logfmt value: quoted if it is empty or contains blanks or quotes."""
    text = str(value)
    if _PLAIN.fullmatch(text) and text.isprintable():
        return text
    told = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped(told)}"'


def line_of(event: Event, left_out: int = 0) -> str:
    """The line of an event; ``left_out`` counts similar ones omitted since the last line."""
    fields: dict[str, str | int] = {**({"queue": event.queue} if event.queue else {}), **event.fields}
    if event.count > 1:
        fields["count"] = event.count
    if left_out:
        fields["not_written_before"] = left_out
    shown = " ".join(f"{name}={quoted(value)}" for name, value in fields.items())
    return f"{event.code} {shown} {MEANINGS[event.code]}"


class _Window:
    __slots__ = ("begun_ms", "left_out", "lines")

    def __init__(self, begun_ms: int) -> None:
        self.begun_ms = begun_ms
        self.lines = 0
        self.left_out = 0


class OperationalLog:
    """Writes events to a logger, within its limits. Called once a turn, only if something happened."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger(LOGGER_NAME)
        self._windows: dict[tuple[str, str, str], _Window] = {}

    def tell(self, events: list[Event], now_ms: int) -> None:
        """Write the events within the limits, count the others. ``now_ms`` is steady time."""
        for event in events:
            window = self._window(event, now_ms)
            if window.lines >= (COMMON_LINES_MAX if event.code in _COMMON else 1):
                window.left_out += event.count
                continue
            window.lines += 1
            left_out, window.left_out = window.left_out, 0
            self._logger.info(line_of(event, left_out))

    def _window(self, event: Event, now_ms: int) -> _Window:
        own = "" if event.code in _COMMON else event.queue[:_NAME_MAX]
        key = event.code, own, str(event.fields.get("alert", ""))
        window = self._windows.get(key)
        if window is None:
            if len(self._windows) >= _KEYS_MAX:
                self._windows.clear()
            window = self._windows[key] = _Window(now_ms)
        elif now_ms - window.begun_ms >= WINDOW_MS:
            window.begun_ms = now_ms
            window.lines = 0
        return window


def write_to_stderr() -> None:
    """Send the operational log to standard error, each line with its time (UTC), unless logging was already set up."""
    logger = logging.getLogger(LOGGER_NAME)
    if logger.handlers:
        return
    handler = logging.StreamHandler()
    formatter = logging.Formatter("%(asctime)s.%(msecs)03dZ %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
