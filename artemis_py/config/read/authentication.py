"""Reads ``authentication``: a login.config, and authenticators with their options."""

from __future__ import annotations

import os
from typing import Final

from artemis_py.config.read.element import Reading
from artemis_py.config.tables.entities import Origin
from artemis_py.config.tables.logins import AuthenticatorConfig, JaasConfig, UsersFileConfig
from artemis_py.config.xml.source import Element, load_text, relative_to

USERS_FILE: Final = "artemis-users.properties"
ROLES_FILE: Final = "artemis-roles.properties"
"""As in an instance of Artemis; a plain broker.xml has them beside it."""
_FIRST_ROLE_DEFAULT: Final = "amq"
_DOMAIN_DEFAULT: Final = "activemq"
_SECRET_LENGTH_MAX: Final = 65536


def read_authentication(reading: Reading, parent: Element) -> None:
    """Read the element. Paths in it are relative to the file it stands in."""
    origin = reading.origin(parent)
    _read_users_file(reading, parent)
    path = parent.get("login-config")
    if path is not None:
        reading.draft.jaas = JaasConfig(
            file=relative_to(origin.file, str(path)),
            domain=str(parent.get("domain") or _DOMAIN_DEFAULT),
            certificate_domain=str(parent.get("certificate-domain") or "") or None,
            origin=origin,
        )
    elif parent.get("domain") is not None or parent.get("certificate-domain") is not None:
        reading.problems.error(origin, "authentication names a domain, but no login-config that has it")
    for element in parent.iterchildren("{*}authenticator"):
        name = reading.required_name(element)
        if name is not None:
            options = _options(reading, element)
            reading.draft.authenticators.append(
                AuthenticatorConfig(name=name, options=options, origin=reading.origin(element))
            )


def users_beside(file: str) -> UsersFileConfig | None:
    """Return the users and roles in the folder of a configuration, None if no users file is there."""
    users = os.path.join(os.path.dirname(file), USERS_FILE)
    if not os.path.isfile(users):
        return None
    return UsersFileConfig(users=users, roles=relative_to(file, ROLES_FILE), origin=Origin(file, 0))


def _read_users_file(reading: Reading, parent: Element) -> None:
    origin = reading.origin(parent)
    users, first_user = str(parent.get("users-file") or "").strip(), str(parent.get("first-user") or "").strip()
    for name in ("roles-file", "first-user"):
        if parent.get(name) is not None and not users:
            reading.problems.error(origin, f"authentication has {name}, but no users-file", allowed=USERS_FILE)
    if parent.get("first-role") is not None and not first_user:
        reading.problems.error(origin, "authentication has first-role, but no first-user", allowed="admin")
    if users:
        path = relative_to(origin.file, users)
        reading.draft.users_file = UsersFileConfig(
            users=path,
            roles=relative_to(path, ROLES_FILE)
            if parent.get("roles-file") is None
            else relative_to(origin.file, str(parent.get("roles-file"))),
            first_user=first_user,
            first_role=str(parent.get("first-role") or _FIRST_ROLE_DEFAULT).strip(),
            origin=origin,
        )


def _options(reading: Reading, parent: Element) -> dict[str, str]:
    options: dict[str, str] = {}
    for element in parent.iterchildren("{*}option"):
        name = reading.required_name(element)
        value, file = element.get("value"), element.get("file")
        if name is None:
            continue
        origin = reading.origin(element)
        if name in options:
            reading.problems.error(origin, f"option {name} is given twice")
        elif (value is None) == (file is None):
            reading.problems.error(origin, f"option {name} needs a value, or a file with the value, and not both")
        elif value is not None:
            options[name] = str(value)
        else:
            options[name] = _content(reading, element, str(file))
    return options


def _content(reading: Reading, element: Element, file: str) -> str:
    """Return the first line of a file: a secret that is in no configuration."""
    origin = reading.origin(element)
    text = load_text(os.path.abspath(relative_to(origin.file, file)), origin, reading.problems)
    if text is not None and len(text) > _SECRET_LENGTH_MAX:
        reading.problems.error(origin, f"{file} is too long for an option")
    return (text or "").partition("\n")[0]
