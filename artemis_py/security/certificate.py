"""Certificates as far as this broker looks into them: whose they are, who issued them, and until when.

OpenSSL serves and verifies them. It and Java take many that break the rules of X.509 (a NULL behind an algorithm that
has no parameters, a serial number of 0, strings of the last century), so nothing is read here that is not needed.
"""

from __future__ import annotations

import base64
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, final

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
        raise ValueError("it is no certificate")
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
