"""Logins against a real slapd."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from artemis_py.errors import ArtemisError, AuthenticatorError
from artemis_py.security.identity import Credentials, Identity
from tests.kit.process import for_the_module
from tests.unit.security.slapd import ADMIN, ADMIN_PASSWORD, MISSING, SUFFIX, Directory, directory

pytest.importorskip("ldap3", reason="ldap3 is not installed (extra ldap)")
from artemis_py.security.directory import LdapAuthenticator

needs_slapd = pytest.mark.skipif(bool(MISSING), reason=MISSING)

PEOPLE = f"ou=people,{SUFFIX}"
TEMPLATE = {"user_dn": f"uid={{user}},{PEOPLE}"}
SEARCH = {
    "user_base": SUFFIX, "user_filter": "(&(objectClass=person)(uid={user}))", "bind_dn": ADMIN,
    "bind_password": ADMIN_PASSWORD,
}  # fmt: skip
BY_MEMBERS = {"role_base": f"ou=groups,{SUFFIX}", "role_filter": "(member={dn})"}
BY_ATTRIBUTE = {"role_attribute": "memberOf"}


slapd = for_the_module(directory)


@needs_slapd
@pytest.mark.parametrize("entry", [TEMPLATE, SEARCH], ids=["template", "search"])
@pytest.mark.parametrize("roles", [BY_MEMBERS, BY_ATTRIBUTE], ids=["members", "attribute"])
def test_who_can_bind_is_the_user_and_groups_are_roles(
    slapd: Directory, entry: dict[str, str], roles: dict[str, str]
) -> None:
    ldap = LdapAuthenticator(url=slapd.ldap, **entry, **roles)
    assert ldap.authenticate(Credentials("ann", "secret of ann")) == Identity("ann", frozenset({"senders", "admins"}))
    assert ldap.authenticate(Credentials("bob", "secret of bob")) == Identity("bob", frozenset({"senders"}))
    odd = "a, (b)*\\c"
    assert ldap.authenticate(Credentials(odd, f"secret of {odd}")) == Identity(odd, frozenset())


@needs_slapd
@pytest.mark.parametrize("entry", [TEMPLATE, SEARCH], ids=["template", "search"])
@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("ann", "secret of bob"),
        ("ann", ""),  # slapd would call this anonymous bind a success
        ("ann", None),
        ("nobody", "secret of ann"),
        ("", "secret of ann"),
        (None, "secret of ann"),
        ("*", "secret of ann"),
        ("ann)(uid=*", "secret of ann"),
        ("ann,ou=people", "secret of ann"),
        ("ann\0", "secret of ann"),
        ("x" * 300, "secret of ann"),
    ],
)
def test_others_are_nobody(slapd: Directory, entry: dict[str, str], user: str | None, password: str | None) -> None:
    assert LdapAuthenticator(url=slapd.ldap, **entry).authenticate(Credentials(user, password)) is None


@needs_slapd
def test_without_a_way_to_roles_there_are_none(slapd: Directory) -> None:
    found = LdapAuthenticator(url=slapd.ldap, **TEMPLATE).authenticate(Credentials("ann", "secret of ann"))
    assert found == Identity("ann", frozenset())


@needs_slapd
def test_a_name_that_two_entries_have_is_nobodys(slapd: Directory) -> None:
    with pytest.raises(AuthenticatorError, match="more than one entry"):
        LdapAuthenticator(url=slapd.ldap, **SEARCH).authenticate(Credentials("twin", "secret of twin"))


@needs_slapd
def test_over_tls(slapd: Directory) -> None:
    trusted = str(slapd.certificate)
    ann = Credentials("ann", "secret of ann")
    assert LdapAuthenticator(url=slapd.ldaps, ca_file=trusted, **TEMPLATE).authenticate(ann) is not None
    assert (
        LdapAuthenticator(url=slapd.ldap, start_tls="true", ca_file=trusted, **TEMPLATE).authenticate(ann) is not None
    )


@needs_slapd
@pytest.mark.parametrize("start_tls", ["true", "false"])
def test_a_certificate_that_nobody_trusts_gets_no_password(slapd: Directory, start_tls: str) -> None:
    url = slapd.ldap if start_tls == "true" else slapd.ldaps
    ldap = LdapAuthenticator(url=url, start_tls=start_tls, **TEMPLATE)
    with pytest.raises(AuthenticatorError, match=r"(?i)certificate"):
        ldap.authenticate(Credentials("ann", "secret of ann"))


@needs_slapd
@pytest.mark.parametrize("start_tls", ["true", "false"])
def test_a_certificate_of_another_host_gets_no_password(slapd: Directory, start_tls: str) -> None:
    url = slapd.ldap if start_tls == "true" else slapd.ldaps
    ldap = LdapAuthenticator(
        url=url.replace("127.0.0.1", "localhost"), start_tls=start_tls, ca_file=str(slapd.certificate), **TEMPLATE
    )
    with pytest.raises(AuthenticatorError, match=r"127\.0\.0\.1"):
        ldap.authenticate(Credentials("ann", "secret of ann"))


@needs_slapd
def test_a_reader_with_a_wrong_password_is_told_in_the_log_only(slapd: Directory) -> None:
    ldap = LdapAuthenticator(url=slapd.ldap, **{**SEARCH, "bind_password": "not this one"})
    with pytest.raises(AuthenticatorError) as failure:
        ldap.authenticate(Credentials("ann", "secret of ann"))
    assert f"refuses {ADMIN}: invalidCredentials" in str(failure.value)
    assert "not this one" not in str(failure.value)


@needs_slapd
def test_the_next_directory_is_asked_when_one_is_away(slapd: Directory) -> None:
    ldap = LdapAuthenticator(url=f"ldap://127.0.0.1:1 {slapd.ldap}", **TEMPLATE)
    assert ldap.authenticate(Credentials("ann", "secret of ann")) is not None


@needs_slapd
def test_many_log_in_at_once(slapd: Directory) -> None:
    ldap = LdapAuthenticator(url=slapd.ldap, **TEMPLATE, **BY_MEMBERS)
    users = ("ann", "bob") * 4
    with ThreadPoolExecutor(len(users)) as threads:
        found = list(threads.map(ldap.authenticate, [Credentials(user, f"secret of {user}") for user in users]))
    assert sorted(one.user for one in found if one is not None) == ["ann"] * 4 + ["bob"] * 4
    assert all(one is not None and ("admins" in one.roles) == (one.user == "ann") for one in found)


@needs_slapd
def test_a_directory_that_does_not_answer_is_left_after_the_timeout(slapd: Directory) -> None:
    ldap = LdapAuthenticator(url=slapd.ldap, timeout="1", **TEMPLATE)
    slapd.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(AuthenticatorError, match=r"127\.0\.0\.1.* does not answer"):
            ldap.authenticate(Credentials("ann", "secret of ann"))
    finally:
        slapd.process.send_signal(signal.SIGCONT)
    assert ldap.authenticate(Credentials("ann", "secret of ann")) is not None


def test_nobody_can_tell_without_a_directory() -> None:
    with pytest.raises(AuthenticatorError, match="does not answer"):
        LdapAuthenticator(url="ldap://127.0.0.1:1", **TEMPLATE).authenticate(Credentials("ann", "x"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": ""}, "url must not be empty"),
        ({"url": "http://x"}, "url must be ldaps"),
        ({"url": "ldap://ldap.example.org"}, "in the clear: use ldaps, or start-tls"),
        ({"start_tls": "yes"}, "start-tls must be true or false"),
        ({"user_dn": ""}, "exactly one of user-dn and user-filter"),
        ({"user_filter": "(uid={user})"}, "exactly one of user-dn and user-filter"),
        ({"user_dn": "uid=ann"}, "must contain {user}"),
        ({"user_dn": "", "user_filter": "(uid={user})"}, "user-filter needs user-base"),
        ({"role_filter": "(member={dn})"}, "belong together"),
        ({"role_base": "x", "role_filter": "(member=*)"}, "everybody would have all roles"),
        ({"role_base": "x", "role_filter": "({dn})", "role_attribute": "memberOf"}, "not from both"),
        ({"bind_dn": "cn=x"}, "bind-dn needs bind-password"),
        ({"timeout": "0"}, "timeout must be"),
        ({"url": "ldaps://x", "ca_file": "/no/such/file"}, "/no/such/file"),
    ],
)
def test_options_that_make_no_sense_are_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(ArtemisError, match=words):
        LdapAuthenticator(**{"url": "ldaps://ldap.example.org", **TEMPLATE, **options})


def test_no_secret_is_shown(tmp_path: Path) -> None:
    ldap = LdapAuthenticator(url="ldaps://ldap.example.org", **SEARCH)
    assert ADMIN_PASSWORD not in repr(ldap) + repr(ldap._options)
    with pytest.raises(ArtemisError, match="there is no option colour"):
        LdapAuthenticator(url="ldaps://x", colour="red")
