"""GuestLoginModule: everybody is welcome, under one name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from artemis_py.security.identity import Credentials
from artemis_py.security.jaas.subject import Subject


@final
class GuestModule:
    """Logs everybody in as ``user`` with ``role``; if ``without_password_only`` (``credentialsInvalidate``), it says
    nothing to clients that give a password.
    """

    __slots__ = ("_role", "_user", "_without_password_only")

    def __init__(self, user: str, role: str, *, without_password_only: bool) -> None:
        self._user: Final = user
        self._role: Final = role
        self._without_password_only: Final = without_password_only

    def logins(self) -> Iterator[tuple[str, object]]:
        """See ``logins_of``."""
        yield self._user, (GuestModule, self._role)

    def login(self, credentials: Credentials) -> str | None:
        """See LoginModule."""
        return None if self._without_password_only and credentials.password is not None else self._user

    def commit(self, user: str | None, subject: Subject) -> bool:
        """See LoginModule."""
        if user is None:
            return False
        subject.add(user, self._role)
        return True
