"""Shared by the commands that read a configuration: its arguments, and how its problems are shown."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final, TextIO

from artemis_py.config.problems import CODES, kind_of, nearest
from artemis_py.config.secrets_in_text import masked_line, names_a_secret
from artemis_py.config.xml.source import declared_encoding
from artemis_py.errors import AdviceError, Problem
from artemis_py.terminal_output import CYAN, DIM, RED, YELLOW, as_called, escaped, painter, say, say_made

DEFAULT_FILE: Final = "broker.xml"

_COLOURS: Final = {"error": RED, "warning": YELLOW, "note": CYAN}
_WITH_PASSWORDS: Final = "users"
"""Findings of this kind are about files whose lines are passwords: these lines are not shown."""
_SHOWN_LENGTH_MAX: Final = 120
_SHOWN_FILE_LENGTH_MAX: Final = 16 * 1024 * 1024

Paint = Callable[[str, str], str]


class NoFileError(AdviceError):
    """No configuration was named, and the folder has none."""


def add_file(parser: argparse.ArgumentParser) -> None:
    """Adds the argument ``FILE``."""
    parser.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        nargs="?",
        help=f"configuration file, or the folder of an instance (default: {DEFAULT_FILE})",
    )


def add_properties(parser: argparse.ArgumentParser) -> None:
    """Adds ``--properties``."""
    parser.add_argument(
        "--properties",
        metavar="PATH",
        type=str,
        action="append",
        default=[],
        help="properties that override the configuration: comma-separated files or folders of files; the last one wins",
    )


def add_strictness(parser: argparse.ArgumentParser) -> None:
    """Adds ``--strict`` and ``--silence``."""
    parser.add_argument("--strict", action="store_true", help="also refuse a configuration that has warnings")
    parser.add_argument(
        "--silence",
        metavar="CODE",
        type=codes,
        action="extend",
        default=[],
        help="hide warnings and notes of this kind, or of several kinds separated by commas; the kinds are "
        + ", ".join(CODES),
    )


def codes(text: str) -> list[str]:
    """The kinds of warnings that a text names. Raises ArgumentTypeError for an unknown one."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in CODES:
            guess = nearest(name, CODES)
            hint = f"did you mean {guess!r}?" if guess else f"the kinds are {', '.join(CODES)}"
            raise argparse.ArgumentTypeError(f"unknown kind of warning: {name!r}; {hint}")
    return names


def file_or_default(file: Path | None, command: str) -> Path:
    """The named file, else broker.xml in the working directory. Raises NoFileError."""
    if file is not None:
        return file
    beside = Path(DEFAULT_FILE)
    if beside.is_file():
        return beside
    name = command.partition(" ")[0]
    raise NoFileError(
        f"{name} needs a configuration, and this folder has no {DEFAULT_FILE}. Name one:  artemis-py {command} "
        "path/to/broker.xml",
        "To write one, with comments that say what is what:  artemis-py init\n\n"
        "A minimal configuration:\n\n"
        '  <configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">\n'
        "    <persistence-enabled>false</persistence-enabled>\n"
        "    <security-enabled>false</security-enabled>\n"
        '    <acceptors><acceptor name="stomp">tcp://127.0.0.1:61613?protocols=STOMP</acceptor></acceptors>\n'
        "  </core></configuration>",
    )


def print_problems(problems: Sequence[Problem], stream: TextIO) -> None:
    """Print each problem on a line, followed by the line of the file that it is about."""
    paint = painter(stream)
    lines = _Lines()
    for problem in problems:
        place = f"{problem.place}: "
        severity = paint(_COLOURS[problem.severity], kind_of(problem))
        say_made(f"{escaped(place)}{severity}: {escaped(as_called(str(problem).removeprefix(place)))}", stream=stream)
        line = lines.of(problem.file, problem.line)
        if line and problem.code != _WITH_PASSWORDS and not names_a_secret(problem.suggestion or ""):
            say_made(paint(DIM, f"{problem.line:>6} | {line}"), stream=stream)


def summary(problems: Collection[Problem]) -> str:
    """The number of problems of each severity."""
    counts = Counter(problem.severity for problem in problems)
    return ", ".join(
        f"{counts[severity]} {severity}{'' if counts[severity] == 1 else 's'}"
        for severity in ("error", "warning", "note")
    )


def print_ports(places: Sequence[str]) -> None:
    """Print where the broker would listen."""
    for place in places:
        say(f"would listen on {place}")
    if not places:
        say_made(painter(sys.stdout)(RED, "would listen nowhere: no acceptor would open a port"))


class _Lines:
    """Lines of files, each file read once."""

    def __init__(self) -> None:
        self._files: dict[str, list[str]] = {}

    def of(self, file: str, number: int) -> str:
        """A line fit to be shown: passwords masked, unprintable characters escaped, shortened; empty if there is
        none.
        """
        if file not in self._files:
            self._files[file] = _read_lines(file)
        rows = self._files[file]
        if not 0 < number <= len(rows):
            return ""
        row = masked_line(rows, number)
        return escaped(row if len(row) <= _SHOWN_LENGTH_MAX else row[: _SHOWN_LENGTH_MAX - 1] + "…")


def _read_lines(file: str) -> list[str]:
    """The lines of a file in its own encoding, which is needed to find passwords; none if that is unknown."""
    path = Path(file)
    try:
        if not path.is_file() or path.stat().st_size > _SHOWN_FILE_LENGTH_MAX:
            return []
        data = path.read_bytes()
        return data.decode(declared_encoding(data), "replace").split("\n")
    except (OSError, LookupError):
        return []
