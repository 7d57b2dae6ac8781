"""Logs in by a users file and a roles file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, final

from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.users.passwords import spend
from artemis_py.security.users.reloaded import ReloadedFile
from artemis_py.security.users.tables import RolesTable, UsersTable, cut_since, roles_table, users_table


@final
class PropertiesUsers:
    """An ``Authenticator``: users and roles in Java properties, as Artemis' PropertiesLoginModule reads them.

    The files are read when they are first needed, and again when they have changed (not with ``reloads`` false). Every
    refusal takes as long as a wrong password for the dearest hash of the file, so its time does not tell whether a user
    exists. For threads; see ``ReloadedFile``.
    """

    __slots__ = ("_roles", "_users")

    def __init__(
        self, users_file: Path, roles_file: Path, *, reloads: bool = True, tell: Callable[[str], None] | None = None
    ) -> None:
        self._users: Final = ReloadedFile[UsersTable](users_file, users_table, reloads=reloads, tell=tell)
        self._roles: Final = ReloadedFile[RolesTable](
            roles_file, self._roles_in, context=self._users.value, worse=cut_since, reloads=reloads, tell=tell
        )

    def _roles_in(self, data: bytes) -> RolesTable:
        return roles_table(data, self._users.value().passwords)

    @property
    def files(self) -> tuple[ReloadedFile[UsersTable], ReloadedFile[RolesTable]]:
        """Both files."""
        return self._users, self._roles

    def logins(self) -> Iterator[tuple[str, object]]:
        """See ``logins_of``. Nobody is let in before both files could be read."""
        users, roles = self._users.in_force, self._roles.in_force
        if users is None or roles is None:
            return
        for user in {*users.passwords, *roles.by_user}:  # another module may let a user in to whom this gives roles
            yield user, (self._users.path, users.passwords.get(user), roles.by_user.get(user))

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Return the user with its roles, or None if there is no such user or the password is wrong; no password is an
        empty one. Raises AuthenticatorError if a file could never be read.
        """
        user = credentials.user
        if user is None or not self.is_password_of(user, credentials.password or ""):
            return None
        return Identity(user, self.roles_of(user))

    def read(self) -> None:
        """Read both files now if they have changed. Raises AuthenticatorError if one could never be read."""
        self._users.value()
        self._roles.value()

    def is_password_of(self, user: str, password: str) -> bool:
        """Does the user exist, with this password? Raises AuthenticatorError if the file could never be read."""
        users = self._users.value()
        stored = users.passwords.get(user)
        if stored is not None and stored.verify(password):
            return True
        spend(users.work_max - (0 if stored is None else stored.work))
        return False

    def roles_of(self, user: str) -> frozenset[str]:
        """Return the roles that the roles file gives to this name, whether or not the users file has it. Raises
        AuthenticatorError if the file could never be read.
        """
        return self._roles.value().by_user.get(user, frozenset())
