"""What people and programs read on standard output and standard error.

Names, headers and texts of clients may hold anything: escape sequences that colour, move or rename a terminal, line
ends that forge a line of a log, marks that turn the direction of reading. So a line is written here and nowhere else,
and what cannot be printed in it appears as Python writes it (``\\x1b``, ``\\n``, ``\\u202e``).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from artemis_py.log_codes import OTHER
from artemis_py.units import DATE_MAX_MS

PROGRAM: Final = "artemis-py"
_COMMAND: Final = re.compile(rf"(?<![\w/.-]){PROGRAM}(?= [a-z])")
_PLAIN: Final = re.compile(r"[^\s\"=]+")

RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"
CYAN: Final = "36"
BOLD: Final = "1"
DIM: Final = "2"
"""Colours of ``painter``."""


def escaped(text: str) -> str:
    """A text on one line, with nothing in it that a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def as_called(text: str) -> str:
    """A text with commands in it, such as ``artemis-py user list``, as they work in the shell of whoever reads it: by
    the path of this program, if the shell finds none by its name, or another one.
    """
    called = sys.argv[0] if sys.argv else ""
    if os.path.basename(called) != PROGRAM:
        return text
    found = shutil.which(PROGRAM)
    with suppress(OSError):
        if found is not None and os.path.samefile(found, called):
            return text
    return _COMMAND.sub(lambda _match: shlex.quote(called), text)


def painter(stream: TextIO) -> Callable[[str, str], str]:
    """Return a function that colours a one-line text, or returns it unchanged if ``stream`` is not a terminal or
    NO_COLOR is set.
    """
    if not stream.isatty() or os.environ.get("NO_COLOR"):
        return lambda _colour, text: escaped(text)
    return lambda colour, text: f"\x1b[{colour}m{escaped(text)}\x1b[0m"


def shown_time(time_ms: int) -> str:
    """UTC, ISO 8601, with milliseconds; ``DATE_MAX_MS`` for what is later."""
    whole, part = divmod(min(time_ms, DATE_MAX_MS), 1000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{part:03}Z"


def many(count: int, one: str, several: str = "") -> str:
    """A count and what it counts: ``1 file``, ``2,000 files``; ``several`` for a plural without s."""
    return f"{count} {one}" if count == 1 else f"{count:,} {several or one + 's'}"


def as_json(value: Any, indent: int | None = None, default: Callable[[Any], Any] | None = None) -> str:
    """JSON that reads as it is: letters of all scripts stay, what cannot be printed is ``\\u...``. ``default`` makes
    something of what JSON does not know.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=default)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text)


def say(line: object = "") -> None:
    """One line on standard output."""
    _write(escaped(str(line)) + "\n", sys.stdout)


def say_at_once(line: object) -> None:
    """One line on standard output, for a program that reads while this one goes on."""
    _write(escaped(str(line)) + "\n", sys.stdout, flush=True)


def say_made(text: str, end: str = "\n", stream: TextIO | None = None) -> None:
    """A text on standard output (or ``stream``) that is made already: of several lines, or with colours. All in
    it that others chose has been through ``escaped`` or ``as_json``.
    """
    _write(text + end, sys.stdout if stream is None else stream)


def _write(text: str, stream: TextIO | None, *, flush: bool = False) -> None:
    """Write in one call, with the line end: between two calls another thread could write its own line. Python has no
    stream (None) where the process was started with a closed descriptor.
    """
    if stream is None:
        return
    stream.write(text)
    if flush:
        stream.flush()


class _Log:
    has_begun = False


def begin_log() -> None:
    """From now on, what ``warn`` writes are lines of a log."""
    _Log.has_begun = True


def warn(line: object, /, code: str = OTHER, **who: str) -> None:
    """One line on standard error, at once. In a log it is a line of that, as ``log`` writes it."""
    if _Log.has_begun:
        log(line, code, **who)
    else:
        _warn(escaped(str(line)))


def log(line: object, /, code: str = OTHER, traceback: str = "", **who: str) -> None:
    """One line of the log on standard error: the time (UTC), the ``code`` (see ``log_codes``), fields that say who or
    what it is about, in logfmt, and what there is to say. The lines of a ``traceback`` follow, each behind a tab.
    """
    fields = "".join(f"{name.rstrip('_')}={quoted(value)} " for name, value in who.items() if value)
    told = [f"{shown_time(time.time_ns() // 1_000_000)} {code} {fields}{escaped(str(line))}"]
    _warn("\n\t".join([*told, *map(escaped, traceback.splitlines())]))


def _warn(text: str) -> None:
    """Ignore a full disk, and a reader that has gone."""
    with suppress(OSError, ValueError):
        _write(text + "\n", sys.stderr, flush=True)


def quoted(value: object) -> str:
    """A logfmt value: quoted if it is empty or contains blanks or quotes."""
    text = str(value)
    if _PLAIN.fullmatch(text) and text.isprintable():
        return text
    told = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped(told)}"'


def warn_made(text: str, end: str = "\n") -> None:
    """As ``say_made``, on standard error, at once."""
    _write(text + end, sys.stderr, flush=True)
