"""Frames of a client, and its view of what the broker sends: frames and heart-beats, header lines left as they are.

Written for the tests alone, and simple on purpose: it shares no code with the broker, so that a mistake there is not
made here again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

SERVER_COMMANDS = ("CONNECTED", "MESSAGE", "RECEIPT", "ERROR")
LINE_FEED = ord("\n")
ESCAPES = {
    "1.0": str.maketrans({}),
    "1.1": str.maketrans({"\\": "\\\\", "\n": "\\n", ":": "\\c"}),
    "1.2": str.maketrans({"\\": "\\\\", "\n": "\\n", ":": "\\c", "\r": "\\r"}),
}
"""How each version writes header names and values: for ``str.translate``."""
_UNESCAPES = {"\\\\": "\\", "\\n": "\n", "\\c": ":", "\\r": "\r"}
_unescaped = partial(re.compile(r"\\[\\ncr]").sub, lambda code: _UNESCAPES[code[0]])
"""Codes that it does not know stay."""


def frame(command: str, *headers: str, body: bytes = b"") -> bytes:
    """A client's frame; the headers are its lines."""
    return "".join(f"{line}\n" for line in (command, *headers, "")).encode() + body + b"\0"


def escaped_frame(command: str, headers: Mapping[str, object], body: bytes, version: str) -> bytes:
    """A frame with the escapes of a version, which frames that connect do without."""
    escapes = ESCAPES["1.0" if command in ("CONNECT", "STOMP", "CONNECTED") else version]
    lines = (f"{name.translate(escapes)}:{str(value).translate(escapes)}" for name, value in headers.items())
    return frame(command, *lines, body=body)


@dataclass(frozen=True)
class ServerFrame:
    """One frame; ``lines`` are the header lines as written (escapes and all)."""

    command: str
    lines: tuple[str, ...]
    body: bytes
    version: str = field(default="1.2", compare=False)
    """It says what escapes there are."""

    def header(self, name: str) -> str | None:
        """The first value under ``name``, as written."""
        for line in self.lines:
            key, _, value = line.partition(":")
            if key == name:
                return value
        return None

    def names(self, version: str) -> list[str]:
        """The header lines with which an ACK of a version names this message, also one that needs no ACK."""
        if version == "1.2":
            return [f"id:{self.header('ack') or self.header('message-id')}"]
        return [f"{name}:{self.header(name)}" for name in ("message-id", "subscription")]

    @property
    def headers(self) -> dict[str, str]:
        """What the lines mean; of those with the same name the first."""
        pairs = (line.partition(":")[::2] for line in reversed(self.lines))
        if self.version == "1.0" or self.command == "CONNECTED":
            return dict(pairs)
        return {_unescaped(name): _unescaped(value) for name, value in pairs}

    @property
    def text(self) -> str:
        """The frame as a transcript writes it."""
        return "\n".join([self.command, *self.lines, "", self.body.decode("utf-8", "backslashreplace") + "^@"])


class ServerStream:
    """Takes bytes in order; gives frames and counts the line feeds between them. Each frame has to end with NUL and a
    line feed, which is no heart-beat.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._wants_line_feed = False
        self.frames: list[ServerFrame] = []
        self.beats = 0
        self.version = "1.2"
        """That of what comes; CONNECTED says it."""

    @property
    def is_whole(self) -> bool:
        """Is there no frame begun and not ended?"""
        return not self._rest and not self._wants_line_feed

    def take(self, data: bytes) -> None:
        """Read what is complete."""
        data, at = self._rest + data, 0
        while at < len(data):
            if self._wants_line_feed:
                assert data[at] == LINE_FEED, f"a frame without a line feed behind its NUL: {data[at : at + 80]!r}"
                self._wants_line_feed = False
                at += 1
            elif data[at] == LINE_FEED:
                self.beats += 1
                at += 1
            else:
                frame, end = _next_frame(data, at, self.version)
                if frame is None:
                    break
                if frame.command == "CONNECTED":
                    self.version = frame.header("version") or "1.0"
                self.frames.append(frame)
                self._wants_line_feed = True
                at = end
        self._rest = data[at:]


def _next_frame(data: bytes, at: int, version: str) -> tuple[ServerFrame | None, int]:
    """The frame that begins there, and where it ends; None while it is not whole."""
    end = data.find(b"\n\n", at)
    if end < 0:
        return None, at
    command, *lines = data[at:end].decode().split("\n")
    assert command in SERVER_COMMANDS, f"not a frame of a server: {data[at : at + 200]!r}"
    assert all(":" in line for line in lines), f"a header line without a colon: {lines}"
    body_at = end + 2
    lengths = [line.partition(":")[2] for line in lines if line.startswith("content-length:")]
    if lengths:
        body_end = body_at + int(lengths[0])
        if body_end >= len(data):
            return None, at
        assert data[body_end] == 0, f"content-length of {command} does not end at a NUL"
    else:
        body_end = data.find(b"\0", body_at)
        if body_end < 0:
            return None, at
    return ServerFrame(command, tuple(lines), data[body_at:body_end], version), body_end + 1
