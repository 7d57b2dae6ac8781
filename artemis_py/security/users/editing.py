"""Changes entries of a properties file and keeps everything else as it is: comments, order, other lines' bytes."""

from __future__ import annotations

import re
from typing import Final, final

from artemis_py.errors import ArtemisError
from artemis_py.security.users.tables import ENCODING, Entry, entries_of, text_of

_ROW: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_ROW_END: Final = re.compile(r"[\r\n]+\Z")
_SHORT: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"}
_KEY_SPECIAL: Final = frozenset(" =:#!")


class UsersFileError(ArtemisError):
    """A users or roles file cannot be changed like this."""


@final
class PropertiesText:
    """The content of a properties file. Raises TableError for one that cannot be read."""

    __slots__ = ("_rows",)

    def __init__(self, data: bytes) -> None:
        self._rows: list[str] = _ROW.findall(data.decode(ENCODING))
        self.entries()

    def entries(self) -> list[Entry]:
        """All entries in the order of the file."""
        return list(entries_of(text_of(self.data)))

    @property
    def data(self) -> bytes:
        """The content of the file now."""
        return "".join(self._rows).encode(ENCODING)

    def put(self, key: str, value: str) -> None:
        """Set a value: replace the line that counts, else append. Other lines of the key go."""
        line = f"{escaped_key(key)} = {escaped_value(value)}"
        found = [entry for entry in self.entries() if entry.key == key]
        if not found:
            self._append(line)
            return
        place = found[-1].first - 1
        self._rows[place : found[-1].last] = [line + (_end_of(self._rows[min(found[-1].last, len(self._rows)) - 1]))]
        self._take_out(found[:-1])

    def remove(self, key: str) -> bool:
        """Remove all lines of a key. Returns whether there were any."""
        found = [entry for entry in self.entries() if entry.key == key]
        self._take_out(found)
        return bool(found)

    def _take_out(self, entries: list[Entry]) -> None:
        for entry in reversed(entries):
            del self._rows[entry.first - 1 : entry.last]
        self._rows = _ROW.findall("".join(self._rows))  # a row that ended in \r makes one line end with an empty one

    def end_last_line(self) -> None:
        """Give the last line its line end if it has none."""
        if self._rows and not _end_of(self._rows[-1]):
            self._rows[-1] += self._line_end()

    def _line_end(self) -> str:
        return next((found for found in map(_end_of, self._rows) if found), "\n")

    def _append(self, line: str) -> None:
        end = self._line_end()
        self.end_last_line()
        if self._rows and _continues(self._rows[-1]):
            self._rows.append(_end_of(self._rows[-1]))  # another end could make one line end of the two
        self._rows.append(line + end)


def _end_of(row: str) -> str:
    found = _ROW_END.search(row)
    return found[0] if found else ""


def _continues(row: str) -> bool:
    text = _ROW_END.sub("", row)
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def escaped_key(text: str) -> str:
    """A key as it is written in a properties file."""
    return "".join(f"\\{one}" if one in _KEY_SPECIAL else _escaped(one) for one in text)


def escaped_value(text: str) -> str:
    """A value as it is written in a properties file, in ASCII."""
    written = "".join(map(_escaped, text))
    return f"\\{written}" if written.startswith(" ") else written


def _escaped(one: str) -> str:
    if one in _SHORT:
        return _SHORT[one]
    if " " <= one <= "~":
        return one
    units = one.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02X}{units[place + 1]:02X}" for place in range(0, len(units), 2))
