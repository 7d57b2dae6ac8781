"""The examples of docs/security.md open, as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from artemis_py.config.reader import loads
from artemis_py.security.realms import open_realms

DOCUMENT = Path(__file__).parents[3] / "docs" / "security.md"
EXAMPLES = re.findall(r"```xml\n(<authentication>.*?</authentication>)\n```", DOCUMENT.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: re.findall(r'authenticator name="(\w+)"', text)[0])
def test_an_example_of_an_authenticator_opens(example: str) -> None:
    pytest.importorskip("jwt", reason="PyJWT is not installed (extra jwt)")
    pytest.importorskip("ldap3", reason="ldap3 is not installed (extra ldap)")
    core = f'<core xmlns="urn:activemq:core">{example}</core>'
    config = loads(f'<configuration xmlns="urn:activemq">{core}</configuration>')
    open_realms(config)


def test_both_are_there() -> None:
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("name", ["jwt", "ldap"])
def test_every_option_is_documented(name: str) -> None:
    import dataclasses

    pytest.importorskip("jwt", reason="PyJWT is not installed (extra jwt)")
    pytest.importorskip("ldap3", reason="ldap3 is not installed (extra ldap)")
    from artemis_py.security.directory import LdapOptions
    from artemis_py.security.tokens import JwtOptions

    text = DOCUMENT.read_text("utf-8")
    for option in dataclasses.fields(JwtOptions if name == "jwt" else LdapOptions):
        assert f"`{option.name.replace('_', '-')}`" in text
