"""What a login module is, whom a login is about, and the modules of one domain as an authenticator, with the rules of
Java's ``LoginContext`` about their flags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, final

from artemis_py.errors import ArtemisError, AuthenticatorError
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.jaas.login_config import REQUIRED, REQUISITE, SUFFICIENT
from artemis_py.security.users.reloaded import Fetched, ReloadedFile, fetched_keys_of, files_of, logins_of


class LoginRefusedError(ArtemisError):
    """A module refuses these credentials. The text is for tests, and not shown."""


@final
@dataclass(slots=True)
class Subject:
    """Whom the modules of a domain have made out together: users in the order of the modules, all their roles, and
    the earliest end of a login (epoch ms; 0: none ends).
    """

    users: list[str] = field(default_factory=list)
    roles: set[str] = field(default_factory=set)
    expires_ms: int = 0
    why_these_roles: str = ""

    def add(self, user: str, *roles: str) -> None:
        """Add a user and roles."""
        if user not in self.users:
            self.users.append(user)
        self.roles.update(roles)

    def take(self, identity: Identity) -> None:
        """Add somebody with roles and an end."""
        self.add(identity.user, *identity.roles)
        self.why_these_roles = identity.why_these_roles
        if identity.expires_ms:
            self.expires_ms = min(self.expires_ms or identity.expires_ms, identity.expires_ms)


class LoginModule(Protocol):
    """One way to check a login. It has no state of an attempt, so threads share it.

    A login has two phases: every module is asked by ``login``; if the flags say that it has succeeded, every module
    gets ``commit``. What ``login`` returned, ``commit`` gets.
    """

    def login(self, credentials: Credentials) -> str | Identity | None:
        """Return the user that has logged in (an identity, if the roles are known with it, and nothing is left for
        ``commit``), or None if the module has nothing to say. Raises LoginRefusedError, and AuthenticatorError if it
        cannot tell now.
        """

    def commit(self, user: str | None, subject: Subject) -> bool:
        """Add to the subject; ``user`` is None if this module was not asked, said nothing or refused. Returns whether
        that counts as success. Raises as ``login`` does.
        """


# ---- the modules of one domain -------------------------------------------------------------------


class Stacked(NamedTuple):
    """A module with its flag."""

    flag: str
    module: LoginModule


@final
class ModuleStack:
    """An ``Authenticator``: asks modules in order, then lets them add users and roles in the same order.

    Both phases follow the flags: ``required`` must succeed, but the others are still asked; ``requisite`` must succeed,
    else it ends there; ``sufficient`` ends it if it succeeds and nothing required has failed; ``optional`` need not
    succeed. At least one module must succeed.
    """

    __slots__ = ("_modules",)

    def __init__(self, modules: Sequence[Stacked]) -> None:
        self._modules: Final = tuple(modules)

    @property
    def files(self) -> tuple[ReloadedFile[Any], ...]:
        """The files of all modules."""
        return tuple(file for _, module in self._modules for file in files_of(module))

    @property
    def fetched_keys(self) -> tuple[Fetched, ...]:
        """The keys that modules fetch."""
        return tuple(keys for _, module in self._modules for keys in fetched_keys_of(module))

    def logins(self) -> Iterator[tuple[str, object]]:
        """See ``logins_of``."""
        return (each for _, module in self._modules for each in logins_of(module))

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Return who this is, None if nobody. Raises AuthenticatorError if it is nobody and a module could not tell."""
        attempt = _Attempt(self._modules)
        if attempt.phase(lambda each: attempt.login(each, credentials)) and attempt.phase(attempt.commit):
            subject = attempt.subject
            if subject.users:
                roles = frozenset(subject.roles)
                return Identity(subject.users[0], roles, subject.expires_ms, subject.why_these_roles)
        if attempt.failure is not None:
            raise attempt.failure
        return None


@final
class _Attempt:
    def __init__(self, modules: Sequence[Stacked]) -> None:
        self._modules: Final = modules
        self._found: Final[dict[int, str | Identity | None]] = {}
        self.subject: Final = Subject()
        self.failure: AuthenticatorError | None = None

    def login(self, place: int, credentials: Credentials) -> bool:
        found = self._found[place] = self._modules[place].module.login(credentials)
        return found is not None

    def commit(self, place: int) -> bool:
        found = self._found.get(place)
        if isinstance(found, Identity):
            self.subject.take(found)
            return True
        return self._modules[place].module.commit(found, self.subject)

    def phase(self, step: Callable[[int], bool]) -> bool:
        """Carry out a step for each module, as far as the flags say. Returns whether the phase succeeded."""
        has_succeeded = has_failed = False
        for place, (flag, _) in enumerate(self._modules):
            try:
                succeeded = step(place)
            except (LoginRefusedError, AuthenticatorError) as error:
                if isinstance(error, AuthenticatorError):
                    self.failure = error
                if flag == REQUISITE:
                    return False
                has_failed = has_failed or flag == REQUIRED
                continue
            if succeeded and flag == SUFFICIENT and not has_failed:
                return True
            has_succeeded = has_succeeded or succeeded
        return has_succeeded and not has_failed
