"""Every user that files of a configuration name: those of users' files, of a login.config, and of a bootstrap.xml."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from artemis_py.config.problems import Problems
from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.entities import Origin
from artemis_py.config.tables.logins import BootstrapUsers, JaasConfig
from artemis_py.errors import ConfigError
from artemis_py.security.jaas.login_config import ModuleEntry, read_login_config
from artemis_py.security.jaas.modules import PACKAGE, certificate_files, guest_of, user_files
from artemis_py.security.user_files import domains_of, has_plain_files
from artemis_py.security.users.accounts import roles_in, users_in
from artemis_py.security.users.files import UserFiles, files_of
from artemis_py.security.users.passwords import HashedPassword, PlainPassword, StoredPassword, stored_password

HASH: Final = "hash"
PLAIN: Final = "plain text"
UNREADABLE: Final = "unreadable"
MASKED: Final = "masked"
CERTIFICATE: Final = "certificate"
GUEST: Final = "guest"


@final
@dataclass(frozen=True, slots=True)
class KnownUser:
    """A user as one file declares it. ``login``: how the password is stored, or what else lets it in."""

    name: str
    roles: tuple[str, ...]
    """In alphabetical order."""
    login: str
    origin: Origin


def known_users(config: BrokerConfig) -> list[KnownUser]:
    """Return them in the order in which the sources are asked. It blocks: it reads files. Raises UsersFileError for one
    that cannot be read, and ConfigError for a login.config.
    """
    logins = config.logins
    found: dict[UserFiles, list[KnownUser]] = {}
    others: list[KnownUser] = []
    if logins.jaas is not None:
        for entry, folder in _modules(config, logins.jaas):
            kind = entry.class_name.removeprefix(PACKAGE)
            if kind == "PropertiesLoginModule":
                files = user_files(entry, folder)
                found.setdefault(files, list(_with_passwords(files)))
            elif kind == "TextFileCertificateLoginModule":
                files = certificate_files(entry, folder)
                found.setdefault(files, list(_with_certificates(files)))
            elif kind == "GuestLoginModule":
                user, role = guest_of(entry)
                others.append(KnownUser(user, (role,), GUEST, entry.origin))
    if logins.bootstrap is not None:
        others += _of_bootstrap(logins.bootstrap)
    if has_plain_files(config) and (files := files_of(config)).are_there:
        found.setdefault(files, list(_with_passwords(files)))
    return [*(user for users in found.values() for user in users), *dict.fromkeys(others)]


def _modules(config: BrokerConfig, jaas: JaasConfig) -> Iterator[tuple[ModuleEntry, Path]]:
    problems = Problems()
    login_config = read_login_config(jaas.file, config.properties, jaas.origin, problems)
    if problems.has_errors:
        raise ConfigError(problems.in_order(config.file))
    for domain in domains_of(config, jaas):
        for entry in login_config.modules_of(domain):
            yield entry, Path(login_config.file).parent


def _with_passwords(files: UserFiles) -> Iterator[KnownUser]:
    users, roles = users_in(files.users), roles_in(files.roles).by_user
    for user, stored in users.passwords.items():
        origin = Origin(str(files.users), users.lines[user])
        yield KnownUser(user, _sorted(roles.get(user)), how_stored(stored), origin)


def _with_certificates(files: UserFiles) -> Iterator[KnownUser]:
    users, roles = users_in(files.users), roles_in(files.roles).by_user
    for user, line in users.lines.items():
        yield KnownUser(user, _sorted(roles.get(user)), CERTIFICATE, Origin(str(files.users), line))


def _of_bootstrap(users: BootstrapUsers) -> Iterator[KnownUser]:
    if users.user_file is not None and users.role_file is not None:
        yield from _with_passwords(UserFiles(Path(users.user_file), Path(users.role_file)))
    elif users.user is not None:
        role = () if users.role is None else (users.role,)
        login = how_stored(stored_password(users.password or ""))
        yield KnownUser(users.user, role, MASKED if login == UNREADABLE else login, users.origin)


def how_stored(stored: StoredPassword) -> str:
    """How a password is stored; nothing of the password."""
    if isinstance(stored, HashedPassword):
        return HASH
    return PLAIN if isinstance(stored, PlainPassword) else UNREADABLE


def _sorted(roles: frozenset[str] | None) -> tuple[str, ...]:
    return tuple(sorted(roles or ()))
