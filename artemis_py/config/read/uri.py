"""Parses the URI of an acceptor as liberally as Artemis does.

All blanks are removed, ``;`` means ``&``, and only the first URI of ``(a,b)?c`` is used. Names and values of parameters
are decoded twice (as part of a URI, then as part of a form). If a parameter is given twice, the last value counts.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote, unquote_plus

from artemis_py.config.draft import AcceptorDraft
from artemis_py.config.tables.entities import Origin

SCHEMES: Final = ("tcp", "vm")

_URI: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:[^/?#@]*@)?(?P<host>\[[0-9A-Fa-f:.%]*\]|[^/?#:\[\]]*)"
    r"(?::(?P<port>[^/?#]*))?(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?(?:#.*)?"
)
_LEGAL: Final = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2}|[^\x00-\x7f])*")
_BLANKS: Final = re.compile(r"\s+")
_GROUP: Final = re.compile(r"\(([^,()]*)[^()]*\)(\?.*)?")

_EXAMPLE: Final = "tcp://host:port?parameter=value"


class UriError(Exception):
    """A text is not the URI of an acceptor."""

    def __init__(self, message: str, allowed: str = _EXAMPLE) -> None:
        super().__init__(message)
        self.allowed = allowed


def parse_acceptor(name: str | None, text: str, origin: Origin) -> AcceptorDraft:
    """Return the parts of an acceptor. Raises UriError."""
    compact = _BLANKS.sub("", text).replace(";", "&")
    group = _GROUP.fullmatch(compact)
    if group is not None:
        compact = group[1] + (group[2] or "")
    if not compact:
        raise UriError("the URI is empty")
    found = _URI.fullmatch(compact) if _LEGAL.fullmatch(compact) else None
    if found is None:
        raise UriError("this is not a URI")
    scheme = found["scheme"]
    if scheme not in SCHEMES:
        raise UriError(f"unknown scheme {scheme!r}")
    host = found["host"].removeprefix("[").removesuffix("]")
    if scheme == "vm":
        return AcceptorDraft(name or f"vm://{host}", origin, scheme, host, 0)
    if not host:
        raise UriError("the host is missing")
    port = _port(found["port"])
    params = parse_query(found["query"] or "")
    acceptor = AcceptorDraft(name or f"tcp://{found['host']}:{port}", origin, scheme, host, port, params)
    acceptor.param_origins = dict.fromkeys(params, origin)
    return acceptor


def _port(text: str | None) -> int:
    if not text:
        raise UriError("the port is missing")
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise UriError(f"wrong port {text}", "a port from 0 to 65535 (0: any free one)")
    return int(text)


def parse_query(query: str) -> dict[str, str]:
    """Return the parameters of a query that is not yet decoded; a parameter without ``=`` has an empty value."""
    params: dict[str, str] = {}
    for part in unquote(query).split("&"):
        key, _, value = part.partition("=")
        if key:
            params[unquote_plus(key)] = unquote_plus(value)
    return params
