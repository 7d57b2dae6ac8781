"""Every user that the files of a configuration name, and where."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from artemis_py.config.reader import load
from artemis_py.errors import ArtemisError
from artemis_py.security.user_files import known_users
from artemis_py.security.users.passwords import hashed
from tests.kit.documents import broker_xml, document
from tests.unit.security.test_instance import RECORDED

MODULES = "org.apache.activemq.artemis.spi.core.security.jaas."


def found(file: Path) -> list[tuple[str, str, str, str]]:
    """Name, roles, login and place of each, without the folder."""
    return [
        (one.name, ",".join(one.roles), one.login, str(one.origin).replace(f"{file.parent}/", ""))
        for one in known_users(load(file, environ={}))
    ]


def test_the_files_beside_the_configuration(tmp_path: Path) -> None:
    file = broker_xml(tmp_path, "")
    assert found(file) == []
    (tmp_path / "artemis-users.properties").write_text(f"# x\nann = {hashed('a', 10)}\nbob = b\neve = ENC(1:x)\n")
    (tmp_path / "artemis-roles.properties").write_text("view = bob,ann\namq = ann\n")
    assert found(file) == [
        ("ann", "amq,view", "hash", "artemis-users.properties:2"),
        ("bob", "view", "plain text", "artemis-users.properties:3"),
        ("eve", "", "unreadable", "artemis-users.properties:4"),
    ]
    (tmp_path / "artemis-users.properties").write_text("ann = \\u12")
    with pytest.raises(ArtemisError, match=r"artemis-users\.properties: line 1"):
        found(file)


def test_each_domain_that_somebody_may_use(tmp_path: Path) -> None:
    """Files that two domains share are told once, and a domain that nobody uses is left out."""
    file = tmp_path / "broker.xml"
    file.write_text(
        document(
            '<authentication login-config="login.config"/><acceptors>'
            '<acceptor name="stomp">tcp://127.0.0.1:0?protocols=STOMP;securityDomain=tills</acceptor></acceptors>'
        )
    )
    files = (
        f"{MODULES}PropertiesLoginModule required org.apache.activemq.jaas.properties.user=people"
        " org.apache.activemq.jaas.properties.role=groups;"
    )
    (tmp_path / "login.config").write_text(
        f"activemq {{\n{files}\n{MODULES}GuestLoginModule optional org.apache.activemq.jaas.guest.user=nobody; }};\n"
        f"tills {{\n{files}\n{MODULES}TextFileCertificateLoginModule optional\n"
        " org.apache.activemq.jaas.textfiledn.user=tills org.apache.activemq.jaas.textfiledn.role=groups; };\n"
        f"unused {{ {MODULES}GuestLoginModule required org.apache.activemq.jaas.guest.user=unused; }};\n"
    )
    (tmp_path / "people").write_text("ann = a\n")
    (tmp_path / "tills").write_text("till = CN=Till 1\n")
    (tmp_path / "groups").write_text("amq = ann\nsales = till\n")
    assert found(file) == [
        ("ann", "amq", "plain text", "people:1"),
        ("till", "sales", "certificate", "tills:1"),
        ("nobody", "guests", "guest", "login.config:3"),
    ]


def test_an_instance(tmp_path: Path) -> None:
    shop = shutil.copytree(RECORDED, tmp_path / "shop")
    users = [(one.name, one.roles, one.login) for one in known_users(load(shop, environ={}))]
    assert users == [
        ("ann", ("admin", "staff"), "plain text"),
        ("bob", ("staff",), "hash"),
        ("night watch", ("guards",), "hash"),
        ("baker", ("partners",), "certificate"),
        ("mill", ("partners",), "certificate"),
        ("driver", ("fleet",), "certificate"),
        ("visitor", ("visitors",), "guest"),
    ]


def test_the_one_user_of_a_bootstrap_file(tmp_path: Path) -> None:
    shop = shutil.copytree(RECORDED, tmp_path / "shop")
    bootstrap = shop / "etc" / "bootstrap.xml"
    bootstrap.write_text(
        bootstrap.read_text().replace(
            '<jaas-security domain="shop" certificate-domain="shop-tls"/>',
            '<security-manager class-name="org.apache.activemq.artemis.spi.core.security.ActiveMQBasicSecurityManager">'
            '<property key="bootstrapUser" value="ann"/><property key="bootstrapPassword" value="secret"/>'
            '<property key="bootstrapRole" value="amq"/></security-manager>',
        )
    )
    (user,) = known_users(load(shop, environ={}))
    assert (user.name, user.roles, user.login, user.origin.file) == ("ann", ("amq",), "plain text", str(bootstrap))
