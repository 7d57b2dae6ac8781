"""Does a frame say what a transcript expects? Captured values are kept by name."""

from __future__ import annotations

import re

from tests.kit.frames import ServerFrame
from tests.wire.transcript import unescaped

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.-]*)\}")

ExpectedFrame = tuple[str, list[str], str]


class Captures:
    """Values that transcripts name in braces."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def fill(self, text: str, now_ms: int) -> str:
        """Replace ``{name}``, ``{now}``, ``{now+500}``. Raises KeyError for a name that nothing captured."""
        text = re.sub(r"\{now(?:([+-])(\d+))?\}", lambda match: str(_moved(now_ms, match)), text)
        return _PLACEHOLDER.sub(lambda match: self.values[match[1]], text)

    def agrees(self, expected: str, actual: str) -> bool:
        """Compare one value; names seen for the first time are captured."""
        if expected == "*":
            return True
        pattern = ""
        position = 0
        fresh: list[str] = []
        for match in _PLACEHOLDER.finditer(expected):
            pattern += re.escape(expected[position : match.start()])
            position = match.end()
            if match[1] in self.values:
                pattern += re.escape(self.values[match[1]])
            else:
                fresh.append(match[1])
                pattern += "(.+)"
        pattern += re.escape(expected[position:])
        found = re.fullmatch(pattern, actual, re.DOTALL)
        if found is None:
            return False
        self.values.update(zip(fresh, found.groups(), strict=True))
        return True


def _moved(now_ms: int, match: re.Match[str]) -> int:
    if match[1] is None:
        return now_ms
    return now_ms + int(match[2]) * (1 if match[1] == "+" else -1)


def difference(expected: ExpectedFrame, frame: ServerFrame, captures: Captures, *, exact: bool) -> str | None:
    """What is wrong with a frame, or None when nothing is. Captures only from a frame that fits."""
    command, lines, body = expected
    if frame.command != command:
        return f"{frame.command} instead of {command}"
    trial = Captures()
    trial.values = dict(captures.values)
    names: list[str] = []
    for line in lines:
        if line.startswith("!"):
            if frame.header(line[1:]) is not None:
                return f"header {line[1:]} must not be there"
            continue
        name, _, value = line.partition(":")
        names.append(name)
        actual = frame.header(name)
        if actual is None:
            return f"no header {name}"
        if not trial.agrees(unescaped(value).decode(), actual):
            return f"{name}:{actual} instead of {name}:{value}"
    if exact and sorted(names) != sorted(line.partition(":")[0] for line in frame.lines):
        return f"headers {list(frame.lines)} instead of {names}"
    if body != "*" and not _body_agrees(body, frame.body, trial):
        return f"body {frame.body[:200]!r} instead of {body[:200]!r}"
    captures.values = trial.values
    return None


def _body_agrees(expected: str, actual: bytes, captures: Captures) -> bool:
    if _PLACEHOLDER.search(expected) is None:
        return unescaped(expected) == actual
    return captures.agrees(unescaped(expected).decode(), actual.decode("utf-8", "backslashreplace"))
