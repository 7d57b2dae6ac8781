"""Logs in against an LDAP directory: whoever can bind with the password is the user, and groups are the roles."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, final
from urllib.parse import urlsplit

from artemis_py.config.tables.acceptor import is_loopback
from artemis_py.errors import ArtemisError, AuthenticatorError
from artemis_py.security.identity import Credentials, Identity, options_of

try:
    from ldap3 import BASE, NO_ATTRIBUTES, NONE, SUBTREE, Connection, Server, Tls
    from ldap3.core.exceptions import LDAPException
    from ldap3.utils.conv import escape_filter_chars
    from ldap3.utils.dn import escape_rdn, parse_dn
except ImportError:
    raise ImportError(
        "a directory needs the library ldap3; in a checkout of the broker: pip install '.[ldap]' (or with the path of "
        "its wheel instead of the dot)"
    ) from None

_TIMEOUT_S_MAX: Final = 60
_NAMES: Final = re.compile(r"\{dn\}|\{user\}")
_USER_MAX: Final = 256
_PASSWORD_MAX: Final = 4096
_ROLES_MAX: Final = 1000
_SUCCESS: Final = 0
_SIZE_LIMIT_EXCEEDED: Final = 4
_NO_SUCH_OBJECT: Final = 32
_WRONG: Final = frozenset({_NO_SUCH_OBJECT, 34, 48, 49, 50, 53})
"""Results of a bind that concern the user: no such object, invalid DN, inappropriate authentication, invalid
credentials, insufficient rights, unwilling to perform (RFC 4511, appendix A).
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LdapOptions:
    """The options of an ``LdapAuthenticator``, texts as in broker.xml:

    - ``url``: ``ldaps://host:636`` or ``ldap://host:389``; several with blanks in between are tried in order. ldap
      needs ``start_tls`` = true, unless the directory is on this machine. ``ca_file`` has the certificates to trust.
    - The user's entry, by one of two ways. ``user_dn``: a template such as ``uid={user},ou=people,dc=example,dc=org``.
      Or ``user_base`` and ``user_filter`` such as ``(uid={user})``: the entry is searched, as ``bind_dn`` with
      ``bind_password``.
    - The roles, by one of two ways, or none. ``role_base`` and ``role_filter`` such as ``(member={dn})``, in which
      ``{dn}`` is the user's entry and ``{user}`` the name: roles are the values of ``role_name`` ("cn") of the entries
      found. Or ``role_attribute`` such as ``memberOf``: an attribute of the user's entry with the DNs of groups, whose
      first values are the roles.
    - ``timeout`` (5): the longest wait for an answer, in seconds.
    """

    url: str
    user_dn: str = ""
    user_base: str = ""
    user_filter: str = ""
    bind_dn: str = ""
    bind_password: str = ""
    role_base: str = ""
    role_filter: str = ""
    role_name: str = "cn"
    role_attribute: str = ""
    start_tls: str = "false"
    ca_file: str = ""
    timeout: str = "5"

    def __repr__(self) -> str:
        return f"LdapOptions(url={self.url!r})"


@final
class LdapAuthenticator:
    """An ``Authenticator`` with ``LdapOptions``. Each login has connections of its own, and referrals are not followed:
    they could lead the password anywhere. An empty password is refused, because a bind with it proves nothing (RFC
    4513, 5.1.2).
    """

    __slots__ = ("_options", "_servers", "_starts_tls", "_timeout_s")

    def __init__(self, **options: str) -> None:
        """Check the options; nothing is asked of the directory. Raises ArtemisError for an option that does not
        exist, is missing, or makes no sense.
        """
        given = options_of(LdapOptions, options)
        _check(given)
        self._options: Final = given
        self._timeout_s: Final = _seconds(given.timeout)
        self._starts_tls: Final = given.start_tls == "true"
        self._servers: Final = [self._server(url) for url in given.url.split()]

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Return the user and roles, None if name and password do not fit. Raises AuthenticatorError if the directory
        does not answer, or not as the options need it.
        """
        user, password = credentials.user, credentials.password
        if not user or not password or len(user) > _USER_MAX or len(password) > _PASSWORD_MAX or "\0" in user:
            return None
        failure = AuthenticatorError("no directory is configured")
        for server in self._servers:
            try:
                return self._ask(server, user, password)
            except LDAPException as error:
                failure = AuthenticatorError(f"the directory at {server.name} does not answer: {_words(error)}")
        raise failure

    def _ask(self, server: Server, user: str, password: str) -> Identity | None:
        given = self._options
        if given.user_dn:
            dn: str | None = given.user_dn.replace("{user}", escape_rdn(user))
        else:
            with self._bound(server, given.bind_dn, given.bind_password) as reader:
                self._need(server, reader, given.bind_dn or "an anonymous reader")
                dn = self._find(server, reader, user)
        if dn is None:
            return None
        with self._bound(server, dn, password) as own:
            code = own.result["result"]
            if code in _WRONG:
                return None
            self._need(server, own, "the user")
            if not given.bind_dn:
                return Identity(user, self._roles(server, own, dn, user))
        with self._bound(server, given.bind_dn, given.bind_password) as reader:
            self._need(server, reader, given.bind_dn)
            return Identity(user, self._roles(server, reader, dn, user))

    # ---- connections -----------------------------------------------------------------------------

    def _server(self, url: str) -> Server:
        try:
            tls = Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=self._options.ca_file or None)
        except LDAPException as error:
            raise ArtemisError(f"ca-file {self._options.ca_file}: {_words(error)}") from None
        return Server(url, get_info=NONE, connect_timeout=self._timeout_s, tls=tls)

    @contextmanager
    def _bound(self, server: Server, dn: str, password: str) -> Iterator[Connection]:
        """A connection after a bind, whatever came of that."""
        connection = Connection(
            server,
            user=dn or None,
            password=password or None,
            receive_timeout=self._timeout_s,
            auto_referrals=False,
            read_only=True,
            check_names=False,
        )
        try:
            connection.open()
            if self._starts_tls and not connection.start_tls():
                raise AuthenticatorError(f"the directory at {server.name} does not begin TLS")
            connection.bind()
            yield connection
        finally:
            with suppress(LDAPException):  # the socket is gone, and what happened before is what matters
                connection.unbind()

    def _need(self, server: Server, connection: Connection, who: str) -> None:
        """Raises AuthenticatorError if the bind has failed."""
        if connection.result["result"] != _SUCCESS:
            raise AuthenticatorError(
                f"the directory at {server.name} refuses {who}: {connection.result['description']}"
            )

    # ---- searches --------------------------------------------------------------------------------

    def _search(
        self, server: Server, reader: Connection, base: str, text: str, scope: str, name: str | None, limit: int
    ) -> list[dict[str, Any]]:
        """The entries found, at most ``limit``. Raises AuthenticatorError."""
        attributes = NO_ATTRIBUTES if name is None else [name]
        reader.search(base, text, scope, attributes=attributes, size_limit=limit, time_limit=self._timeout_s)
        if reader.result["result"] not in (_SUCCESS, _SIZE_LIMIT_EXCEEDED, _NO_SUCH_OBJECT):
            raise AuthenticatorError(
                f"the directory at {server.name} does not search {base}: {reader.result['description']}"
            )
        return [each for each in reader.response or () if each.get("type") == "searchResEntry"]

    def _find(self, server: Server, reader: Connection, user: str) -> str | None:
        given = self._options
        text = given.user_filter.replace("{user}", escape_filter_chars(user))
        found = self._search(server, reader, given.user_base, text, SUBTREE, None, 2)
        if len(found) > 1:
            raise AuthenticatorError(f"the directory at {server.name} has more than one entry of a user")
        return str(found[0]["dn"]) if found else None

    def _roles(self, server: Server, reader: Connection, dn: str, user: str) -> frozenset[str]:
        given = self._options
        if given.role_attribute:
            entries = self._search(server, reader, dn, "(objectClass=*)", BASE, given.role_attribute, 1)
            return frozenset(_first_value(each) for each in _values(entries, given.role_attribute))
        if not given.role_base:
            return frozenset()
        texts = {"{dn}": escape_filter_chars(dn), "{user}": escape_filter_chars(user)}
        text = _NAMES.sub(lambda name: texts[name[0]], given.role_filter)
        entries = self._search(server, reader, given.role_base, text, SUBTREE, given.role_name, _ROLES_MAX)
        return frozenset(_values(entries, given.role_name))


def _values(entries: list[dict[str, Any]], name: str) -> list[str]:
    """The values of an attribute in all entries; its name may come back in other letter case."""
    found: list[str] = []
    for entry in entries:
        for key, values in entry["raw_attributes"].items():
            if key.lower() == name.lower():
                found += [value.decode("utf-8", "replace") for value in values]
    return found


def _first_value(dn: str) -> str:
    """``admins`` of ``cn=admins,ou=groups,dc=example,dc=org``; a value that is no DN stays as it is."""
    try:
        return str(parse_dn(dn)[0][1])
    except LDAPException:
        return dn


def _words(error: Exception) -> str:
    """What failed, on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) <= _TIMEOUT_S_MAX:
        raise ArtemisError(f"timeout must be a number of seconds from 1 to {_TIMEOUT_S_MAX}, not {text!r}")
    return int(text)


def _check(given: LdapOptions) -> None:
    """Raises ArtemisError for options that make no sense together, or that would send passwords in the clear."""
    if given.start_tls not in ("true", "false"):
        raise ArtemisError(f"start-tls must be true or false, not {given.start_tls!r}")
    if not given.url.split():
        raise ArtemisError("url must not be empty")
    for url in given.url.split():
        parts = urlsplit(url)
        if parts.scheme not in ("ldap", "ldaps") or not parts.hostname:
            raise ArtemisError(f"url must be ldaps://host:port or ldap://host:port, not {url!r}")
        if parts.scheme == "ldap" and given.start_tls != "true" and not is_loopback(parts.hostname):
            raise ArtemisError(f"{url} would send passwords in the clear: use ldaps, or start-tls = true")
    if bool(given.user_dn) == bool(given.user_filter):
        raise ArtemisError("exactly one of user-dn and user-filter must be given")
    if "{user}" not in given.user_dn + given.user_filter:
        raise ArtemisError("user-dn or user-filter must contain {user}")
    if given.user_filter and not given.user_base:
        raise ArtemisError("user-filter needs user-base")
    if bool(given.role_base) != bool(given.role_filter):
        raise ArtemisError("role-base and role-filter belong together")
    if given.role_base and given.role_attribute:
        raise ArtemisError("roles come from role-filter or from role-attribute, not from both")
    if given.role_filter and "{dn}" not in given.role_filter and "{user}" not in given.role_filter:
        raise ArtemisError("role-filter must contain {dn} or {user}, or everybody would have all roles")
    if given.bind_dn and not given.bind_password:
        raise ArtemisError("bind-dn needs bind-password")
