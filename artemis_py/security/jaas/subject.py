"""What a login module is, and whom a login is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, final

from artemis_py.errors import ArtemisError
from artemis_py.security.identity import Credentials


class LoginRefusedError(ArtemisError):
    """A module refuses these credentials. The text is for tests, and not shown."""


@final
@dataclass(slots=True)
class Subject:
    """Whom the modules of a domain have made out together: users in the order of the modules, and all their roles."""

    users: list[str] = field(default_factory=list)
    roles: set[str] = field(default_factory=set)

    def add(self, user: str, *roles: str) -> None:
        """Add a user and roles."""
        if user not in self.users:
            self.users.append(user)
        self.roles.update(roles)


class LoginModule(Protocol):
    """One way to check a login. It has no state of an attempt, so threads share it.

    A login has two phases: every module is asked by ``login``; if the flags say that it has succeeded, every module
    gets ``commit``. What ``login`` returned, ``commit`` gets.
    """

    def login(self, credentials: Credentials) -> str | None:
        """Return the user that has logged in, or None if the module has nothing to say. Raises LoginRefusedError, and
        AuthenticatorError if it cannot tell now.
        """

    def commit(self, user: str | None, subject: Subject) -> bool:
        """Add to the subject; ``user`` is None if this module was not asked, said nothing or refused. Returns whether
        that counts as success. Raises as ``login`` does.
        """
