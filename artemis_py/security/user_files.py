"""Which files of users and roles a configuration has, in an Artemis instance, too, and every user that they name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, final

from artemis_py.config.problems import Problems
from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.declarations import BootstrapUsers, JaasConfig, Origin
from artemis_py.errors import ConfigError
from artemis_py.security.login_config import ModuleEntry, read_login_config
from artemis_py.security.login_modules import PACKAGE, certificate_files, guest_of, user_files
from artemis_py.security.users.accounts import UserFiles, files_of, roles_in, users_in
from artemis_py.security.users.passwords import HashedPassword, PlainPassword, StoredPassword, stored_password

_MODULE: Final = f"{PACKAGE}PropertiesLoginModule"


def has_plain_files(config: BrokerConfig) -> bool:
    """Are users looked for in ``users-file``, or else beside broker.xml?"""
    logins = config.logins
    return config.users_file is not None or not (logins.of_instance or (logins.are_known and not logins.has_files))


def domains_of(config: BrokerConfig, jaas: JaasConfig) -> dict[str, Origin]:
    """Return the domains of a login.config that somebody may log in to, each with where it is wanted."""
    wanted = {jaas.domain: jaas.origin}
    if jaas.certificate_domain is not None:
        wanted.setdefault(jaas.certificate_domain, jaas.origin)
    for acceptor in config.acceptors:
        domain = acceptor.params.get("securityDomain")
        if domain and acceptor.is_opened:
            wanted.setdefault(domain, acceptor.origin)
    return wanted


def all_user_files(config: BrokerConfig) -> list[UserFiles]:
    """Return the files in which users are looked for: those of the domain in a login.config, then those of
    ``users-file``, or beside broker.xml.
    """
    found = [files for _, files in _of_login_config(config)]
    if config.users_file is not None or not config.logins.of_instance:
        found.append(files_of(config))
    return list(dict.fromkeys(found))


@final
@dataclass(frozen=True, slots=True)
class ChangeableFiles:
    """The files in which operations change users. ``reloads``: does a change count without a restart?"""

    files: UserFiles
    reloads: bool


def changeable_files(config: BrokerConfig) -> ChangeableFiles | None:
    """Return the first files in which users are looked for; None: there are none."""
    for entry, files in _of_login_config(config):
        return ChangeableFiles(files, entry.options.get("reload", "").lower() == "true")
    return ChangeableFiles(files_of(config), reloads=True) if has_plain_files(config) else None


def user_files_to_change(config: BrokerConfig) -> UserFiles:
    """Return the first of these files; without any, those that a plain broker.xml would have beside it."""
    return next(iter(all_user_files(config)), files_of(config))


def _of_login_config(config: BrokerConfig) -> Iterator[tuple[ModuleEntry, UserFiles]]:
    jaas = config.logins.jaas
    if jaas is None:
        return
    untold = Problems()  # they are told when the realms are opened
    login_config = read_login_config(jaas.file, config.properties, jaas.origin, untold)
    for entry in login_config.modules_of(jaas.domain):
        if entry.class_name == _MODULE:
            yield entry, user_files(entry, Path(login_config.file).parent)


# ---- every user that they name -------------------------------------------------------------------

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


class _Source(NamedTuple):
    """Files, or one user (``files`` is None)."""

    files: UserFiles | None
    has_certificates: bool = False
    one: KnownUser | None = None


def known_users(config: BrokerConfig) -> list[KnownUser]:
    """Return them in the order in which the sources are asked; single users come last. It blocks: it reads files.
    Raises UsersFileError for one that cannot be read, and ConfigError for a login.config.
    """
    sources = list(dict.fromkeys(_sources(config)))
    found = [user for source in sources if source.files is not None for user in _users_of(source, source.files)]
    return found + [source.one for source in sources if source.one is not None]


def files_of_realm(config: BrokerConfig) -> list[str]:
    """Return the paths of all files that say who may log in. It blocks. Raises ConfigError for a login.config."""
    named = [source.files for source in _sources(config) if source.files is not None]
    found = [str(path) for files in named for path in (files.users, files.roles)]
    if config.logins.jaas is not None:
        found.append(config.logins.jaas.file)
    return list(dict.fromkeys(found))


def _sources(config: BrokerConfig) -> Iterator[_Source]:
    logins = config.logins
    if logins.jaas is not None:
        for entry, folder in _modules(config, logins.jaas):
            kind = entry.class_name.removeprefix(PACKAGE)
            if kind == "PropertiesLoginModule":
                yield _Source(user_files(entry, folder))
            elif kind == "TextFileCertificateLoginModule":
                yield _Source(certificate_files(entry, folder), has_certificates=True)
            elif kind == "GuestLoginModule":
                user, role = guest_of(entry)
                yield _Source(None, one=KnownUser(user, (role,), GUEST, entry.origin))
    if logins.bootstrap is not None:
        yield from _of_bootstrap(logins.bootstrap)
    if has_plain_files(config) and (files := files_of(config)).are_there:
        yield _Source(files)


def _modules(config: BrokerConfig, jaas: JaasConfig) -> Iterator[tuple[ModuleEntry, Path]]:
    problems = Problems()
    login_config = read_login_config(jaas.file, config.properties, jaas.origin, problems)
    if problems.has_errors:
        raise ConfigError(problems.in_order(config.file))
    for domain in domains_of(config, jaas):
        for entry in login_config.modules_of(domain):
            yield entry, Path(login_config.file).parent


def _users_of(source: _Source, files: UserFiles) -> Iterator[KnownUser]:
    users = users_in(files.users)
    roles = roles_in(files.roles, users).by_user
    for user, stored in users.passwords.items():
        login = CERTIFICATE if source.has_certificates else how_stored(stored)
        origin = Origin(str(files.users), users.lines[user])
        yield KnownUser(user, tuple(sorted(roles.get(user, ()))), login, origin)


def _of_bootstrap(users: BootstrapUsers) -> Iterator[_Source]:
    if users.user_file is not None and users.role_file is not None:
        yield _Source(UserFiles(Path(users.user_file), Path(users.role_file)))
    elif users.user is not None:
        role = () if users.role is None else (users.role,)
        stored = stored_password(users.password or "")
        login = how_stored(stored)
        one = KnownUser(users.user, role, MASKED if login == UNREADABLE else login, users.origin)
        yield _Source(None, one=one)


def how_stored(stored: StoredPassword) -> str:
    """How a password is stored; nothing of the password."""
    if isinstance(stored, HashedPassword):
        return HASH
    return PLAIN if isinstance(stored, PlainPassword) else UNREADABLE
