"""Which security-setting decides about an address, and how the answer is explained."""

from __future__ import annotations

import pytest

from artemis_py.config.matching import DEFAULT_SYNTAX, WildcardSyntax
from artemis_py.config.reader import loads
from artemis_py.config.security_settings import PERMISSIONS, SecurityConfig, SecuritySetting
from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.declarations import Origin
from artemis_py.security.rights import access_to

UUID = "0a1b2c3d-0000-4000-8000-00000000000f"


def setting(match: str, line: int = 1, **roles: str) -> SecuritySetting:
    granted = {permission: tuple(names.split()) for permission, names in roles.items()}
    return SecuritySetting(match=match, roles=granted, origin=Origin("broker.xml", line))


def broker(
    *settings: SecuritySetting, syntax: WildcardSyntax = DEFAULT_SYNTAX, uuid_namespace: str = ""
) -> BrokerConfig:
    mappings = {"admin": ("ldap", "boss"), "auditor": ("ldap",), "guest": ("guests",)}
    security = SecurityConfig(settings, syntax, role_mappings=mappings, uuid_namespace=uuid_namespace)
    return BrokerConfig(security=security, wildcards=syntax, uuid_namespace=uuid_namespace)


def decider(config: BrokerConfig, name: str) -> str | None:
    found = access_to(config, name).setting
    return None if found is None else found.match


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("orders.eu", "orders.eu"),
        ("orders.us", "orders.*"),
        ("orders", "orders.#"),
        ("orders.us.east", "orders.#"),
        ("sales", "#"),
        ("orders.eu::audit", "orders.eu::audit"),
        ("orders.eu::other", "orders.eu"),
        ("orders.us::audit", "orders.*"),
    ],
)
def test_the_most_specific_setting_decides(name: str, match: str) -> None:
    names = ["#", "orders.#", "orders.*", "orders.eu", "orders.eu::audit"]
    assert decider(broker(*[setting(each) for each in names]), name) == match


def test_nothing_is_merged() -> None:
    access = access_to(broker(setting("#", send="a", consume="a"), setting("x", consume="b")), "x")
    granted = {grant.permission: grant.roles for grant in access.grants}
    assert granted == dict.fromkeys(PERMISSIONS, ()) | {"consume": ("b",)}


def test_of_two_with_the_same_match_the_later_counts() -> None:
    first, second = setting("a.#", 1, send="old"), setting("a.#", 2, send="new")
    access = access_to(broker(first, second), "a.b")
    assert access.setting is second
    assert access.passed_over == (first,)


def test_a_queue_written_with_wildcards_decides_nothing() -> None:
    config = broker(setting("a::*", send="wild"), setting("a", send="plain"))
    assert decider(config, "a::q") == "a"
    assert access_to(config, "a::q").passed_over == ()


def test_passed_over_are_all_others_that_match() -> None:
    config = broker(*[setting(match, line) for line, match in enumerate(["#", "b", "a.#", "a", "a::q", "a::r"], 1)])
    assert [other.match for other in access_to(config, "a::q").passed_over] == ["#", "a.#", "a"]
    assert [other.match for other in access_to(config, "a").passed_over] == ["#", "a.#"]


def test_where_nothing_matches_nobody_may_do_anything() -> None:
    access = access_to(broker(setting("a", send="all")), "b")
    assert access.setting is None
    assert access.permissions_of(["all"]) == ()


def test_permissions_of_somebody_with_several_roles() -> None:
    access = access_to(broker(setting("#", send="writer", consume="reader", browse="reader", manage="admin")), "a")
    assert access.permissions_of(["reader"]) == ("consume", "browse")
    assert access.permissions_of(["reader", "writer"]) == ("send", "consume", "browse")
    assert access.permissions_of([]) == ()


def test_grants_say_where_each_role_comes_from() -> None:
    config = broker(
        setting("#", 7, send="admin ldap", browse="ldap"),
        setting("a.#", 9, send="admin ldap boss guests", browse="auditor ldap admin boss"),
    )
    access = access_to(config, "a.b")
    assert access.setting is not None
    assert (access.setting.match, str(access.setting.origin)) == ("a.#", "broker.xml:9")
    grants = {grant.permission: (grant.roles, grant.mapped) for grant in access.grants}
    assert grants["send"] == (("admin", "ldap", "boss", "guests"), {"ldap": ("admin",), "boss": ("admin",)})
    mapped = {"ldap": ("auditor", "admin"), "boss": ("admin",)}
    assert grants["browse"] == (("auditor", "ldap", "admin", "boss"), mapped)
    assert grants["consume"] == ((), {})
    assert [(other.match, str(other.origin)) for other in access.passed_over] == [("#", "broker.xml:7")]
    assert list(grants) == list(PERMISSIONS)


def test_role_mappings_of_a_file_are_expanded_whatever_the_blanks() -> None:
    text = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><security-settings>
      <security-setting match="#"><permission type="send" roles=" writer , reader"/></security-setting>
      <role-mapping from="staff" to="reader, writer"/>
    </security-settings></core></configuration>"""
    access = access_to(loads(text), "a")
    (first, *_) = access.grants
    assert (first.permission, first.roles) == ("send", ("writer", "staff", "reader"))
    assert first.mapped == {"staff": ("writer", "reader")}
    assert access.permissions_of(["staff"]) == ("send",)


def test_other_wildcard_characters() -> None:
    config = broker(setting("a/>"), setting("a.#"), syntax=WildcardSyntax(delimiter="/", any_words=">"))
    assert decider(config, "a/b") == "a/>"
    assert decider(config, "a.b") is None


def test_names_that_are_uuids_are_looked_up_in_their_namespace() -> None:
    config = broker(setting("#"), setting("temp.*"), uuid_namespace="temp")
    access = access_to(config, UUID)
    assert access.setting is not None
    assert access.setting.match == "temp.*"
    assert [other.match for other in access.passed_over] == ["#"]
