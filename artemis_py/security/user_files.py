"""Which files of users and roles a configuration has, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from artemis_py.config.problems import Problems, nearest
from artemis_py.config.read.authentication import ROLES_FILE, USERS_FILE
from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.entities import Origin
from artemis_py.config.tables.logins import UsersFileConfig
from artemis_py.errors import Problem
from artemis_py.security.jaas.login_config import read_login_config
from artemis_py.security.jaas.modules import PACKAGE, user_files
from artemis_py.security.users.files import UserFiles
from artemis_py.security.users.lint import lint_files
from artemis_py.security.users.tables import RolesTable

_MODULE = f"{PACKAGE}PropertiesLoginModule"


def all_user_files(config: BrokerConfig) -> list[UserFiles]:
    """Return the files that a configuration names or that were found beside it, in the order in which they are asked;
    those of its domain in a login.config first.
    """
    found = list(_of_login_config(config))
    users = config.logins.users
    if users is not None:
        found.append(UserFiles(Path(users.users), Path(users.roles)))
    return list(dict.fromkeys(found))


def user_files_to_change(config: BrokerConfig) -> UserFiles:
    """Return the first of these files; without any, those that a plain broker.xml would have beside it."""
    folder = Path(config.file).parent
    return next(iter(all_user_files(config)), UserFiles(folder / USERS_FILE, folder / ROLES_FILE))


def problems_of_users(config: BrokerConfig) -> Sequence[Problem]:
    """Check these files; nothing while security is off. Every finding is a warning or a note: the files may be repaired
    while the broker runs.
    """
    if not config.security_enabled:
        return ()
    problems = Problems()
    for files in all_user_files(config):
        named = config.logins.users
        if named is not None and not files.are_there and files.users == Path(named.users):
            _tell_of_missing(config, named, problems)
            continue
        tables = lint_files(files, problems)
        if tables is not None:
            _check_granted(config, files, tables[1], problems)
    return problems.in_order(config.file)


def _of_login_config(config: BrokerConfig) -> Iterator[UserFiles]:
    jaas = config.logins.jaas
    if jaas is None:
        return
    ignored = Problems()  # whoever opens the realms tells them
    login_config = read_login_config(jaas.file, config.properties, jaas.origin, ignored)
    for entry in login_config.modules_of(jaas.domain):
        if entry.class_name == _MODULE:
            yield user_files(entry, Path(login_config.file).parent)


def _tell_of_missing(config: BrokerConfig, named: UsersFileConfig, problems: Problems) -> None:
    if named.first_user:
        text = f"{named.users} does not exist yet; artemis-py run makes it, with a first user {named.first_user}"
        problems.note("users", named.origin, text)
        return
    problems.warning(
        "users",
        named.origin,
        f"NOBODY CAN LOG IN: {named.users} does not exist; make it with: artemis-py user add admin --role amq "
        f"--config {config.file}",
    )


def _check_granted(config: BrokerConfig, files: UserFiles, roles: RolesTable, problems: Problems) -> None:
    """Tell of roles that no security-setting names."""
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
