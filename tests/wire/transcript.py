"""Transcripts: text files that say what clients send and what they must get.

A file has a head (``key: value`` lines, then perhaps ``config:`` and indented XML), a line ``---``, and steps::

    # a comment
    a >>>
        SEND
        destination:/queue/x

        body^@
    a <<<
        MESSAGE
        message-id:{id}
        timestamp:*
        !receipt
        [1.2] ack:*

        body^@

``>>>`` holds the bytes that client a sends, ``<<<`` the frames that it must get next, in this order; both are
indented by four blanks. ``{id}`` is captured at its first use and compared or filled in afterwards, ``*`` is any
value, ``!receipt`` a header that must not be there, and a line after ``[1.1 1.2]`` is there for these versions only.

``<<<=`` compares the headers exactly instead of as a required subset, ``<<<?`` takes the frames in any order. In
sent and expected text ``^@`` is NUL, ``^M`` CR, ``^J`` a line feed beside the written ones, ``^I`` a tab, ``^^`` a
caret, ``^xNN`` any byte, ``^[x*70000]`` a repetition and ``^:`` the end of a line that must not be followed by a line
feed. A line feed right after ``^@`` at the end of a line is not sent. Every other step is one line, which may also
begin with ``[1.2]``; ``player.py`` knows them.
"""

from __future__ import annotations

import functools
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

VERSIONS = ("1.0", "1.1", "1.2")

_INDENT = "    "
_BLOCK = re.compile(r"(\w+) (>>>|<<<[=?]?)")
_ONLY = re.compile(r"\[([\d. ]+)\] ")
_ESCAPE = re.compile(rb"\^(\[(.)\*(\d+)\]|x([0-9a-f]{2})|[@MJI^:])", re.DOTALL)
_SIMPLE = {b"@": b"\0", b"M": b"\r", b"J": b"\n", b"I": b"\t", b"^": b"^", b":": b""}


@dataclass(frozen=True)
class Step:
    """One step: ``words`` of a one-line step, or ``verb`` ``>>>``/``<<<`` with the lines of its block."""

    line_number: int
    verb: str
    words: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    versions: tuple[str, ...] = VERSIONS


@dataclass(frozen=True)
class Transcript:
    """A file, read."""

    path: Path
    title: str
    versions: tuple[str, ...]
    acceptor: str
    core: str
    splits: str
    """``all``: divided at every byte; ``some``: at a few places (for scenarios whose frames are plain)."""
    steps: tuple[Step, ...]


@functools.cache
def read_transcript(path: Path) -> Transcript:
    """Read a file. Raises ValueError for one that is not well formed."""
    lines = path.read_text(encoding="utf-8").split("\n")
    if "---" not in lines:
        raise ValueError(f"{path.name} has no line --- between head and steps")
    divider = lines.index("---")
    core_at = lines.index("config:") if "config:" in lines[:divider] else divider
    head: dict[str, str] = {}
    for line in lines[:core_at]:
        key, colon, value = line.partition(":")
        if colon and key in ("title", "versions", "acceptor", "splits"):
            head[key] = value.strip()
        elif line and not line.startswith("#"):
            raise ValueError(f"{path.name}: no such line in a head: {line!r}")
    versions = tuple(head.get("versions", "1.2").split())
    if not versions or not set(versions) <= set(VERSIONS):
        raise ValueError(f"{path.name}: versions must be some of {VERSIONS}, not {versions}")
    return Transcript(
        path,
        head.get("title", ""),
        versions,
        head.get("acceptor", ""),
        "\n".join(lines[core_at + 1 : divider]),
        head.get("splits", "some"),
        tuple(_read_steps(lines[divider + 1 :], divider + 2)),
    )


def _read_steps(lines: list[str], first_number: int) -> list[Step]:
    steps: list[Step] = []
    block: list[str] | None = None
    for number, line in enumerate(lines, first_number):
        opening = _BLOCK.fullmatch(line)
        if opening is not None:
            block = []
            steps.append(Step(number, opening[2], (opening[1],)))
            continue
        if block is not None:
            if not line or line.startswith(_INDENT):
                block.append(line.removeprefix(_INDENT))
                if block[-1]:  # empty ones before the next step are for the eye
                    steps[-1] = replace(steps[-1], block=tuple(block))
                continue
            block = None
        if line.startswith("#") or not line.strip():
            continue
        only = _ONLY.match(line)
        versions = VERSIONS if only is None else tuple(only[1].split())
        words = shlex.split(line if only is None else line[only.end() :])
        steps.append(Step(number, words[0], tuple(words[1:]), versions=versions))
    return steps


@functools.cache
def lines_for(version: str, block: tuple[str, ...]) -> list[str]:
    """The lines of a block that are meant for a version."""
    found = [(line, _ONLY.match(line)) for line in block]
    return [line[only.end() :] if only else line for line, only in found if not only or version in only[1].split()]


def sent_bytes(lines: list[str]) -> bytes:
    """The bytes that the lines of a sent block stand for."""
    parts: list[bytes] = []
    for line in lines:
        parts.append(unescaped(line))
        if not line.endswith(("^@", "^:")):
            parts.append(b"\n")
    return b"".join(parts)


@functools.lru_cache(maxsize=4096)
def unescaped(text: str) -> bytes:
    """Resolve the caret escapes."""
    return _ESCAPE.sub(_resolve, text.encode())


def _resolve(match: re.Match[bytes]) -> bytes:
    if match[2] is not None:
        return match[2] * int(match[3])
    if match[4] is not None:
        return bytes([int(match[4], 16)])
    return _SIMPLE[match[1]]


def expected_frames(lines: list[str]) -> list[tuple[str, list[str], str]]:
    """The frames of an expected block: command, header lines, body (escapes not resolved yet)."""
    frames: list[tuple[str, list[str], str]] = []
    position = 0
    while position < len(lines):
        if not lines[position]:
            position += 1
            continue
        command = lines[position]
        blank = lines.index("", position)
        body = [lines[blank + 1]]
        end = blank + 1
        while not lines[end].endswith("^@"):
            end += 1
            body.append(lines[end])
        frames.append((command, lines[position + 1 : blank], "\n".join(body).removesuffix("^@")))
        position = end + 1
    return frames
