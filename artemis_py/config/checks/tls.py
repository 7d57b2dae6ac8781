"""Checks the TLS parameters of an acceptor, as far as that is possible without opening a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from artemis_py.config.draft import AcceptorDraft, Draft
from artemis_py.config.problems import nearest
from artemis_py.config.tables.entities import Origin
from artemis_py.config.tables.tls import NO_SUITE, OLD_VERSIONS, OPENSSL_NAMES, TLS13_SUITES, TLS_VERSIONS

_NO_KEY: Final = "sslEnabled needs keyStorePath: a file with the acceptor's key and certificates"
_NO_TRUST: Final = (
    "{} needs trustStorePath: a file with the certificates of those who issue clients' certificates; the list "
    "that Java would use without it trusts every public authority"
)


def check_tls(draft: Draft, each: AcceptorDraft, params: Mapping[str, str]) -> str | None:
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


def listed(params: Mapping[str, str], name: str) -> list[str]:
    """The words of a list, without blanks and empty ones."""
    return [word.strip() for word in params.get(name, "").split(",") if word.strip()]


def _check_versions(draft: Draft, each: AcceptorDraft, params: Mapping[str, str]) -> None:
    words, origin = listed(params, "enabledProtocols"), _origin(each, "enabledProtocols")
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
    words, origin = listed(params, "enabledCipherSuites"), _origin(each, "enabledCipherSuites")
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
