"""The operational log and the audit log: one line for each event, with a code and fields that programs can read."""

from __future__ import annotations

import logging
import re
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any, Final, final

from artemis_py.core.clock import NEVER_MS
from artemis_py.core.events import (
    ADDRESS_DROPS,
    ADDRESS_REFUSES,
    BLOCKED,
    CLOSED,
    CREATED,
    DELETED,
    DROPPED,
    ERROR,
    FOREIGN_HEADER,
    LEASES_ENDED,
    LIMITED,
    MEANINGS,
    NO_ID,
    OPENED,
    PAGES,
    SUBSCRIBED,
    UNBLOCKED,
    UNSUBSCRIBED,
    Event,
)
from artemis_py.shown import as_json, log, quoted

# ---- operational -----------------------------------------------------------------------------------------------------
#
# The operational log: one line for each event of a queue, with a code and fields that programs can read. A line is
# ``CODE queue=NAME key=value … meaning``, in logfmt. Each queue may write one line per code every ten seconds (a few
# more of the codes that occur once in a queue's life). What was held back is written as one line when these are over.


LOGGER_NAME: Final = "artemis_py.operational"
WINDOW_MS: Final = 10_000
"""The window in which lines of one kind are counted together."""
COMMON_LINES_MAX: Final = 20
"""Maximum lines per window of codes that occur once per queue, subscription or client."""
_KEYS_MAX: Final = 10_000
_NAME_MAX: Final = 256
"""Queues whose names share this many leading characters share a line, because clients choose names."""

_COUNTED: Final = frozenset({ADDRESS_DROPS, ADDRESS_REFUSES, DROPPED, LEASES_ENDED})
"""Codes whose lines always say how many messages they are about. Lines that are held back are added up."""
_OF_ADDRESSES: Final = frozenset({ADDRESS_DROPS, ADDRESS_REFUSES, BLOCKED, PAGES, UNBLOCKED})
"""Codes that may be about an address, which has its own lines as a queue has."""
_COMMON: Final = frozenset(
    {CLOSED, CREATED, DELETED, ERROR, FOREIGN_HEADER, LIMITED, NO_ID, OPENED, SUBSCRIBED, UNSUBSCRIBED}
)


def line_of(event: Event, left_out: int = 0) -> str:
    """The line of an event; ``left_out`` counts lines that were never written, and that it does not add up."""
    fields: dict[str, str | int] = {**({"queue": event.queue} if event.queue else {}), **event.fields}
    if event.count > 1 or event.code in _COUNTED:
        fields["count"] = event.count
    if left_out:
        fields["not_written_before"] = left_out
    shown = " ".join(f"{name}={quoted(value)}" for name, value in fields.items())
    return f"{event.code} {shown} {MEANINGS[event.code]}"


class _Window:
    __slots__ = ("begun_ms", "lines")

    def __init__(self, begun_ms: int) -> None:
        self.begun_ms = begun_ms
        self.lines = 0


class _Held:
    """The last event of those that were held back in a window, or their sum, and how many lines it stands for."""

    __slots__ = ("event", "lines")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.lines = 1

    def add(self, event: Event) -> None:
        count = event.count
        if event.code in _COUNTED:
            count += self.event.count
        else:
            self.lines += 1
        self.event = Event(event.code, event.queue[:_NAME_MAX], event.fields, count)


_Key = tuple[str, str, str]


class OperationalLog:
    """Writes events to a logger, within its limits. Called in a turn, if something happened, or if ``tell`` has asked
    for it.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger(LOGGER_NAME)
        self._windows: dict[_Key, _Window] = {}
        self._held: dict[_Key, _Held] = {}

    def tell(self, events: list[Event], now_ms: int) -> int:
        """Write the events within the limits, and what was held back long enough. ``now_ms`` is steady time. Returns
        the steady time at which to call it again even if nothing has happened.
        """
        self._write_held(now_ms)
        for event in events:
            key = _key_of(event)
            window = self._window(key, now_ms)
            if window.lines < (COMMON_LINES_MAX if event.code in _COMMON else 1):
                window.lines += 1
                self._logger.info(line_of(event))
            elif key in self._held:
                self._held[key].add(event)
            else:
                self._held[key] = _Held(event)
        return min((self._windows[key].begun_ms + WINDOW_MS for key in self._held), default=NEVER_MS)

    def end(self) -> None:
        """Write all that was held back: nobody calls ``tell`` any more."""
        self._write_held(NEVER_MS)

    def _write_held(self, now_ms: int) -> None:
        """Each kind gets a line, which is the first of the next ten seconds."""
        for key in [key for key in self._held if now_ms - self._windows[key].begun_ms >= WINDOW_MS]:
            held = self._held.pop(key)
            self._window(key, now_ms).lines = 1
            self._logger.info(line_of(held.event, held.lines - 1))

    def _window(self, key: _Key, now_ms: int) -> _Window:
        window = self._windows.get(key)
        if window is None:
            if len(self._windows) >= _KEYS_MAX:
                self.end()
                self._windows.clear()
            window = self._windows[key] = _Window(now_ms)
        elif now_ms - window.begun_ms >= WINDOW_MS:
            window.begun_ms = now_ms
            window.lines = 0
        return window


def _key_of(event: Event) -> _Key:
    """What is limited together."""
    own = "" if event.code in _COMMON else event.queue
    if not own and event.code in _OF_ADDRESSES:
        own = str(event.fields["address"])
    return event.code, own[:_NAME_MAX], str(event.fields.get("alert") or event.fields.get("header", ""))


@final
class _Lines(logging.Handler):
    """Writes records as lines of the log. What Python and libraries log has no code of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; its traceback belongs to it."""
        text, error = record.getMessage(), record.exc_info
        if record.name == LOGGER_NAME:
            code, _, text = text.partition(" ")
            log(text, code)
            return
        trace = "" if not error or error[0] is None else "".join(traceback.format_exception(*error))
        first, _, rest = text.partition("\n")
        log(first, traceback=f"{rest}\n{trace}" if rest else trace, logger=record.name)


def write_to_stderr() -> None:
    """Events, and what Python itself and libraries have to say, are lines of the log on standard error from now on,
    unless logging was already set up.
    """
    handler = _Lines()
    logger = logging.getLogger(LOGGER_NAME)
    if not logger.handlers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
    if not logging.root.handlers:
        logging.root.addHandler(handler)
    logging.captureWarnings(True)
    threading.excepthook = _tell_of_thread
    sys.unraisablehook = _tell_of_unraisable


def _tell_of_thread(failed: threading.ExceptHookArgs) -> None:
    name = "a thread" if failed.thread is None else f"the thread {failed.thread.name}"
    trace = "".join(traceback.format_exception(failed.exc_type, failed.exc_value, failed.exc_traceback))
    log(f"warning: {name} has ended: {failed.exc_value!r}", traceback=trace)


def _tell_of_unraisable(failed: sys.UnraisableHookArgs) -> None:
    trace = "".join(traceback.format_exception(failed.exc_type, failed.exc_value, failed.exc_traceback))
    log(f"warning: {failed.err_msg or 'an exception was ignored'}: {failed.exc_value!r}", traceback=trace)


# ---- audit -----------------------------------------------------------------------------------------------------------
#
# The audit log: each change that somebody asked for, and each request that lacked a permission, with who, from where,
# and what came of it.


CODE: Final = "AUD-1001"
DENIED_CODE: Final = "AUD-1002"
_TEXT_MAX: Final = 200
_PLACE: Final = re.compile(r"\{\w+\}\.")
"""The place of an argument in the name of a permission."""
_ON_BROKER: Final = "broker."


def tell(id: str, given: Mapping[str, Any], user: str | None, peer: str, result: str) -> None:
    """A line in the operational log. ``result`` is ``done``, or why nothing was done. Arguments that were not ``given``
    (None, or no values) are left out.
    """
    _tell(CODE, {"operation": id, **given}, user, peer, result, "operation carried out or refused")


def tell_denied(permission: str, given: Mapping[str, Any], user: str | None, peer: str, reason: str) -> None:
    """A line about a request that lacked a permission, such as ``queue.{queue}.pause``. What was in its query or body
    was not read.
    """
    id = _PLACE.sub("", permission).removeprefix(_ON_BROKER)
    _tell(DENIED_CODE, {"operation": id, **given}, user, peer, reason, "operation denied")


def _tell(code: str, fields: Mapping[str, Any], user: str | None, peer: str, result: str, meaning: str) -> None:
    all_fields = {**fields, "user": user or "", "from": peer, "result": result}
    shown = " ".join(f"{name}={quoted(_text(value))}" for name, value in all_fields.items() if value not in (None, ()))
    logging.getLogger(LOGGER_NAME).info("%s %s %s", code, shown, meaning)


def _text(value: object) -> str:
    """As people write it: lists with commas between, and what has names as JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))[:_TEXT_MAX]
    return (as_json(value) if isinstance(value, dict) else str(value))[:_TEXT_MAX]
