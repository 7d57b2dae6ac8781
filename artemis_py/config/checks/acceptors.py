"""Turns the URIs of acceptors into ports: which are opened, with which protocols and TLS, and why others are not."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from artemis_py.config.draft import AcceptorDraft, Draft
from artemis_py.config.problems import nearest, unless_newer
from artemis_py.config.tables.acceptor import (
    ALLOWED_ORIGINS,
    CONSOLE_BROKERS,
    FOREIGN_PROTOCOLS,
    HANDSHAKE_SECONDS,
    NO_SUITE,
    OLD_VERSIONS,
    OPENSSL_NAMES,
    PROXY_NETWORKS,
    SERVED_PROTOCOLS,
    SERVER_HEADER,
    SERVER_HEADER_CHECK,
    TLS13_SUITES,
    TLS_NAMES,
    TLS_VERSIONS,
    AcceptorConfig,
    is_loopback,
    known_params,
)
from artemis_py.config.tables.declarations import LoginSources, Origin
from artemis_py.config.tables.fields import BOOLEAN, IGNORED, REFUSED, ValueTextError, parse_value, show
from artemis_py.config.xml.source import relative_to

_EVERYTHING: Final = ("STOMP",)
_SPEAKS_NONE: Final = f"this broker speaks none of its protocols; it speaks {' and '.join(SERVED_PROTOCOLS)}"
_NAMES_NONE: Final = f"it names no known protocol; this broker speaks {' and '.join(SERVED_PROTOCOLS)}"


def make_acceptors(draft: Draft, logins: LoginSources) -> tuple[AcceptorConfig, ...]:
    """Check every acceptor of the draft and freeze it; problems are added to the draft's.

    Unless security-enabled is switched off, ports at which nobody could log in are refused: those that other machines
    can reach while there are no ``logins``, and those with a ``securityDomain`` while there is no login.config.
    """
    foreign: dict[str, Origin] = {}
    acceptors = [_make(draft, each, foreign) for each in draft.acceptors]
    acceptors = [replace(each, refused=each.refused or _refusal_of(draft, each, logins)) for each in acceptors]
    if foreign:
        _tell_of_foreign(draft, foreign, acceptors)
    _check_names_and_ports(draft, acceptors)
    for acceptor in acceptors:
        if acceptor.refused is not None and acceptor.refused != _SPEAKS_NONE:
            draft.problems.warning(
                "acceptor-closed", acceptor.origin, f"acceptor {acceptor.name!r} is not opened: {acceptor.refused}"
            )
    return tuple(acceptors)


def _tell_of_foreign(draft: Draft, foreign: dict[str, Origin], acceptors: list[AcceptorConfig]) -> None:
    """Give one warning for all unsupported protocols: Artemis' own files have three such acceptors."""
    what = f"unsupported protocols are ignored: {', '.join(foreign)}"
    closed = [f"{each.name!r} ({each.origin.line})" for each in acceptors if each.refused == _SPEAKS_NONE]
    if closed:
        what += f"; acceptors with no other protocol are not opened: {', '.join(closed)}"
    draft.problems.warning("foreign-protocol", next(iter(foreign.values())), what)


def _make(draft: Draft, each: AcceptorDraft, foreign: dict[str, Origin]) -> AcceptorConfig:
    if each.scheme == "vm":
        reason = "it serves programs in the same Java virtual machine only"
        return AcceptorConfig(name=each.name, host=each.host, port=0, protocols=(), origin=each.origin, refused=reason)
    params, refused = _check_params(draft, each)
    protocols = _protocols(draft, each, params, foreign)
    _check_proxies(draft, each, params)
    if protocols and "STOMP" not in protocols:
        _check_origins(draft, each, params)
    if refused is None and protocols:
        refused = _check_tls(draft, each, params)
    if refused is None and not protocols:
        refused = _SPEAKS_NONE if foreign else _NAMES_NONE
    return AcceptorConfig(
        name=each.name,
        host=each.host,
        port=each.port,
        protocols=protocols,
        params=params,
        origin=each.origin,
        refused=refused,
    )


def _check_params(draft: Draft, each: AcceptorDraft) -> tuple[dict[str, str], str | None]:
    """Return the parameters by their current names, and the reason why the port must not be opened, if any."""
    rows = known_params()
    params: dict[str, str] = {}
    refused: str | None = None
    has_tls = each.params.get("sslEnabled", "").lower() == "true"
    for name, text in each.params.items():
        origin = each.param_origins.get(name, each.origin)
        if name == HANDSHAKE_SECONDS:
            _handshake_seconds(draft, each, params, text, origin)
            continue
        row = rows.get(name)
        if row is None:
            guess = nearest(name, (known for known, at in rows.items() if at.treatment != IGNORED))
            what = f"acceptor {each.name!r}: unknown parameter {name} is ignored{unless_newer(name, guess)}"
            draft.problems.warning("left-out", origin, what, suggestion=guess)
            continue
        try:
            value = parse_value(row, text, is_attribute=True)
            if name == SERVER_HEADER and not (text.isascii() and text.isprintable() and ":" not in text):
                raise ValueTextError(SERVER_HEADER_CHECK.allowed)
        except ValueTextError as problem:
            draft.problems.error(
                origin,
                (f"acceptor {each.name!r}: parameter {name} has a wrong value"),
                value=text,
                allowed=problem.allowed,
            )
            continue
        if row.kind == BOOLEAN and text.lower() not in ("true", "false"):
            draft.problems.warning(
                "doubtful-value",
                origin,
                f"acceptor {each.name!r}: parameter {name} is read as false",
                value=text,
                allowed="true, false",
            )
        if row.treatment == REFUSED and value and (has_tls or row.name not in TLS_NAMES):
            refused = f"{row.name}: {row.reason}"
        _note_ignored(draft, row, value, origin)
        params[row.name] = text
    return params, refused


def _note_ignored(draft: Draft, row: Any, value: object, origin: Origin) -> None:
    if row.treatment == IGNORED and not row.silent and show(value) != show(row.default):
        draft.ignore_setting(row, origin, f"acceptor parameter {row.name}")


def _handshake_seconds(draft: Draft, each: AcceptorDraft, params: dict[str, str], text: str, origin: Origin) -> None:
    """Read Artemis' parameter, in seconds. Our own, in ms, wins if both are given."""
    if not text.isascii() or not text.isdigit():
        draft.problems.error(
            origin,
            f"acceptor {each.name!r}: parameter {HANDSHAKE_SECONDS} has a wrong value",
            value=text,
            allowed="a whole number of seconds",
        )
    else:
        params.setdefault("handshakeTimeout", str(int(text) * 1000))


def _protocols(
    draft: Draft, each: AcceptorDraft, params: dict[str, str], foreign: dict[str, Origin]
) -> tuple[str, ...]:
    """Return the protocols to serve: STOMP if none is named, else the known ones, in any letter case."""
    text = params.get("protocols")
    if text is None:
        return _EVERYTHING
    origin = each.param_origins.get("protocols", each.origin)
    served: list[str] = []
    for word in text.split(","):
        name = word.strip().upper()
        if name in SERVED_PROTOCOLS:
            if name != word.strip():
                draft.problems.note(
                    "doubtful-value",
                    origin,
                    f"acceptor {each.name!r}: {word} is read as {name}; Artemis does not accept this spelling",
                )
            if name not in served:
                served.append(name)
        elif name in FOREIGN_PROTOCOLS:
            foreign.setdefault(name, origin)
        elif name:
            draft.problems.warning(
                "left-out",
                origin,
                f"acceptor {each.name!r}: unknown protocol is ignored",
                value=word,
                allowed=", ".join(SERVED_PROTOCOLS),
                suggestion=nearest(word, (*SERVED_PROTOCOLS, *FOREIGN_PROTOCOLS)),
            )
    return tuple(served)


def _check_names_and_ports(draft: Draft, acceptors: list[AcceptorConfig]) -> None:
    names: dict[str, Origin] = {}
    ports: dict[tuple[str, int], Origin] = {}
    for acceptor in acceptors:
        other = names.setdefault(acceptor.name, acceptor.origin)
        if other is not acceptor.origin:
            draft.problems.error(acceptor.origin, f"two acceptors are named {acceptor.name!r}; the other is at {other}")
        if acceptor.refused is not None or acceptor.port == 0:
            continue
        place = (acceptor.host.lower(), acceptor.port)
        other = ports.setdefault(place, acceptor.origin)
        if other is not acceptor.origin:
            draft.problems.error(
                acceptor.origin, f"the acceptor at {other} already uses {acceptor.host}:{acceptor.port}"
            )


def _check_proxies(draft: Draft, each: AcceptorDraft, params: Mapping[str, str]) -> None:
    words = _listed(params, PROXY_NETWORKS)
    if words:
        import ipaddress

        for word in words:
            try:
                ipaddress.ip_network(word)
            except ValueError as error:
                draft.problems.error(
                    _origin(each, PROXY_NETWORKS),
                    f"acceptor {each.name!r}: parameter {PROXY_NETWORKS} has a wrong value: {error}",
                    value=word,
                    allowed="addresses and networks, such as 10.0.0.7, 10.0.0.0/24, 2001:db8::/64",
                )
        if not _is_true(params, "proxyProtocolEnabled"):
            draft.problems.warning(
                "left-out",
                _origin(each, PROXY_NETWORKS),
                f"acceptor {each.name!r}: {PROXY_NETWORKS} counts only with proxyProtocolEnabled=true",
            )


_ORIGIN: Final = re.compile(r"https?://(\[[0-9a-f:.]+\]|[\w.-]+)(:\d{1,5})?", re.ASCII | re.IGNORECASE)


def _check_origins(draft: Draft, each: AcceptorDraft, params: Mapping[str, str]) -> None:
    """Each is spelled out: with ``*`` any page in the world could use the API."""
    for name in (ALLOWED_ORIGINS, CONSOLE_BROKERS):
        for word in _listed(params, name):
            if not _ORIGIN.fullmatch(word):
                draft.problems.error(
                    _origin(each, name),
                    f"acceptor {each.name!r}: parameter {name} has a wrong value",
                    value=word,
                    allowed="scheme, host and port, without a path and without *, such as https://broker2.example:8161",
                )


# ---- TLS, as far as that is possible without opening a file --------------------------------------

_NO_KEY: Final = "sslEnabled needs keyStorePath: a file with the acceptor's key and certificates"
_NO_TRUST: Final = (
    "{} needs trustStorePath: a file with the certificates of those who issue clients' certificates; the list "
    "that Java would use without it trusts every public authority"
)


def _check_tls(draft: Draft, each: AcceptorDraft, params: Mapping[str, str]) -> str | None:
    """Add what is wrong to the draft's problems. Return why the port must not be opened, or None."""
    if not _is_true(params, "sslEnabled"):
        return None
    _check_versions(draft, each, params)
    _check_suites(draft, each, params)
    _check_names(draft, each, params)
    if not params.get("keyStorePath"):
        kinds = {params.get("keyStoreType", "").upper(), params.get("keyStoreProvider", "").upper()}
        if "PKCS11" in kinds:
            return (
                "this version reads no keys from PKCS#11 devices; put the key into a file and name it by keyStorePath"
            )
        return _NO_KEY
    for name in ("needClientAuth", "wantClientAuth"):
        if _is_true(params, name) and not params.get("trustStorePath"):
            return _NO_TRUST.format(name)
    return None


def _is_true(params: Mapping[str, str], name: str) -> bool:
    return params.get(name, "").lower() == "true"


def _origin(each: AcceptorDraft, name: str) -> Origin:
    return each.param_origins.get(name, each.origin)


def _listed(params: Mapping[str, str], name: str) -> list[str]:
    """The words of a list, without blanks and empty ones."""
    return [word.strip() for word in params.get(name, "").split(",") if word.strip()]


def _check_versions(draft: Draft, each: AcceptorDraft, params: Mapping[str, str]) -> None:
    words, origin = _listed(params, "enabledProtocols"), _origin(each, "enabledProtocols")
    for word in words:
        if word in OLD_VERSIONS:
            draft.problems.warning(
                "left-out", origin, f"acceptor {each.name!r}: {word} is not secure any more and stays off"
            )
        elif word not in TLS_VERSIONS:
            draft.problems.error(
                origin,
                f"acceptor {each.name!r}: enabledProtocols has an unknown protocol",
                value=word,
                allowed=", ".join(TLS_VERSIONS),
                suggestion=nearest(word, TLS_VERSIONS),
            )
    if words and all(word in OLD_VERSIONS for word in words):
        draft.problems.error(
            origin, f"acceptor {each.name!r}: enabledProtocols leaves no protocol", allowed=", ".join(TLS_VERSIONS)
        )


def _check_suites(draft: Draft, each: AcceptorDraft, params: Mapping[str, str]) -> None:
    words, origin = _listed(params, "enabledCipherSuites"), _origin(each, "enabledCipherSuites")
    known = (*OPENSSL_NAMES, *TLS13_SUITES, NO_SUITE)
    for word in words:
        if word not in known:
            draft.problems.error(
                origin,
                f"acceptor {each.name!r}: enabledCipherSuites has an unknown suite",
                value=word,
                allowed="the names that Java uses, such as TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                suggestion=nearest(word, known),
            )
    new = [word for word in words if word in TLS13_SUITES]
    if new and len(new) < len(TLS13_SUITES):
        missing = [word for word in TLS13_SUITES if word not in new]
        draft.problems.note(
            "doubtful-value",
            origin,
            f"acceptor {each.name!r}: the suites of TLS 1.3 can only be enabled together, so {' and '.join(missing)} "
            "can be chosen, too",
        )


def _check_names(draft: Draft, each: AcceptorDraft, params: Mapping[str, str]) -> None:
    if params.get("sniHost"):
        try:
            re.compile(params["sniHost"])
        except re.error as error:
            draft.problems.error(
                _origin(each, "sniHost"),
                f"acceptor {each.name!r}: sniHost is not a regular expression: {error}",
                value=params["sniHost"],
            )


# ---- can anybody log in, and may everybody connect only if that is really meant? -----------------


def _refusal_of(draft: Draft, acceptor: AcceptorConfig, logins: LoginSources) -> str | None:
    """Return why a port must not be opened to its clients, None if it may."""
    if not _is_secured(draft):
        if "security_enabled" in draft.doubtful and not is_loopback(acceptor.host):
            return (
                f"{acceptor.host} is reachable from other machines, and everybody could connect; if that is meant, "
                "write <security-enabled>false</security-enabled>"
            )
        return None
    if acceptor.params.get("securityDomain") and not logins.of_instance:
        return (
            "its securityDomain is a domain of a login.config, and none is known; name one by login-config in the "
            "element authentication, or run the folder of the Artemis instance"
        )
    if not logins.are_known and not is_loopback(acceptor.host):
        return (
            f"{acceptor.host} is reachable from other machines, and there are no users who could log in; make some, "
            "listen on 127.0.0.1, or write <security-enabled>false</security-enabled> if everybody may connect"
        )
    return None


def sources_of(draft: Draft) -> LoginSources:
    """Return every source of users of a draft. Looks whether a users file exists."""
    named = draft.users_file
    if named is None:
        has_files = draft.has_users_beside
    else:
        has_files = bool(named.first_user) or os.path.isfile(relative_to(draft.file, named.users))
    return LoginSources(
        jaas=draft.jaas,
        bootstrap=draft.bootstrap,
        has_files=has_files,
        authenticators=tuple(draft.authenticators),
    )


def _is_secured(draft: Draft) -> bool:
    return bool(draft.core.values.get("security_enabled", True))
