"""Certificates for tests; nobody has signed them but themselves."""

from __future__ import annotations

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_KEY = ec.generate_private_key(ec.SECP256R1())
_LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)

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
    parts = [(each,) if isinstance(each, str) else each for each in rdns]
    subject = x509.Name([x509.RelativeDistinguishedName([_attribute(each) for each in part]) for part in parts])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(x509.Name([_attribute("CN=nobody")]))
    builder = builder.public_key(_KEY.public_key()).serial_number(1)
    builder = builder.not_valid_before(_LONG_AGO).not_valid_after(_LONG_AGO + datetime.timedelta(days=36500))
    return builder.sign(_KEY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def _attribute(text: str) -> x509.NameAttribute[str]:
    keyword, _, value = text.partition("=")
    return x509.NameAttribute(KEYWORDS[keyword], value, _validate=False)
