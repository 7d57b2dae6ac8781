"""Which files of users and roles a configuration has, in an Artemis instance, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from artemis_py.config.problems import Problems
from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.entities import JaasConfig, Origin
from artemis_py.security.jaas.login_config import ModuleEntry, read_login_config
from artemis_py.security.jaas.modules import PACKAGE, user_files
from artemis_py.security.users.files import UserFiles, files_of

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
