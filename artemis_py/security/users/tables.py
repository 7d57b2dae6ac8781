"""What a users file and a roles file say, with the exact meaning that Artemis gives them, and how they are changed.

Both are Java properties in ISO-8859-1; of a key that is given twice, the last line counts. The value of a role is split
at each comma and nothing is trimmed: ``admin = bob, eve`` gives the role to ``bob`` and to `` eve``.

Unlike in Artemis, a line counts only if it is whole. The last line of a file without a line end may have been cut. It
counts only if nothing can be missing: a hash ends with its parenthesis, and the last name of a role is that of a user
that no other user's name begins with. So are the files that ``artemis create`` writes, which have no line end there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from artemis_py.config.properties_file import joined, logical_lines, unescape
from artemis_py.errors import ArtemisError
from artemis_py.security.users.passwords import HashedPassword, StoredPassword, UnreadablePassword, stored_password

ENCODING: Final = "iso-8859-1"
_ESCAPE: Final = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|(u)|.)", re.DOTALL)


class TableError(ArtemisError):
    """A file is not in the format of Java properties. ``line`` counts from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


CUT: Final = "the last line of the file has no line end, so it may have been cut; end it with one"


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value, on the lines ``first`` to ``last``, which count from 1. ``is_whole``: a line end follows,
    so nothing is missing.
    """

    key: str
    value: str
    first: int
    last: int
    is_whole: bool


@final
@dataclass(frozen=True, slots=True, repr=False)
class UsersTable:
    """The users of a file, each with the line of its password. ``work_max`` is what the dearest verification costs.
    ``flaws`` says by user what is wrong with a line that lets nobody in.
    """

    passwords: Mapping[str, StoredPassword]
    lines: Mapping[str, int]
    work_max: int
    flaws: Mapping[str, str]


@final
@dataclass(frozen=True, slots=True)
class RolesTable:
    """The roles of a file, each with its users and its line; and the same the other way round. ``flaws`` says by role
    what is wrong with a line that gives nobody the role.
    """

    users: Mapping[str, tuple[str, ...]]
    lines: Mapping[str, int]
    by_user: Mapping[str, frozenset[str]]
    flaws: Mapping[str, str]
    is_ended: bool
    """Has the last line its line end?"""


def text_of(data: bytes) -> str:
    """Return the content of a file with ``\\n`` at the end of each line."""
    return data.decode(ENCODING).replace("\r\n", "\n").replace("\r", "\n")


def entries_of(text: str) -> Iterator[Entry]:
    """Yield every entry in the order of the file. Raises TableError for an escape that Java refuses: then Artemis reads
    nothing of the file.
    """
    rows = text.count("\n") + 1
    for line in logical_lines(text):
        for part in (line.key, line.value):
            for found in _ESCAPE.finditer(part):
                if found[1]:
                    raise TableError(line.first, "\\u must be followed by four hexadecimal digits")
        is_whole = line.last < rows
        yield Entry(joined(unescape(line.key)), joined(unescape(line.value)), line.first, line.last, is_whole)


def users_table(data: bytes) -> UsersTable:
    """Read a users file. Raises TableError."""
    passwords: dict[str, StoredPassword] = {}
    lines: dict[str, int] = {}
    for entry in entries_of(text_of(data)):
        stored = stored_password(entry.value)
        if not entry.is_whole and not (isinstance(stored, HashedPassword) and data.endswith(b")")):
            stored = UnreadablePassword(CUT, is_broken=True)
        passwords[entry.key] = stored
        lines[entry.key] = entry.first
    flaws = {
        user: f"line {lines[user]}: {stored.reason}"
        for user, stored in passwords.items()
        if isinstance(stored, UnreadablePassword) and stored.is_broken
    }
    return UsersTable(passwords, lines, max((each.work for each in passwords.values()), default=0), flaws)


def roles_table(data: bytes, known: Collection[str] = ()) -> RolesTable:
    """Read a roles file; ``known`` are the users of its users file. Raises TableError."""
    users: dict[str, tuple[str, ...]] = {}
    lines: dict[str, int] = {}
    flaws: dict[str, str] = {}
    text = text_of(data)
    for entry in entries_of(text):
        names = names_in(entry.value)
        is_whole = entry.is_whole or _is_end_of(text, names, known)
        users[entry.key] = names if is_whole else ()
        lines[entry.key] = entry.first
        if not is_whole:
            flaws[entry.key] = f"line {entry.first}: {CUT}"
    by_user: dict[str, set[str]] = {}
    for role, names in users.items():
        for name in names:
            by_user.setdefault(name, set()).add(role)
    roles_of = {name: frozenset(roles) for name, roles in by_user.items()}
    return RolesTable(users, lines, roles_of, flaws, not text or text.endswith("\n"))


def _is_end_of(text: str, names: tuple[str, ...], known: Collection[str]) -> bool:
    """Does a file without a line end stop behind a whole name, and not at the beginning of another?"""
    if not names or text.endswith(("\\", ",")):
        return False
    return [user for user in known if user.startswith(names[-1])] == [names[-1]]


def cut_since(before: RolesTable, now: RolesTable) -> str:
    """Why ``now`` may be only the beginning of a file that ended with a line end ``before``; empty: it has one, too, or
    takes no role from anybody.
    """
    if now.is_ended or not before.is_ended:
        return ""
    has_all = all(roles <= now.by_user.get(user, frozenset()) for user, roles in before.by_user.items())
    return "" if has_all else f"line {max(now.lines.values(), default=1)}: {CUT}"


def names_in(value: str) -> tuple[str, ...]:
    """Return the names in the value of a role, nothing trimmed."""
    return tuple(name for name in value.split(",") if name)


# ---- to change entries, and keep all else as it is: comments, order, other lines' bytes ----------

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
