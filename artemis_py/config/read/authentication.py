"""Reads ``authentication``: a login.config, and authenticators with their options."""

from __future__ import annotations

import os
from typing import Final

from artemis_py.config.read.element import Reading
from artemis_py.config.tables.logins import AuthenticatorConfig, JaasConfig
from artemis_py.config.xml.source import Element, load_text, relative_to

_DOMAIN_DEFAULT: Final = "activemq"
_SECRET_LENGTH_MAX: Final = 65536


def read_authentication(reading: Reading, parent: Element) -> None:
    """Read the element. Paths in it are relative to the file it stands in."""
    origin = reading.origin(parent)
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
