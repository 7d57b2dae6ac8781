"""The users in a pair of files: where these are, and who adds, changes and removes users in them. A running broker
reads them at the next login.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, final

from artemis_py.atomic_files import replace_files
from artemis_py.config.elements import ROLES_FILE, USERS_FILE
from artemis_py.config.settings import BrokerConfig
from artemis_py.config.xml.source import read_regular_file
from artemis_py.errors import AuthenticatorError
from artemis_py.security.users.passwords import StoredPassword, hashed
from artemis_py.security.users.tables import (
    CUT,
    PropertiesText,
    RolesTable,
    TableError,
    UsersFileError,
    UsersTable,
    names_in,
    roles_table,
    users_table,
)

_NOBODY: Final = b"# nobody\n"
"""What a file holds that names nobody any more: an empty one may be what a full disk has left of it."""


@final
@dataclass(frozen=True, slots=True)
class UserFiles:
    """A users file and a roles file; neither need exist."""

    users: Path
    roles: Path

    @property
    def are_there(self) -> bool:
        """Does the users file exist?"""
        return os.path.isfile(self.users)


def files_of(config: BrokerConfig) -> UserFiles:
    """Return the files that ``users-file`` names, else those beside broker.xml; relative to its folder."""
    folder = Path(config.file).parent
    named = config.users_file
    if named is None:
        return files_in(folder)
    return UserFiles(folder / named.users, folder / named.roles)


def files_in(folder: Path) -> UserFiles:
    """Return the files in a folder by the names that an instance of Artemis has."""
    return UserFiles(folder / USERS_FILE, folder / ROLES_FILE)


class NoUserError(UsersFileError):
    """The users file does not have this user."""


@final
@dataclass(frozen=True, slots=True)
class Account:
    """One user: the name, the roles in alphabetical order, and what is stored of the password."""

    user: str
    roles: tuple[str, ...]
    password: StoredPassword


@final
class Accounts:
    """The users in two files. Each change is complete or does not happen; two at the same time wait for each other.

    All methods raise UsersFileError with the file and the reason, also for files that cannot be read or written.
    """

    __slots__ = ("_files",)

    def __init__(self, files: UserFiles) -> None:
        self._files: Final = files

    def all(self) -> list[Account]:
        """Every user in the order of the file."""
        users = users_in(self._files.users)
        roles = roles_in(self._files.roles, users)
        return [
            Account(user, tuple(sorted(roles.by_user.get(user, ()))), password)
            for user, password in users.passwords.items()
        ]

    def add(self, user: str, password: str, roles: Sequence[str]) -> None:
        """Add a user; ``password`` is what the file is to hold. A missing file is made."""
        check_name("user", user)
        with self._changing() as (users, given):
            if any(entry.key == user for entry in users.entries()):
                raise UsersFileError(
                    f"{self._files.users} already has a user {user}; change the password with: "
                    f"artemis-py user reset {user}"
                )
            users.put(user, password)
            _give(given, user, roles)

    def reset(self, user: str, password: str | None, roles: Sequence[str] | None) -> None:
        """Change what the file holds as the password, or replace the roles; None changes nothing."""
        with self._changing() as (users, given):
            self._demand(users, user)
            if password is not None:
                users.put(user, password)
            if roles is not None:
                _take(given, user)
                _give(given, user, roles)

    def remove(self, user: str) -> None:
        """Remove a user from both files."""
        with self._changing() as (users, given):
            self._demand(users, user)
            users.remove(user)
            _take(given, user)

    def _demand(self, users: PropertiesText, user: str) -> None:
        if not any(entry.key == user for entry in users.entries()):
            raise NoUserError(f"{self._files.users} has no user {user}; see them with: artemis-py user list")

    @contextmanager
    def _changing(self) -> Iterator[tuple[PropertiesText, PropertiesText]]:
        """Both texts to change; written if nothing was raised, the roles first: nobody logs in before they have
        theirs.
        """
        users_file, roles_file = self._files.users, self._files.roles
        with _alone_in(users_file.parent):
            with _told(users_file):
                users = PropertiesText(_content(users_file) if os.path.exists(users_file) else b"")
            with _told(roles_file):
                roles = PropertiesText(_content(roles_file) if os.path.exists(roles_file) else b"")
            before = users.data, roles.data
            known = users_table(users.data)
            _demand_whole(users_file, known.flaws)
            _demand_whole(roles_file, roles_table(roles.data, known.passwords).flaws)
            users.end_last_line()
            roles.end_last_line()
            yield users, roles
            changed: list[tuple[Path, bytes]] = []
            if roles.data != before[1] or not os.path.exists(roles_file):
                changed.append((roles_file, roles.data or _NOBODY))
            if users.data != before[0]:
                changed.append((users_file, users.data or _NOBODY))
            with _told(users_file if len(changed) != 1 else changed[0][0]):
                replace_files(changed)


def _demand_whole(file: Path, flaws: Mapping[str, str]) -> None:
    """A change would put a line end behind a line that may have been cut, and so make it count."""
    cut = next((why for why in flaws.values() if why.endswith(CUT)), None)
    if cut is not None:
        raise UsersFileError(f"{file}: {cut}. Nothing was changed")


def users_in(path: Path) -> UsersTable:
    """What a users file says. Raises UsersFileError with the file and the reason, also if it cannot be read."""
    with _told(path):
        return users_table(_content(path))


def roles_in(path: Path, users: UsersTable) -> RolesTable:
    """What the roles file of these users says; nothing if there is none. Raises UsersFileError, as ``users_in``."""
    with _told(path):
        return roles_table(_content(path) if os.path.exists(path) else b"", users.passwords)


def check_name(what: str, name: str) -> None:
    """Raise UsersFileError for a name of a ``user`` or ``role`` that the files cannot hold, or nobody could use."""
    if not name:
        raise UsersFileError(f"a {what} needs a name")
    if "," in name:
        raise UsersFileError(f"{what} {name}: a comma separates names in the files, so no name can have one")
    if name != name.strip() or not name.isprintable():
        raise UsersFileError(f"{what} {name!r}: blanks around a name, and unprintable characters, are not allowed")


def _give(roles: PropertiesText, user: str, names: Sequence[str]) -> None:
    held = {entry.key: names_in(entry.value) for entry in roles.entries()}
    for role in dict.fromkeys(names):
        check_name("role", role)
        users = held.get(role, ())
        if user not in users:
            roles.put(role, ",".join((*users, user)))


def _take(roles: PropertiesText, user: str) -> None:
    for role, users in {entry.key: names_in(entry.value) for entry in roles.entries()}.items():
        left = [name for name in users if name != user]
        if not left and users:
            roles.remove(role)
        elif len(left) < len(users):
            roles.put(role, ",".join(left))


def _content(path: Path) -> bytes:
    data = read_regular_file(str(path))
    if data is None:
        raise UsersFileError(f"{path} is not a regular file")
    return data


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what is wrong with a file into a UsersFileError that names it."""
    try:
        yield
    except OSError as error:
        raise UsersFileError(f"{path}: {error.strerror or error}") from None
    except (TableError, AuthenticatorError) as error:
        raise UsersFileError(f"{path}: {error}") from None


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold a lock on the folder: of two programs that change files, one waits."""
    with _told(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


# ---- the first user of a broker that has none yet: made at a start, told once --------------------

NEW_PASSWORD: Final = "ARTEMIS_PY_NEW_PASSWORD"
"""The variable of the environment with the password of a user that is made."""
_LETTERS: Final = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without those that look alike."""
_LENGTH: Final = 20


class FirstUser(NamedTuple):
    """Who was made. ``password`` is "" if the environment chose it: whoever starts the broker knows it."""

    user: str
    role: str
    password: str
    file: str


def make_first_user(config: BrokerConfig, environ: Mapping[str, str] | None = None) -> FirstUser | None:
    """Make the user that ``first-user`` names, if the users file does not exist and security is on; else None. Its
    password is random, or that of ARTEMIS_PY_NEW_PASSWORD; the file keeps a hash. Raises UsersFileError.
    """
    named = config.users_file
    if named is None or not named.first_user or not config.security_enabled:
        return None
    files = files_of(config)
    if os.path.exists(files.users):
        return None
    chosen = (os.environ if environ is None else environ).get(NEW_PASSWORD, "")
    password = chosen or "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
    Accounts(files).add(named.first_user, str(hashed(password)), [named.first_role])
    return FirstUser(named.first_user, named.first_role, "" if chosen else password, str(files.users))
