"""``hawtio-oidc.properties`` of an Artemis instance: the OpenID provider at which people log in for the console.

``artemis create`` writes the file without a ``provider``; then nobody does.
"""

from __future__ import annotations

import re
from typing import Final

from artemis_py.config.problems import Problems
from artemis_py.config.properties_file import read_properties
from artemis_py.config.tables.declarations import AuthenticatorConfig

_PLACEHOLDER: Final = re.compile(r"\$\{([^}]+)\}")
_ROLE: Final = "roleMapping."
_OPTIONS: Final = {"name": "name", "scope": "scope", "redirect_uri": "redirect-uri"}
"""Properties that are options of the authenticator ``oidc`` as they are."""
_UNUSED: Final = ("ssl.truststore", "ssl.keystore", "http.proxyURL")
"""Properties without which the provider may not be reached."""


def read_hawtio_oidc(path: str, problems: Problems) -> AuthenticatorConfig | None:
    """Read the file; None if it names no provider. Defaults are those of Hawtio."""
    found = {each.key: each for each in read_properties(path, problems)}
    values = {key: each.value.strip() for key, each in found.items()}
    if not values.get("provider"):
        return None
    roles_path = values.get("oidc.rolesPath") or "roles"
    mapped = {key.removeprefix(_ROLE): role for key, role in values.items() if key.startswith(_ROLE)}
    options = {
        "issuer": values["provider"],
        "client-id": values.get("client_id", ""),
        "user-claim": values.get("oidc.userPath") or "preferred_username",
        "roles-claim": _PLACEHOLDER.sub(lambda each: values.get(each[1], each[0]), roles_path),
        "role-mapping": ",".join(f"{outside}={inside}" for outside, inside in mapped.items()),
        **{option: values[key] for key, option in _OPTIONS.items() if values.get(key)},
    }
    for key in _UNUSED:
        if values.get(key):
            problems.warning(
                "left-out",
                found[key].origin,
                f'{key} is not used: write <authenticator name="oidc"> in broker.xml, with the option ca-file if the '
                "provider has a certificate of your own (docs/oidc.md)",
            )
    origin = found["provider"].origin
    problems.note(
        "instance",
        origin,
        "people log in at the console with this provider; STOMP clients, too, may send its tokens as passwords",
    )
    return AuthenticatorConfig(name="oidc", options=options, origin=origin)
