"""What is probably not meant in the files of users and roles; no finding quotes a password or a hash."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from artemis_py.config.problems import Problems, nearest
from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.declarations import Origin
from artemis_py.config.xml.source import FILE_LENGTH_MAX, read_regular_file
from artemis_py.errors import Problem
from artemis_py.security.users.accounts import UserFiles, files_of
from artemis_py.security.users.passwords import EMPTY, HashedPassword, PlainPassword, StoredPassword, UnreadablePassword
from artemis_py.security.users.tables import (
    CUT,
    ENCODING,
    Entry,
    RolesTable,
    TableError,
    UsersTable,
    entries_of,
    roles_table,
    text_of,
    users_table,
)

_ITERATIONS_DEAR: Final = 1_000_000
"""Beyond it a login takes a second or more of a processor."""
_UTF_8: Final = re.compile(rb"[\xc2-\xf4][\x80-\xbf]")
_ADVICE: Final = "set a new one with: artemis-py user reset USER"

Parsed = TypeVar("Parsed")


def problems_of_users(config: BrokerConfig) -> list[Problem]:
    """Check the files of users and roles of a configuration; nothing without security. Every finding is a warning, or a
    note: the files may be repaired while the broker runs.
    """
    if not config.security_enabled:
        return []
    problems = Problems()
    files = files_of(config)
    if not files.are_there:
        _tell_of_missing(config, files, problems)
    else:
        tables = lint_files(files, problems)
        if tables is not None:
            _check_granted(config, files, tables[1], problems)
    return problems.in_order(config.file)


def lint_files(files: UserFiles, problems: Problems) -> tuple[UsersTable, RolesTable] | None:
    """Check a users file and a roles file, and return what they say; None if one cannot be read."""
    users = _read(files.users, users_table, problems)
    known = () if users is None else tuple(users.passwords)
    roles = _read(files.roles, partial(roles_table, known=known), problems)
    if users is None or roles is None:
        return None
    _check_passwords(files.users, users, problems)
    for user, line in users.lines.items():
        if user not in roles.by_user and not _may_be_no_name(users.passwords[user]):
            _warn(
                problems,
                files.users,
                line,
                f"user {user!r} has no role, so may do nothing; the roles are in {files.roles}",
            )
    _check_roles(files.roles, roles, users, problems)
    return users, roles


def _tell_of_missing(config: BrokerConfig, files: UserFiles, problems: Problems) -> None:
    named = config.users_file
    if named is not None and named.first_user:
        text = f"{files.users} does not exist yet; artemis-py run makes it, with a first user {named.first_user}"
        problems.note("users", named.origin, text)
        return
    origin = named.origin if named is not None else config.origins.get("security_enabled", Origin(config.file, 0))
    problems.warning(
        "users",
        origin,
        f"NOBODY CAN LOG IN: security is on, and {files.users} does not exist; make it with: artemis-py user add admin "
        f"--role amq --config {config.file}",
    )


def _read(path: Path, parse: Callable[[bytes], Parsed], problems: Problems) -> Parsed | None:
    try:
        data = read_regular_file(str(path))
        if data is None or len(data) > FILE_LENGTH_MAX:
            reason = "not a regular file" if data is None else f"larger than {FILE_LENGTH_MAX // 1024**2} MiB"
            _warn(problems, path, 0, f"nobody can log in: it is {reason}")
            return None
        parsed = parse(data)
    except OSError as error:
        _warn(problems, path, 0, f"nobody can log in: the file cannot be read: {error.strerror or error}")
        return None
    except TableError as error:
        _warn(problems, path, error.line, f"nothing of this file is read, by Artemis neither: {error.reason}")
        return None
    _check_text(path, data, problems)
    return parsed


def _check_text(path: Path, data: bytes, problems: Problems) -> None:
    found = _UTF_8.search(data)
    if found is not None:
        line = text_of(data[: found.start()]).count("\n") + 1
        text = "this looks like UTF-8, but is read as ISO-8859-1; write other letters as \\u00e9 (artemis-py user does)"
        _warn(problems, path, line, text)
    last: dict[str, Entry] = {}
    for entry in entries_of(data.decode(ENCODING).replace("\r\n", "\n").replace("\r", "\n")):
        earlier = last.get(entry.key)
        if earlier is not None:
            _warn(
                problems, path, earlier.first, f"{entry.key!r} is given again in line {entry.first}, which alone counts"
            )
        last[entry.key] = entry


def _check_passwords(path: Path, users: UsersTable, problems: Problems) -> None:
    plain = [users.lines[user] for user, stored in users.passwords.items() if isinstance(stored, PlainPassword)]
    for user, stored in users.passwords.items():
        reason = _wrong_with(stored)
        if _may_be_no_name(stored):  # what counts as the name may be a password that was written alone
            _warn(problems, path, users.lines[user], f"nobody can log in by this line: {reason}")
        elif reason:
            _warn(problems, path, users.lines[user], f"user {user!r}: {reason}")
    if plain and stat.S_IMODE(os.stat(path).st_mode) & 0o077:
        lines = ", ".join(map(str, sorted(plain)[:10])) + (", …" if len(plain) > 10 else "")
        text = (
            f"plain-text passwords (lines {lines}) in a file that others may read; hash them with artemis-py user "
            "reset USER"
        )
        _warn(problems, path, min(plain), f"{text}, and: chmod 600 {path}")


def _wrong_with(stored: StoredPassword) -> str:
    """What is wrong with a password in a file, without showing any of it; empty: nothing."""
    if isinstance(stored, UnreadablePassword):
        if _may_be_no_name(stored):
            return f"{stored.reason}; {_ADVICE}" if stored.reason == EMPTY else stored.reason
        return f"nobody can log in with this password: {stored.reason}; {_ADVICE}"
    if isinstance(stored, HashedPassword):
        dear = stored.iterations > _ITERATIONS_DEAR
        return f"each login costs {stored.iterations:,} iterations; {_ADVICE}" if dear else ""
    if stored.text != stored.text.strip():
        return f"there are blanks around the password, and they count; {_ADVICE}"
    return ""


def _may_be_no_name(stored: StoredPassword) -> bool:
    return isinstance(stored, UnreadablePassword) and stored.reason in (EMPTY, CUT)


def _check_roles(path: Path, roles: RolesTable, users: UsersTable, problems: Problems) -> None:
    for role in roles.flaws:
        _warn(problems, path, roles.lines[role], f"this line gives nobody a role: {CUT}")
    for role, names in roles.users.items():
        for name in names:
            if name in users.passwords:
                continue
            if name != name.strip():
                text = f"role {role}: {name!r} has a blank; nothing is trimmed, so this names no user"
            else:
                text = f"role {role}: there is no user {name!r} in the users file"
            problems.warning(
                "users", Origin(str(path), roles.lines[role]), text, suggestion=nearest(name.strip(), users.passwords)
            )


def _check_granted(config: BrokerConfig, files: UserFiles, roles: RolesTable, problems: Problems) -> None:
    """Report roles that no security-setting names."""
    granted = {role: None for setting in config.security.settings for names in setting.roles.values() for role in names}
    for role in _unknown(roles.users, granted):
        problems.warning(
            "users",
            Origin(str(files.roles), roles.lines[role]),
            f"role {role} allows nothing: no security-setting names it",
            suggestion=nearest(role, granted),
        )


def _unknown(roles: Mapping[str, tuple[str, ...]], granted: Mapping[str, None]) -> list[str]:
    return [role for role, users in roles.items() if users and role not in granted]


def _warn(problems: Problems, path: Path, line: int, text: str) -> None:
    problems.warning("users", Origin(str(path), line), text)
