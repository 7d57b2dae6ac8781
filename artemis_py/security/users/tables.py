"""What a users file and a roles file say, with the exact meaning that Artemis gives them.

Both are Java properties in ISO-8859-1; of a key that is given twice, the last line counts. The value of a role is split
at each comma and nothing is trimmed: ``admin = bob, eve`` gives the role to ``bob`` and to `` eve``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from artemis_py.config.overlay.properties_file import logical_lines, unescape
from artemis_py.errors import ArtemisError
from artemis_py.security.users.passwords import StoredPassword, stored_password

ENCODING: Final = "iso-8859-1"
_ESCAPE: Final = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|(u)|.)", re.DOTALL)


class TableError(ArtemisError):
    """A file is not in the format of Java properties. ``line`` counts from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value, on the lines ``first`` to ``last``, which count from 1."""

    key: str
    value: str
    first: int
    last: int


@final
@dataclass(frozen=True, slots=True, repr=False)
class UsersTable:
    """The users of a file, each with the line of its password. ``work_max`` is what the dearest verification costs."""

    passwords: Mapping[str, StoredPassword]
    lines: Mapping[str, int]
    work_max: int


@final
@dataclass(frozen=True, slots=True)
class RolesTable:
    """The roles of a file, each with its users and its line; and the same the other way round."""

    users: Mapping[str, tuple[str, ...]]
    lines: Mapping[str, int]
    by_user: Mapping[str, frozenset[str]]


def text_of(data: bytes) -> str:
    """Return the content of a file with ``\\n`` at the end of each line."""
    return data.decode(ENCODING).replace("\r\n", "\n").replace("\r", "\n")


def entries_of(text: str) -> Iterator[Entry]:
    """Yield every entry in the order of the file. Raises TableError for an escape that Java refuses: then Artemis reads
    nothing of the file.
    """
    for line in logical_lines(text):
        for part in (line.key, line.value):
            for found in _ESCAPE.finditer(part):
                if found[1]:
                    raise TableError(line.first, "\\u must be followed by four hexadecimal digits")
        yield Entry(_joined(unescape(line.key)), _joined(unescape(line.value)), line.first, line.last)


def users_table(data: bytes) -> UsersTable:
    """Read a users file. Raises TableError."""
    passwords: dict[str, StoredPassword] = {}
    lines: dict[str, int] = {}
    for entry in entries_of(text_of(data)):
        passwords[entry.key] = stored_password(entry.value)
        lines[entry.key] = entry.first
    return UsersTable(passwords, lines, max((each.work for each in passwords.values()), default=0))


def roles_table(data: bytes) -> RolesTable:
    """Read a roles file. Raises TableError."""
    users: dict[str, tuple[str, ...]] = {}
    lines: dict[str, int] = {}
    for entry in entries_of(text_of(data)):
        users[entry.key] = names_in(entry.value)
        lines[entry.key] = entry.first
    by_user: dict[str, set[str]] = {}
    for role, names in users.items():
        for name in names:
            by_user.setdefault(name, set()).add(role)
    return RolesTable(users, lines, {name: frozenset(roles) for name, roles in by_user.items()})


def names_in(value: str) -> tuple[str, ...]:
    """Return the names in the value of a role, nothing trimmed."""
    return tuple(name for name in value.split(",") if name)


def _joined(text: str) -> str:
    """Join the two halves of a character that Java escapes as a pair; a half that is alone becomes U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
