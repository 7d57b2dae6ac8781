"""PropertiesLoginModule: users and passwords in one file, roles in another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, final

from artemis_py.security.identity import Credentials
from artemis_py.security.jaas.subject import LoginRefusedError, Subject
from artemis_py.security.users.authenticator import PropertiesUsers
from artemis_py.security.users.reloaded import ReloadedFile


@final
class PropertiesModule:
    """Logs users of the files in, and gives roles to users that modules before it have logged in."""

    __slots__ = ("_users",)

    def __init__(self, users: PropertiesUsers) -> None:
        self._users: Final = users

    @property
    def files(self) -> tuple[ReloadedFile[Any], ...]:
        """The files of users and roles."""
        return self._users.files

    def logins(self) -> Iterator[tuple[str, object]]:
        """See ``logins_of``."""
        return self._users.logins()

    def login(self, credentials: Credentials) -> str | None:
        """See LoginModule."""
        user = credentials.user
        if user is None or not self._users.is_password_of(user, credentials.password or ""):
            raise LoginRefusedError("no such user, or another password")
        return user

    def commit(self, user: str | None, subject: Subject) -> bool:
        """See LoginModule."""
        if user is not None:
            subject.add(user)
        for known in subject.users:
            subject.roles.update(self._users.roles_of(known))
        return user is not None
