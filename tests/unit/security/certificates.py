"""Certificates with any names for tests."""

from __future__ import annotations

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tests.kit.certificates import Authority

_AUTHORITY = Authority()

KEYWORDS = {
    "C": NameOID.COUNTRY_NAME,
    "ST": NameOID.STATE_OR_PROVINCE_NAME,
    "L": NameOID.LOCALITY_NAME,
    "O": NameOID.ORGANIZATION_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "CN": NameOID.COMMON_NAME,
    "UID": NameOID.USER_ID,
    "DC": NameOID.DOMAIN_COMPONENT,
    "T": NameOID.TITLE,
    "EMAILADDRESS": NameOID.EMAIL_ADDRESS,
    "SERIALNUMBER": NameOID.SERIAL_NUMBER,
    "DNQ": NameOID.DN_QUALIFIER,
    "OID.2.5.4.65": NameOID.PSEUDONYM,
}


def certificate(*rdns: str | tuple[str, ...]) -> bytes:
    """A certificate in DER; each RDN is ``CN=…``, several in one are a tuple. The least specific comes first."""
    parts = [[text.partition("=") for text in ([each] if isinstance(each, str) else each)] for each in rdns]
    attributes = [
        [x509.NameAttribute(KEYWORDS[word], value, _validate=False) for word, _, value in part] for part in parts
    ]
    subject = x509.Name([x509.RelativeDistinguishedName(part) for part in attributes])
    return _AUTHORITY.issue(subject).certificate.public_bytes(Encoding.DER)
