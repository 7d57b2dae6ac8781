"""Certificates as far as this broker looks into them: whose they are, who issued them, and until when; and names: the
text that Java makes of a certificate's subject, and names in files that mean the same.

OpenSSL serves and verifies them. It and Java take many that break the rules of X.509 (a NULL behind an algorithm that
has no parameters, a serial number of 0, strings of the last century), so nothing is read here that is not needed.
"""

from __future__ import annotations

import base64
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple, final

from artemis_py.security.der import INTEGER, SEQUENCE, Item, read_item, sequence

_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERAL_TIME: Final = 0x18
TIMES: Final = (_UTC_TIME, _GENERAL_TIME)
_TIME: Final = re.compile(
    r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)?(?:[.,]\d+)?"
    r"(?:Z|(?P<sign>[+-])(?P<hours>\d\d)(?P<minutes>\d\d))?",
    re.ASCII,
)
_ENCODINGS: Final = {
    0x0C: "utf-8",
    0x12: "ascii",
    0x13: "ascii",
    0x14: "latin-1",  # what T61 means is a matter of taste; Java reads it so
    0x16: "ascii",
    0x1A: "ascii",
    0x1B: "ascii",
    0x1E: "utf-16-be",
}
_LINE_LENGTH: Final = 64

Name = tuple[tuple[tuple[str, str], ...], ...]
"""A distinguished name in the order of the certificate: parts, each of one or more pairs of an object identifier and a
text. A value that is no text is ``#`` and its DER in hexadecimal digits, as Java writes it.
"""


@final
@dataclass(frozen=True, slots=True)
class Certificate:
    """``begins_s`` and ``expires_s`` are dates in seconds since 1970; ``key`` is its SubjectPublicKeyInfo."""

    der: bytes
    subject: Name
    issuer: Name
    begins_s: float
    expires_s: float
    key: bytes

    @property
    def pem(self) -> bytes:
        """The certificate as PEM."""
        return pem_of("CERTIFICATE", self.der)


def certificate_of(data: bytes) -> Certificate:
    """Read a certificate in DER; what follows it does not count. Raises ValueError."""
    whole = read_item(data)
    fields = sequence(sequence(whole, 3)[0], 6)
    if fields[0].tag == _VERSION:
        del fields[0]
    if len(fields) < 6 or fields[0].tag != INTEGER or fields[5].tag != SEQUENCE:
        raise ValueError("it is not a certificate")
    _, _, issuer, validity, subject, key = fields[:6]
    begins, expires = sequence(validity, 2)[:2]
    return Certificate(whole.whole, _name(subject), _name(issuer), seconds_of(begins), seconds_of(expires), key.whole)


def seconds_of(time: Item) -> float:
    """Return a UTCTime or GeneralizedTime in seconds since 1970, without fractions. Raises ValueError."""
    text = time.content.decode("ascii", "replace")
    if time.tag == _UTC_TIME:
        text = ("19" if text >= "50" else "20") + text
    found = _TIME.fullmatch(text) if time.tag in TIMES else None
    if found is None:
        raise ValueError("it has a date that cannot be read")
    numbers = [int(found[part]) for part in ("month", "day", "hour", "minute")]
    date = datetime(int(found["year"]), *numbers, int(found["second"] or 0), tzinfo=UTC)  # type: ignore[misc, arg-type]
    seconds = date.timestamp()
    if found["sign"]:
        apart = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"])).total_seconds()
        seconds -= apart if found["sign"] == "+" else -apart
    return seconds


def pem_of(label: str, data: bytes) -> bytes:
    """Return DER as a block of PEM."""
    text = base64.b64encode(data).decode("ascii")
    lines = [text[at : at + _LINE_LENGTH] for at in range(0, len(text), _LINE_LENGTH)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", "")).encode("ascii")


def der_of(block: bytes) -> bytes:
    """Return what is between the first and last line of a block of PEM. Raises ValueError."""
    return base64.b64decode(b"".join(block.split(b"-----")[2].split()))


def chain_from(own: Certificate, others: tuple[Certificate, ...]) -> tuple[Certificate, ...]:
    """Return ``own`` and those of ``others`` that issued it, up to one that issued itself or is missing: the order in
    which TLS sends them.
    """
    by_subject = {_compared(each.subject): each for each in others}
    chain = [own]
    while _compared(chain[-1].issuer) != _compared(chain[-1].subject):
        issuer = by_subject.pop(_compared(chain[-1].issuer), None)
        if issuer is None:
            break
        chain.append(issuer)
    return tuple(chain)


def _name(item: Item) -> Name:
    return tuple(tuple(map(_pair, rdn.items)) for rdn in item.items)


def _pair(item: Item) -> tuple[str, str]:
    kind, value = sequence(item, 2)[:2]
    encoding = _ENCODINGS.get(value.tag)
    if encoding is not None:
        with suppress(UnicodeDecodeError):
            return kind.oid, value.content.decode(encoding)
    return kind.oid, f"#{value.whole.hex()}"


def _compared(name: Name) -> Name:
    """Names are equal whatever their case, blanks and kinds of strings (RFC 5280, 7.1), as for OpenSSL."""
    return tuple(tuple((kind, " ".join(value.casefold().split())) for kind, value in rdn) for rdn in name)


# ---- names ---------------------------------------------------------------------------------------
#
# Java writes the most specific part first, with ``", "`` between parts, its own keywords, and quotes around a value
# with special characters (``X500Name.toString``). Files also have ``","``, lower-case keywords, and escapes instead of
# quotes; so names are compared by their parts.

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
