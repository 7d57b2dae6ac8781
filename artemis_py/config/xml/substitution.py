"""``${name:default}`` in the text of a configuration file, before it is parsed.

As in Artemis, the name ends at the first colon and the placeholder at the first ``}``, and both halves are trimmed. The
value is inserted as it is and scanned again, so ``${a:${b}}`` works. Without a value and a default, nothing is
inserted. Unlike in Artemis, a value that refers to its own name is an error instead of an endless loop, and each line
of the result keeps its original line number.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, final

TEXT_LENGTH_MAX: Final = 16 * 1024 * 1024
RESCANS_MAX: Final = 10_000


@final
@dataclass(eq=False, repr=False)
class Substituted:
    """The text after substitution.

    ``lines[n]`` is the original line of line n + 1; it is no list, because a file may have millions of lines.
    ``errors`` and ``warnings`` are pairs of original line and text. ``marked_up`` maps a line of the result to the name
    whose value inserted ``&`` or ``<``.
    """

    text: str
    lines: Sequence[int]
    errors: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)
    marked_up: dict[int, str] = field(default_factory=dict)

    def original_line(self, line: int) -> int:
        """Return the line of the file for a line of the text; both count from 1."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else line


def substitute(text: str, properties: Mapping[str, str]) -> Substituted:
    """Replace every placeholder in ``text``. Never raises; errors are in the result."""
    if "${" not in text:
        return Substituted(text, range(1, text.count("\n") + 2))
    return _Substitution(text, properties).run()


@final
class _Substitution:
    """One run over a text.

    Text before ``_own_start`` was inserted; text after it is from the file. This border and the end of the value being
    scanned are stored as distances from the end of the text, which insertions before them do not change.
    """

    def __init__(self, text: str, properties: Mapping[str, str]) -> None:
        self._text = text
        self._place = 0
        self._properties = properties
        self._line = 1
        self._own_length = len(text)
        self._open_names: list[tuple[str, int]] = []
        self._parts: list[str] = []
        self._length = 0
        self._rescans = 0
        self._in_comment = False
        self._unset: set[str] = set()
        self._lines = array("l", [1])
        self._result = Substituted("", self._lines)

    def run(self) -> Substituted:
        while (start := self._text.find("${", self._place)) >= 0:
            end = self._text.find("}", start + 2)
            self._emit_until(start)
            if end < 0:
                self._result.warnings.append((self._line, "'${' without '}': nothing after it is replaced"))
                break
            if not self._replace(self._text[start + 2 : end], end + 1):
                break
        self._emit_until(len(self._text))
        self._result.text = "".join(self._parts)
        return self._result

    def _replace(self, inside: str, after: int) -> bool:
        """Replace the placeholder at the current place, which ends before ``after``; False: give up."""
        distance = len(self._text) - self._place
        while self._open_names and self._open_names[-1][1] >= distance:
            self._open_names.pop()
        name, _, default = (part.strip() for part in inside.partition(":"))
        value = self._properties.get(name)
        found = value is not None
        if value is None:
            value = default
            if ":" not in inside and not self._in_comment and name not in self._unset:
                self._unset.add(name)
                self._result.warnings.append(
                    (self._line, f"${{{name}}} is not set and has no default; it is replaced by nothing")
                )
        elif any(open_name == name for open_name, _ in self._open_names):
            self._result.errors.append((self._line, f"${{{name}}} refers to itself"))
            value = ""
        self._line += self._text.count("\n", max(self._place, self._own_start), after)
        self._place = after
        if "${" in value:
            return self._rescan(value, name if found else None)
        if "&" in value or "<" in value:
            self._result.marked_up[len(self._result.lines)] = name
        self._append(value, own_length=0)
        return self._within_limits()

    def _rescan(self, value: str, found_name: str | None) -> bool:
        """Insert the value before the rest and continue there; False: give up."""
        self._rescans += 1
        rest = self._text[self._place :]
        self._own_length = min(self._own_length, len(rest))
        if found_name is not None:
            self._open_names.append((found_name, len(rest)))
        self._text, self._place = value + rest, 0
        return self._within_limits()

    def _within_limits(self) -> bool:
        within = self._rescans <= RESCANS_MAX and self._length + len(self._text) - self._place <= TEXT_LENGTH_MAX
        if not within:
            self._result.errors.append((self._line, "the placeholders make the text too long"))
        return within

    @property
    def _own_start(self) -> int:
        return len(self._text) - self._own_length

    def _emit_until(self, end: int) -> None:
        """Append the text from the current place to ``end``."""
        text = self._text[self._place : end]
        self._append(text, own_length=max(0, end - max(self._place, self._own_start)))
        self._place = end

    def _append(self, text: str, *, own_length: int) -> None:
        """Append to the result; the last ``own_length`` characters are from the file, those before were inserted."""
        if not text:
            return
        self._parts.append(text)
        self._length += len(text)
        border = len(text) - own_length
        lines = self._lines
        lines.extend([self._line] * text.count("\n", 0, border))
        own_lines = text.count("\n", border)
        lines.extend(range(self._line + 1, self._line + own_lines + 1))
        self._line += own_lines
        opened, closed = text.rfind("<!--"), text.rfind("-->")
        if opened != closed:
            self._in_comment = opened > closed
