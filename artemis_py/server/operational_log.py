"""The operational log and the audit log: one line for each event, with a code and fields that programs can read."""

from __future__ import annotations

import logging
import re
import sys
import threading
import traceback
from collections import OrderedDict, deque
from collections.abc import Mapping
from itertools import islice
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
    PAGES_NO_MORE,
    SUBSCRIBED,
    UNBLOCKED,
    UNSUBSCRIBED,
    Event,
)
from artemis_py.terminal_output import as_json, log, quoted

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
KEYS_MAX: Final = 10_000
"""Maximum windows at a time."""
LINES_PER_TURN: Final = 32
"""How many new lines a turn writes, and how many that were held back. A line takes some 20 µs, and the queues wait
meanwhile.
"""
WAITING_MAX: Final = 1024
"""How many events may wait for the next turns. Those that come first are written at once if there are more."""
_NAME_MAX: Final = 256
"""Queues whose names share this many leading characters share a line, because clients choose names."""

_COUNTED: Final = frozenset({ADDRESS_DROPS, ADDRESS_REFUSES, DROPPED, LEASES_ENDED})
"""Codes whose lines always say how many messages they are about. Lines that are held back are added up."""
_OF_ADDRESSES: Final = frozenset({ADDRESS_DROPS, ADDRESS_REFUSES, BLOCKED, PAGES, PAGES_NO_MORE, UNBLOCKED})
"""Codes that may be about an address, which has its own lines as a queue has."""
_COMMON: Final = frozenset(
    {CLOSED, CREATED, DELETED, ERROR, FOREIGN_HEADER, LIMITED, NO_ID, OPENED, SUBSCRIBED, UNSUBSCRIBED}
)


def line_of(event: Event, left_out: int = 0, ago_ms: int = 0) -> str:
    """The line of an event that happened ``ago_ms`` before it is written. ``left_out`` counts lines that were never
    written, and that it does not add up.
    """
    fields: dict[str, str | int] = {**({"queue": event.queue} if event.queue else {}), **event.fields}
    if event.count > 1 or event.code in _COUNTED:
        fields["count"] = event.count
    if left_out:
        fields["not_written_before"] = left_out
    if ago_ms > 0:
        fields["ago_ms"] = ago_ms
    shown = " ".join(f"{name}={quoted(value)}" for name, value in fields.items())
    return f"{event.code} {shown} {MEANINGS[event.code]}"


class _Window:
    """How many lines a key has written in ten seconds, and what it has held back since: the last event, or their sum,
    when that was, and how many lines it stands for.
    """

    __slots__ = ("begun_ms", "held", "held_lines", "held_ms", "lines")

    def __init__(self, begun_ms: int, lines: int) -> None:
        self.begun_ms = begun_ms
        self.lines = lines
        self.held: Event | None = None
        self.held_lines = 0
        self.held_ms = 0

    def hold_back(self, event: Event, now_ms: int) -> None:
        count = event.count
        self.held_ms = now_ms
        if self.held is None or event.code not in _COUNTED:
            self.held_lines += 1
        else:
            count += self.held.count
        self.held = Event(event.code, event.queue[:_NAME_MAX], event.fields, count)


_Key = tuple[str, str, str]


class OperationalLog:
    """Writes events to a logger, within its limits. Called in a turn, if something happened, or if ``write`` has asked
    for it.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger(LOGGER_NAME)
        self._windows: OrderedDict[_Key, _Window] = OrderedDict()
        """In the order in which they begin, so that the first is the next one to end."""
        self._held_count = 0
        """How many windows hold something back."""
        self._waiting: deque[Event] = deque()
        """Events for which the turn had no time."""
        self._now_ms = 0
        """The steady time of the last turn."""

    def write(self, events: list[Event], now_ms: int) -> int:
        """Write the events within the limits, and what was held back long enough, as far as a turn has time for that.
        ``now_ms`` is steady time. Returns the steady time at which to call it again even if nothing has happened.
        """
        self._now_ms = now_ms
        for _ in range(LINES_PER_TURN):
            if not self._end_first(now_ms):
                break
        self._waiting.extend(events)
        written = 0
        while self._waiting and (written < LINES_PER_TURN or len(self._waiting) > WAITING_MAX):
            written += self._write_or_hold(self._waiting.popleft(), now_ms)
        return now_ms if self._waiting else self._due_ms()

    def end(self) -> None:
        """Write all that waits or was held back: nobody calls ``write`` any more."""
        for event in self._waiting:
            self._write_or_hold(event, self._now_ms)
        self._waiting.clear()
        for window in self._windows.values():
            self._write_held(window)
        self._windows.clear()

    def _end_first(self, now_ms: int) -> bool:
        """End the window that began first, if its time is over. What it held back gets a line, which is the first of
        the key's next window.
        """
        if not self._windows:
            return False
        key = next(iter(self._windows))
        window = self._windows[key]
        if now_ms - window.begun_ms < WINDOW_MS:
            return False
        del self._windows[key]
        if self._write_held(window):
            self._windows[key] = _Window(now_ms, 1)
        return True

    def _write_held(self, window: _Window) -> bool:
        if window.held is None:
            return False
        self._held_count -= 1
        self._logger.info(line_of(window.held, window.held_lines - 1, self._now_ms - window.held_ms))
        return True

    def _write_or_hold(self, event: Event, now_ms: int) -> bool:
        """True: it was written."""
        key = _key_of(event)
        window = self._windows.get(key)
        if window is not None and now_ms - window.begun_ms >= WINDOW_MS and window.held is None:
            del self._windows[key]
            window = None
        if window is None:
            window = self._begin(key, now_ms)
        if window.held is None and window.lines < (COMMON_LINES_MAX if event.code in _COMMON else 1):
            window.lines += 1
            self._logger.info(line_of(event))
            return True
        self._held_count += window.held is None
        window.hold_back(event, now_ms)
        return False

    def _begin(self, key: _Key, now_ms: int) -> _Window:
        """Begin a window. Where there are too many, the one that began first ends early."""
        if len(self._windows) >= KEYS_MAX:
            _, first = self._windows.popitem(last=False)
            self._write_held(first)
        window = self._windows[key] = _Window(now_ms, 0)
        return window

    def _due_ms(self) -> int:
        """When the first window that holds something back ends; or earlier, if that is not among the first ones."""
        due_ms = NEVER_MS
        if self._held_count:
            for window in islice(self._windows.values(), LINES_PER_TURN):
                due_ms = window.begun_ms + WINDOW_MS
                if window.held is not None:
                    break
        return due_ms


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
# and its outcome.


CODE: Final = "AUD-1001"
DENIED_CODE: Final = "AUD-1002"
_TEXT_MAX: Final = 200
_PLACE: Final = re.compile(r"\{\w+\}\.")
"""The place of an argument in the name of a permission."""
_ON_BROKER: Final = "broker."


def tell(id: str, given: Mapping[str, Any], user: str | None, peer: str, result: str) -> None:
    """A line in the operational log. ``result`` is what came of it (``Operation.outcome_of``), or why nothing was done.
    Arguments that were not ``given`` (None, or no values) are left out.
    """
    _tell(CODE, {"operation": id, **given}, user, peer, result, "request of an operator")


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
