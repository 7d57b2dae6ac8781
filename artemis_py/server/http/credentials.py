"""Who a request says it is: the header Authorization, with Basic (RFC 7617) or Bearer (RFC 6750)."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import replace
from typing import Final

from artemis_py.security.identity import Credentials

CHALLENGES: Final = (
    ("WWW-Authenticate", 'Basic realm="artemis", charset="UTF-8"'),
    ("WWW-Authenticate", 'Bearer realm="artemis"'),
)
"""The headers of a 401: what a client may answer."""

_SCHEME: Final = re.compile(r"(?P<name>[A-Za-z]+) +(?P<rest>[A-Za-z0-9._~+/-]+=*)")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def credentials_of(authorization: str | None, nobody: Credentials) -> Credentials | None:
    """``nobody`` with the user and password, or the token as the password, of the header's value. Without a header it
    is ``nobody`` itself. None if the header cannot be read.
    """
    if authorization is None:
        return nobody
    found = _SCHEME.fullmatch(authorization.strip())
    if found is None:
        return None
    scheme, given = found["name"].lower(), found["rest"]
    if scheme == "bearer":
        return replace(nobody, password=given)
    return _pair(given, nobody) if scheme == "basic" else None


def _pair(given: str, nobody: Credentials) -> Credentials | None:
    try:
        text = base64.b64decode(given, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    user, colon, password = text.partition(":")
    if not colon or _CONTROL.search(text):
        return None
    return replace(nobody, user=user, password=password)
