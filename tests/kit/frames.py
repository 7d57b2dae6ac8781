"""Frames of a client, and its view of what the broker sends: frames and heart-beats, header lines left as they are.

Written for the tests alone, and simple on purpose: it shares no code with the broker, so that a mistake there is not
made here again.
"""

from __future__ import annotations

from dataclasses import dataclass

SERVER_COMMANDS = ("CONNECTED", "MESSAGE", "RECEIPT", "ERROR")
LINE_FEED = ord("\n")


def frame(command: str, *headers: str, body: bytes = b"") -> bytes:
    """A client's frame; the headers are its lines."""
    return "".join(f"{line}\n" for line in (command, *headers, "")).encode() + body + b"\0"


@dataclass(frozen=True)
class ServerFrame:
    """One frame; ``lines`` are the header lines as written (escapes and all)."""

    command: str
    lines: tuple[str, ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The first value under ``name``, as written."""
        for line in self.lines:
            key, _, value = line.partition(":")
            if key == name:
                return value
        return None

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
                frame, end = _next_frame(data, at)
                if frame is None:
                    break
                self.frames.append(frame)
                self._wants_line_feed = True
                at = end
        self._rest = data[at:]


def _next_frame(data: bytes, at: int) -> tuple[ServerFrame | None, int]:
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
    return ServerFrame(command, tuple(lines), data[body_at:body_end]), body_end + 1
