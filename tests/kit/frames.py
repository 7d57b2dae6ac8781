"""A client's view of the bytes that the broker sends: frames and heart-beats, header lines left as they are.

Written for the tests alone, and simple on purpose: it shares no code with the broker, so that a mistake there is not
made here again.
"""

from __future__ import annotations

from dataclasses import dataclass

SERVER_COMMANDS = ("CONNECTED", "MESSAGE", "RECEIPT", "ERROR")


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
        self._rest += data
        while self._rest:
            if self._wants_line_feed:
                assert self._rest[:1] == b"\n", f"a frame without a line feed behind its NUL: {self._rest[:80]!r}"
                self._wants_line_feed = False
                self._rest = self._rest[1:]
                continue
            if self._rest[:1] == b"\n":
                self.beats += 1
                self._rest = self._rest[1:]
                continue
            frame, length = _first_frame(self._rest)
            if frame is None:
                return
            self.frames.append(frame)
            self._rest = self._rest[length:]
            self._wants_line_feed = True


def _first_frame(data: bytes) -> tuple[ServerFrame | None, int]:
    end = data.find(b"\n\n")
    if end < 0:
        return None, 0
    command, *lines = data[:end].decode().split("\n")
    assert command in SERVER_COMMANDS, f"not a frame of a server: {data[:200]!r}"
    assert all(":" in line for line in lines), f"a header line without a colon: {lines}"
    body_at = end + 2
    lengths = [line.partition(":")[2] for line in lines if line.startswith("content-length:")]
    if lengths:
        body_end = body_at + int(lengths[0])
        if body_end >= len(data):
            return None, 0
        assert data[body_end] == 0, f"content-length of {command} does not end at a NUL"
    else:
        body_end = data.find(b"\0", body_at)
        if body_end < 0:
            return None, 0
    return ServerFrame(command, tuple(lines), data[body_at:body_end]), body_end + 1
