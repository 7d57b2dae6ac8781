"""Decodes the header lines of a frame by the rules of its STOMP version.

STOMP 1.0 has no escapes, and blanks after the colon are dropped. 1.1 has ``\\n``, ``\\c`` and ``\\\\``; 1.2 adds
``\\r``. CONNECT frames are never unescaped. A carriage return before the line feed belongs to the line end in every
version (only 1.2 says so, but people at a terminal use the others, too); elsewhere in a line, 1.2 forbids it.
"""

from __future__ import annotations

from typing import Final

from artemis_py.stomp.wire.frames import COMMANDS, FrameError, Limits
from artemis_py.terminal_output import escaped

_RECEIPT: Final = b"\nreceipt:"
_ESCAPES: Final = {"1.1": (("\\n", "\n"), ("\\c", ":")), "1.2": (("\\n", "\n"), ("\\c", ":"), ("\\r", "\r"))}
"""Besides that of the backslash itself. 1.0 has none."""


def decode_block(block: bytes, version: str, limits: Limits) -> tuple[str, list[tuple[str, str]]]:
    """Command and headers of a header block (command line and header lines, without the empty line). Raises
    FrameError.
    """
    if len(block) > limits.header_line_bytes_max:
        longest = max(map(len, block.split(b"\n")))
        if longest > limits.header_line_bytes_max:
            raise FrameError(
                f"Header line too long: {longest} bytes, at most {limits.header_line_bytes_max} are allowed",
                too_large=True,
            )
    try:
        text = block.decode()
    except UnicodeDecodeError as error:
        raise FrameError(f"Headers are not UTF-8: {error.reason} at byte {error.start}") from None
    lines = text.split("\n")
    if len(lines) - 1 > limits.headers_max:
        reason = f"Too many headers: {len(lines) - 1}, at most {limits.headers_max} are allowed"
        raise FrameError(reason, too_large=True)
    command = lines[0].removesuffix("\r")
    if command not in COMMANDS:
        raise FrameError(_unknown_command(command))
    plain = command in ("CONNECT", "STOMP")
    headers = [_decode_line(line.removesuffix("\r"), version, plain) for line in lines[1:]]
    return command, headers


def _unknown_command(command: str) -> str:
    shown = command[:40].replace("\r", "\\r")
    if command.upper() in COMMANDS:
        return f"Unknown command {shown!r}: write commands in capitals"
    return f"Unknown command {shown!r}"


def _decode_line(line: str, version: str, plain: bool) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name:
        raise FrameError(f"Header line without {'a name' if colon else 'a colon'}: {line[:40]!r}")
    if "\r" in line and version == "1.2":
        raise FrameError(f"A carriage return inside the header {name[:40]!r}")
    if version == "1.0":
        return name, value.lstrip(" ")
    if plain or "\\" not in line:
        return name, value
    return _unescape(name, version), _unescape(value, version)


def receipt_in(block: bytes, version: str) -> str | None:
    """The receipt that an unreadable block asks for; None if that line is unreadable, too."""
    start = block.find(_RECEIPT)
    if start < 0:
        return None
    line = block[start + 1 :].partition(b"\n")[0].removesuffix(b"\r")
    try:
        return _decode_line(line.decode(), version, plain=False)[1]
    except (FrameError, UnicodeDecodeError):
        return None


def _unescape(text: str, version: str) -> str:
    if "\\" not in text:
        return text
    parts = text.split("\\\\")  # what is between escaped backslashes has the others only
    for place, whole in enumerate(parts):
        if "\\" not in whole:
            continue
        part = whole
        for escape, meant in _ESCAPES[version]:
            part = part.replace(escape, meant)
        if "\\" in part:
            raise _undefined(whole, version)
        parts[place] = part
    return "\\".join(parts)


def _undefined(part: str, version: str) -> FrameError:
    """The first escape in a text that this version does not define."""
    known = [escape for escape, _ in _ESCAPES[version]]
    slash = part.find("\\")
    while part[slash : slash + 2] in known:
        slash = part.find("\\", slash + 2)
    return FrameError(f"Undefined escape {escaped(part[slash : slash + 2])} in a header (STOMP {version})")


def first_of_each(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Headers by name; of repeated ones the first counts (STOMP 1.1 and 1.2, "Repeated Header Entries"; 1.0 does not
    specify it).
    """
    chosen: dict[str, str] = {}
    for name, value in headers:
        chosen.setdefault(name, value)
    return chosen


def parse_content_length(text: str, limits: Limits) -> int:
    """The value of a content-length header. Raises FrameError if it is not a number or exceeds the maximum body
    size.
    """
    if not (text.isascii() and text.isdigit()):
        raise FrameError(f"content-length is not a number: {text[:40]!r}")
    if len(text) > 18 or int(text) > limits.body_bytes_max:
        reason = f"Body too large: {text[:40]} bytes, at most {limits.body_bytes_max} are allowed"
        raise FrameError(reason, too_large=True)
    return int(text)
