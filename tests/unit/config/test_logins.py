"""Which ports are opened while clients must log in, and what the element authentication says."""

from __future__ import annotations

from pathlib import Path

import pytest

from artemis_py.config.reader import load
from tests.kit.documents import broker_xml, errors_of, load_core

PORTS = (
    '<acceptors><acceptor name="net">tcp://0.0.0.0:0?protocols=STOMP</acceptor>\n'
    '<acceptor name="near">tcp://127.0.0.1:0?protocols=STOMP</acceptor>\n'
    '<acceptor name="own">tcp://127.0.0.1:0?protocols=STOMP;securityDomain=own</acceptor></acceptors>'
)
NOBODY = "0.0.0.0 is reachable from other machines, and there are no users who could log in"
NO_DOMAIN = "its securityDomain is a domain of a login.config, and none is known"


def closed(path: Path, core: str, properties: list[Path] | None = None) -> dict[str, str]:
    """The ports that a file does not open, and why, shortened."""
    config = load(broker_xml(path, core + PORTS), properties=properties or [], environ={})
    return {each.name: each.refused.partition(";")[0] for each in config.acceptors if each.refused is not None}


def test_without_users_only_ports_near_by_are_opened(tmp_path: Path) -> None:
    assert closed(tmp_path, "") == {"net": NOBODY, "own": NO_DOMAIN}
    assert closed(tmp_path, "<users-file>passwd</users-file>") == {"net": NOBODY, "own": NO_DOMAIN}


@pytest.mark.parametrize(
    "core",
    [
        '<users-file first-user="admin">passwd</users-file>',  # the start makes it
        '<authentication><authenticator name="jwt"/></authentication>',
    ],
)
def test_with_users_all_ports_are_opened(tmp_path: Path, core: str) -> None:
    assert closed(tmp_path, core) == {"own": NO_DOMAIN}


def test_users_beside_the_file_count(tmp_path: Path) -> None:
    (tmp_path / "artemis-users.properties").write_text("ann = welcome\n")
    assert closed(tmp_path, "") == {"own": NO_DOMAIN}
    assert closed(tmp_path, "<users-file>passwd</users-file>") == {"net": NOBODY, "own": NO_DOMAIN}
    (tmp_path / "passwd").write_text("ann = welcome\n")
    assert closed(tmp_path, "<users-file>passwd</users-file>") == {"own": NO_DOMAIN}


def test_a_login_config_has_domains(tmp_path: Path) -> None:
    assert closed(tmp_path, '<authentication login-config="login.config"/>') == {}


@pytest.mark.parametrize("users", [True, False])
def test_security_that_is_off(tmp_path: Path, users: bool) -> None:
    if users:
        (tmp_path / "artemis-users.properties").write_text("ann = welcome\n")
    assert closed(tmp_path, "<security-enabled>false</security-enabled>") == {}
    # Artemis reads 1 as false; whether that is meant is doubtful, and users would not be asked.
    assert list(closed(tmp_path, "<security-enabled>1</security-enabled>")) == ["net"]
    switched_off = tmp_path / "off.properties"
    switched_off.write_text("securityEnabled=false\n")
    assert closed(tmp_path, "", [switched_off]) == {}


def test_what_authentication_says(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file\nand more\n")
    config = load_core(
        '<authentication login-config="etc/login.config" certificate-domain="tls">\n'
        '<authenticator name="jwt"><option name="issuer" value="${ISSUER}"/>\n'
        f'<option name="secret" file="{tmp_path}/secret"/></authenticator>'
        '<authenticator name="ldap"/></authentication>',
        {"ISSUER": "https://id.example"},
    )
    jaas = config.logins.jaas
    assert jaas is not None
    assert (jaas.file, jaas.domain, jaas.certificate_domain) == ("etc/login.config", "activemq", "tls")
    jwt, ldap = config.logins.authenticators
    assert jwt.options == {"issuer": "https://id.example", "secret": "from a file"}
    assert (jwt.name, jwt.origin.line, ldap.name, ldap.options) == ("jwt", 4, "ldap", {})
    assert "from a file" not in repr(config.logins)


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ('<option name="a"/>', "3: option a needs a value, or a file with the value, and not both"),
        ('<option name="a" value="1" file="b"/>', "3: option a needs a value, or a file with the value, and not both"),
        ('<option name="a" value="1"/>\n<option name="a" value="2"/>', "4: option a is given twice"),
        ('<option name="" value="1"/>', "3: name must not be empty"),
        ('<option name="a" file="no/such"/>', "no/such cannot be read: No such file or directory"),
        ('<option value="1"/>', "option needs the attribute name"),
    ],
)
def test_wrong_options(inside: str, words: str) -> None:
    found = errors_of(f'<authentication><authenticator name="x">{inside}</authenticator></authentication>')
    assert [words in str(each) for each in found] == [True], found


def test_a_domain_without_a_file() -> None:
    (problem,) = errors_of('<authentication domain="activemq"/>')
    assert problem.message == "authentication names a domain, but no login-config that has it"
