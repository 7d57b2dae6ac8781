"""Distinguished names: the text that Java makes of a certificate's subject, and names in files that mean the same.

Java writes the most specific part first, with ``", "`` between parts, its own keywords, and quotes around a value with
special characters (``X500Name.toString``). Files also have ``","``, lower-case keywords, and escapes instead of quotes;
so names are compared by their parts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from artemis_py.security.certificate import certificate_of

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.4": "SURNAME",
    "2.5.4.5": "SERIALNUMBER",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.12": "T",
    "2.5.4.42": "GIVENNAME",
    "2.5.4.43": "INITIALS",
    "2.5.4.44": "GENERATION",
    "2.5.4.46": "DNQ",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
    "1.2.840.113549.1.9.1": "EMAILADDRESS",
    "1.3.6.1.4.1.42.2.11.2.1": "IP",
}
_ALIASES: Final = {"S": "ST", "EMAIL": "EMAILADDRESS", "E": "EMAILADDRESS", "DNQUALIFIER": "DNQ"}
_SPECIAL: Final = re.compile(r'[,+=\n<>#;\\"]|^ |  | $')
_PART: Final = re.compile(
    r'[ \n]*(?:OID\.)?([a-z][a-z0-9]*|[0-9]+(?:\.[0-9]+)*)[ \n]*=[ \n]*("(?:[^"\\]|\\.)*"|(?:[^,;+"\\]|\\.)*)[ \n]*'
    r"([,;+]|\Z)",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_ESCAPED: Final = re.compile(r"((?:\\[0-9A-Fa-f]{2})+)|\\(.)", re.DOTALL)
_REMEMBERED: Final = 1000

Parts = tuple[tuple[str, str], ...]


class SubjectName(NamedTuple):
    """A name as Java writes it, and its parts for comparison."""

    text: str
    parts: Parts


@lru_cache(_REMEMBERED)
def subject_of(certificate: bytes) -> SubjectName:
    """Return the subject of a certificate in DER. Raises ValueError if that cannot be read."""
    texts: list[str] = []
    parts: list[tuple[str, str]] = []
    for rdn in reversed(certificate_of(certificate).subject):
        pairs = [(_keyword(oid), value) for oid, value in rdn]
        texts.append(" + ".join(f"{keyword}={_quoted(value)}" for keyword, value in pairs))
        for place, (keyword, value) in enumerate(pairs):
            parts.append((("+" if place else "") + keyword.removeprefix("OID."), value))
    return SubjectName(", ".join(texts), tuple(parts))


def parts_of(text: str) -> Parts | None:
    """Return the parts of a name in the order of the text, None if it is no name. The keyword of a part that belongs to
    the one before begins with ``+``.
    """
    parts: list[tuple[str, str]] = []
    place, joined = 0, ""
    while True:
        found = _PART.match(text, place)
        if found is None:
            return None
        keyword = found[1].upper()
        parts.append((joined + _KEYWORDS.get(keyword, _ALIASES.get(keyword, keyword)), _plain(found[2])))
        if not found[3]:
            return tuple(parts)
        place, joined = found.end(), "+" if found[3] == "+" else ""


def _keyword(oid: str) -> str:
    return _KEYWORDS.get(oid) or f"OID.{oid}"


def _quoted(value: str) -> str:
    if not _SPECIAL.search(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _plain(value: str) -> str:
    if value.startswith('"'):
        value = value[1:-1]
    elif not value.endswith("\\ "):
        value = value.rstrip(" \n")
    return _ESCAPED.sub(_unescaped, value)


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        return bytes.fromhex(found[1].replace("\\", "")).decode("utf-8", "replace")
    return found[2]
