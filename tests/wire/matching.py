"""Does a frame say what a transcript expects? Captured values are kept by name."""

from __future__ import annotations

import re

from tests.kit.frames import ServerFrame
from tests.wire.transcript import unescaped

PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.-]*)\}")

ExpectedFrame = tuple[str, list[str], str]


def agrees(values: dict[str, str], expected: str, actual: str) -> bool:
    """Compare one value; names seen for the first time are captured."""
    if expected == "*":
        return True
    if "{" not in expected:
        return expected == actual
    pattern = ""
    position = 0
    fresh: list[str] = []
    for match in PLACEHOLDER.finditer(expected):
        pattern += re.escape(expected[position : match.start()])
        position = match.end()
        if match[1] in values:
            pattern += re.escape(values[match[1]])
        else:
            fresh.append(match[1])
            pattern += "(.+)"
    pattern += re.escape(expected[position:])
    found = re.fullmatch(pattern, actual, re.DOTALL)
    if found is None:
        return False
    values.update(zip(fresh, found.groups(), strict=True))
    return True


def difference(expected: ExpectedFrame, frame: ServerFrame, values: dict[str, str], *, exact: bool) -> str | None:
    """What is wrong with a frame, or None when nothing is. Captures only from a frame that fits."""
    command, lines, body = expected
    if frame.command != command:
        return f"{frame.command} instead of {command}"
    trial = dict(values)
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
        if not agrees(trial, unescaped(value).decode(), actual):
            return f"{name}:{actual} instead of {name}:{value}"
    if exact and sorted(names) != sorted(line.partition(":")[0] for line in frame.lines):
        return f"headers {list(frame.lines)} instead of {names}"
    if PLACEHOLDER.search(body) is None:
        is_same = body == "*" or unescaped(body) == frame.body
    else:
        is_same = agrees(trial, unescaped(body).decode(), frame.body.decode("utf-8", "backslashreplace"))
    if not is_same:
        return f"body {frame.body[:200]!r} instead of {body[:200]!r}"
    values.update(trial)
    return None
