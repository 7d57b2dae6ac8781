"""Parses frames where each one matters: login, receipts, latency. The counting consumers do not use it."""

from __future__ import annotations

from dataclasses import dataclass

from artemis_py.errors import PerfError


@dataclass(frozen=True, slots=True)
class ServerFrame:
    """A frame from the broker. Of repeated headers the first counts; values stay escaped."""

    command: str
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The text of an ERROR frame: its ``message`` and the beginning of its body, on one line."""
        body = " ".join(self.body.decode(errors="replace").split())
        parts = [part for part in (self.headers.get("message", ""), body[:300]) if part]
        return " | ".join(dict.fromkeys(parts)) or "(no text)"


class FrameReader:
    """Splits a stream into frames, however it is read. Bodies with ``content-length`` may contain NULs."""

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> None:
        """Appends what was read."""
        self._pending += data

    def frames(self) -> list[ServerFrame]:
        """Pops all complete frames."""
        return list(iter(self.pop, None))

    def pop(self) -> ServerFrame | None:
        """The next complete frame, or None. Raises PerfError for bytes that are not a STOMP frame."""
        pending = self._pending
        while pending.startswith((b"\n", b"\r")):
            del pending[:1]
        head_end, body_start = _end_of_head(pending)
        if head_end < 0:
            return None
        command, headers = _parse_head(bytes(pending[:head_end]))
        body_end = _end_of_body(pending, body_start, headers)
        if body_end < 0:
            return None
        body = bytes(pending[body_start:body_end])
        del pending[: body_end + 1]
        return ServerFrame(command, headers, body)


def _end_of_head(pending: bytearray) -> tuple[int, int]:
    """Where the header block ends and where the body starts; -1 until the blank line has arrived."""
    plain = pending.find(b"\n\n")
    carriage = pending.find(b"\n\r\n")
    if carriage >= 0 and (plain < 0 or carriage < plain):
        return carriage, carriage + 3
    return plain, plain + 2


def _parse_head(head: bytes) -> tuple[str, dict[str, str]]:
    command, *lines = head.decode(errors="replace").replace("\r\n", "\n").split("\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise PerfError(f"the broker sent a header line without a colon: {line!r}")
        headers.setdefault(name.strip(), value.strip())
    return command.strip(), headers


def _end_of_body(pending: bytearray, start: int, headers: dict[str, str]) -> int:
    length = headers.get("content-length")
    if length is None:
        return pending.find(b"\0", start)
    if not length.isdigit():
        raise PerfError(f"the broker sent content-length:{length}, which is not a number")
    end = start + int(length)
    if len(pending) <= end:
        return -1
    if pending[end] != 0:
        raise PerfError(f"the broker's frame has no NUL after {length} bytes of body")
    return end
