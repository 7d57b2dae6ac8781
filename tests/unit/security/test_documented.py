"""The examples of docs/security.md and docs/oidc.md open, as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from artemis_py.config.reader import loads
from artemis_py.security.realms import open_realms

DOCUMENT = Path(__file__).parents[3] / "docs" / "security.md"
PROVIDERS = DOCUMENT.with_name("oidc.md")
EXAMPLES = re.findall(
    r"```xml\n(<authentication>.*?</authentication>)\n```",
    DOCUMENT.read_text("utf-8") + PROVIDERS.read_text("utf-8"),
    re.DOTALL,
)
SETTINGS = re.findall(
    r"```xml\n(<security-settings>.*?</security-settings>)\n```", PROVIDERS.read_text("utf-8"), re.DOTALL
)


@pytest.mark.parametrize("example", EXAMPLES + SETTINGS, ids=lambda text: text[1:60].replace("\n", ""))
def test_an_example_of_an_authenticator_opens(example: str) -> None:
    pytest.importorskip("jwt", reason="PyJWT is not installed (extra jwt)")
    pytest.importorskip("ldap3", reason="ldap3 is not installed (extra ldap)")
    core = f'<core xmlns="urn:activemq:core">{example}</core>'
    config = loads(f'<configuration xmlns="urn:activemq">{core}</configuration>')
    open_realms(config)


def test_all_are_there() -> None:
    names = re.findall(r'authenticator name="(\w+)"', str(EXAMPLES))
    assert names == ["jwt", "ldap", "oidc", "oidc"]


@pytest.mark.parametrize("name", ["jwt", "ldap", "oidc"])
def test_every_option_is_documented(name: str) -> None:
    import dataclasses

    pytest.importorskip("jwt", reason="PyJWT is not installed (extra jwt)")
    pytest.importorskip("ldap3", reason="ldap3 is not installed (extra ldap)")
    from artemis_py.security.directory import LdapOptions
    from artemis_py.security.oidc import OidcOptions
    from artemis_py.security.tokens import JwtOptions

    text = (PROVIDERS if name == "oidc" else DOCUMENT).read_text("utf-8")
    for option in dataclasses.fields({"jwt": JwtOptions, "ldap": LdapOptions, "oidc": OidcOptions}[name]):
        assert f"`{option.name.replace('_', '-')}`" in text
