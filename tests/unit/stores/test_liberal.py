"""Certificates that break the rules of X.509, and that OpenSSL serves: from every kind of store, and as clients'."""

from __future__ import annotations

import hashlib
import hmac
import ssl
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509 import load_der_x509_certificate

from artemis_py.config.reader import load
from artemis_py.security.certificate import certificate_of, der_of, pem_of, subject_of
from artemis_py.security.der import INTEGER, SEQUENCE, items_in, read_item, sequence
from artemis_py.security.key_store import StoreError, WantedKey
from artemis_py.server.tls.context import Loaded, TlsFiles, read_store
from tests.kit.certificates import PASSWORD, Authority
from tests.kit.process import configuration
from tests.kit.tls import needs_openssl, openssl, uri

KEY = ec.generate_private_key(ec.SECP256R1())
RSA_KEY = rsa.generate_private_key(65537, 2048)
PKCS8 = KEY.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
SPKI = KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
RSA_SPKI = RSA_KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def encoded(tag: int, content: bytes) -> bytes:
    """A value with its tag and length."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


OCTETS = 0x04
NULL = encoded(0x05, b"")
ECDSA_SHA256 = bytes.fromhex("06082a8648ce3d040302")
ECDSA_SHA1 = bytes.fromhex("06072a8648ce3d0401")
RSA_SHA256 = bytes.fromhex("06092a864886f70d01010b")
CN = bytes.fromhex("0603550403")


def name(text: bytes = b"broker", tag: int = 0x0C) -> bytes:
    return encoded(SEQUENCE, encoded(0x31, encoded(SEQUENCE, CN + encoded(tag, text))))


def certificate(
    *,
    algorithm: bytes = ECDSA_SHA256,
    serial: bytes = b"\x05",
    subject: bytes = name(),
    issuer: bytes | None = None,
    begins: bytes = encoded(0x17, b"240101000000Z"),
    expires: bytes = encoded(0x18, b"20900101000000Z"),
    version: bytes = encoded(0xA0, encoded(INTEGER, b"\x02")),
    extensions: bytes = b"",
) -> bytes:
    """A certificate of the key, signed by itself, in DER."""
    of_rsa = algorithm.startswith(RSA_SHA256)
    identifier = encoded(SEQUENCE, algorithm)
    validity, spki = encoded(SEQUENCE, begins + expires), RSA_SPKI if of_rsa else SPKI
    issuer = subject if issuer is None else issuer
    fields = version + encoded(INTEGER, serial) + identifier + issuer + validity + subject + spki
    if extensions:
        fields += encoded(0xA3, encoded(SEQUENCE, extensions))
    tbs = encoded(SEQUENCE, fields)
    digest: hashes.HashAlgorithm = hashes.SHA1() if algorithm.startswith(ECDSA_SHA1) else hashes.SHA256()
    signature = RSA_KEY.sign(tbs, padding.PKCS1v15(), digest) if of_rsa else KEY.sign(tbs, ec.ECDSA(digest))
    return encoded(SEQUENCE, tbs + identifier + encoded(0x03, b"\0" + signature))


ODD = {
    "NULL behind ECDSA": certificate(algorithm=ECDSA_SHA256 + NULL),
    "no NULL behind RSA": certificate(algorithm=RSA_SHA256),
    "a negative serial number": certificate(serial=b"\x80\x01"),
    "serial number 0": certificate(serial=b"\x00"),
    "a long serial number": certificate(serial=b"\x01" * 30),
    "SHA-1, signed by itself": certificate(algorithm=ECDSA_SHA1),
    "version 1": certificate(version=b""),
    "version 1, said": certificate(version=encoded(0xA0, encoded(INTEGER, b"\0"))),
    "a GeneralizedTime that should be UTCTime": certificate(begins=encoded(0x18, b"20240101000000Z")),
    "T61": certificate(subject=name("Müller".encode("latin-1"), 0x14)),
    "BMP": certificate(subject=name("Müller".encode("utf-16-be"), 0x1E)),
    "a string of forbidden letters": certificate(subject=name(b"a*b@c", 0x13)),
    "an empty name": certificate(subject=encoded(SEQUENCE, b"")),
}

CONSTRAINTS = encoded(SEQUENCE, bytes.fromhex("0603551d13") + encoded(OCTETS, encoded(SEQUENCE, b"")))

TOO_ODD = {
    "an extension twice": certificate(extensions=CONSTRAINTS * 2),
    "a serial number with zeros in front": certificate(serial=b"\0\0\x05"),
    "Latin-1 in UTF-8": certificate(subject=name("Müller".encode("latin-1"))),
    "a number for a name": certificate(subject=name(b"\x05", INTEGER)),
}
"""What OpenSSL itself does not read."""


def key_of(certificate: bytes) -> bytes:
    key = RSA_KEY if certificate_of(certificate).key == RSA_SPKI else KEY
    return key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def loaded(folder: Path, **params: object) -> Loaded:
    """What a start makes of an acceptor's files."""
    file = folder / "broker.xml"
    file.write_text(configuration({"secure": uri("STOMP", **params)}))
    config = load(file, environ={})
    return TlsFiles(config, config.acceptors[0]).load()


def served(context: ssl.SSLContext) -> bytes:
    """The certificate that a client gets in a handshake."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    asks = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asks.check_hostname, asks.verify_mode = False, ssl.CERT_NONE
    client = asks.wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    found = client.getpeercert(binary_form=True)
    assert found is not None
    return found


@pytest.mark.parametrize("odd", ODD)
def test_what_openssl_serves_is_served_from_pem(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "broker.pem"
    path.write_bytes(pem_of("PRIVATE KEY", key_of(ODD[odd])) + pem_of("CERTIFICATE", ODD[odd]))
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path)  # OpenSSL by itself
    found = loaded(tmp_path, keyStorePath=path, trustStorePath=path, wantClientAuth="true")
    assert served(found.context) == ODD[odd]
    assert found.expires_s == 3786912000
    assert found.complaint(1e9) is not None
    assert found.complaint(2e9) is None


def jks(path: Path, certificate: bytes, key_password: str = PASSWORD) -> Path:
    """A store of Java with the key, and the certificate as a trusted one, too."""
    secret, salt = key_password.encode("utf-16-be"), b"s" * 20
    plain, stream, block = key_of(certificate), b"", salt
    while len(stream) < len(plain):
        block = hashlib.sha1(secret + block).digest()
        stream += block
    cipher = bytes(one ^ other for one, other in zip(plain, stream, strict=False))
    identifier = encoded(SEQUENCE, bytes.fromhex("060a2b060104012a02110101") + NULL)
    value = encoded(OCTETS, salt + cipher + hashlib.sha1(secret + plain).digest())
    protected = encoded(SEQUENCE, identifier + value)
    x509 = struct.pack(">H5sI", 5, b"X.509", len(certificate)) + certificate
    key = struct.pack(">IH6sQI", 1, 6, b"broker", 0, len(protected)) + protected + struct.pack(">I", 1) + x509
    trusted = struct.pack(">IH2sQ", 2, 2, b"ca", 0) + x509
    content = b"\xfe\xed\xfe\xed" + struct.pack(">II", 2, 2) + key + trusted
    path.write_bytes(content + hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content).digest())
    return path


@pytest.mark.parametrize("odd", ODD)
def test_and_from_jks(tmp_path: Path, odd: str) -> None:
    path = jks(tmp_path / "broker.jks", ODD[odd])
    own = {"keyStorePath": path, "keyStorePassword": PASSWORD}
    found = loaded(tmp_path, **own, trustStorePath=path, trustStorePassword=PASSWORD, needClientAuth="true")
    assert [each.der for each in read_store(path, PASSWORD).trusted] == [ODD[odd]]
    assert found.context.cert_store_stats()["x509"] == 1


def test_the_key_has_a_password_of_its_own(tmp_path: Path) -> None:
    path = jks(tmp_path / "broker.jks", ODD["T61"], "another one")
    own = {"keyStorePath": path, "keyStorePassword": PASSWORD}
    for wrong in (own, {**own, "keyPassword": "wrong"}):
        with pytest.raises(StoreError, match="the key has another password than keyStorePassword") as caught:
            loaded(tmp_path, **wrong)
        assert PASSWORD not in str(caught.value)
    assert served(loaded(tmp_path, **own, keyPassword="another one").context) == ODD["T61"]
    with pytest.raises(StoreError, match="keyPassword: the masked password does not belong to this key"):
        loaded(tmp_path, **own, keyPassword="ENC(00)")


@needs_openssl
@pytest.mark.parametrize("odd", ODD)
def test_and_from_pkcs12(tmp_path: Path, odd: str) -> None:
    source, path = tmp_path / "source.pem", tmp_path / "broker.p12"
    source.write_bytes(pem_of("PRIVATE KEY", key_of(ODD[odd])) + pem_of("CERTIFICATE", ODD[odd]))
    openssl("pkcs12", "-export", "-legacy", "-in", source, "-out", path, "-passout", f"pass:{PASSWORD}")
    assert served(loaded(tmp_path, keyStorePath=path, keyStorePassword=PASSWORD).context) == ODD[odd]


def test_a_certificate_of_openssl_with_trust_settings(tmp_path: Path) -> None:
    path, odd = tmp_path / "broker.pem", ODD["NULL behind ECDSA"]
    settings = encoded(SEQUENCE, encoded(0x0C, b"an alias"))
    path.write_bytes(pem_of("TRUSTED CERTIFICATE", odd + settings) + pem_of("PRIVATE KEY", PKCS8))
    assert served(loaded(tmp_path, keyStorePath=path).context) == odd


def test_the_chain_is_found_by_names_in_other_kinds_of_strings(tmp_path: Path) -> None:
    above = certificate(subject=name(b"Above  Me", 0x13))
    own = certificate(issuer=name("above me".encode("utf-16-be"), 0x1E))
    other = certificate(subject=name(b"else"))
    path = tmp_path / "broker.pem"
    path.write_bytes(
        b"".join(pem_of("CERTIFICATE", each) for each in (own, other, above)) + pem_of("PRIVATE KEY", PKCS8)
    )
    found = read_store(path, None, WantedKey()).key
    assert found is not None
    assert [each.der for each in found.chain] == [own, above]


@pytest.mark.parametrize("odd", TOO_ODD)
def test_what_openssl_does_not_read_is_refused_with_the_next_step(tmp_path: Path, odd: str) -> None:
    pem, store = tmp_path / "broker.pem", jks(tmp_path / "broker.jks", TOO_ODD[odd])
    pem.write_bytes(pem_of("PRIVATE KEY", PKCS8) + pem_of("CERTIFICATE", TOO_ODD[odd]))
    p12, pemcfg, key, own = (tmp_path / one for one in ("broker.p12", "broker.pemcfg", "key.pem", "own.pem"))
    p12.write_bytes(pkcs12(pkcs12_content(TOO_ODD[odd])))
    key.write_bytes(pem_of("PRIVATE KEY", PKCS8))
    own.write_bytes(pem_of("CERTIFICATE", TOO_ODD[odd]))
    pemcfg.write_text("source.key=key.pem\nsource.own=own.pem\n")
    commands = {
        pem: f"openssl x509 -noout -text -in {pem}",
        store: f"keytool -list -v -keystore {store}",
        p12: f"openssl pkcs12 -info -nokeys -in {p12}",
        pemcfg: f"openssl x509 -noout -text -in {key} and openssl x509 -noout -text -in {own}",
    }
    for path, command in commands.items():
        wanted = r"OpenSSL (cannot read|does not accept) the certificate of .*; "
        with pytest.raises(StoreError, match=wanted) as caught:
            loaded(tmp_path, keyStorePath=path, keyStorePassword=PASSWORD)
        assert "private key" not in str(caught.value)
        is_refused = odd == "an extension twice"
        assert ("does not accept" in str(caught.value)) == is_refused
        assert is_refused or str(caught.value).endswith(f"see what it says: {command}")


@pytest.mark.parametrize(
    ("odd", "text"),
    [
        ("NULL behind ECDSA", "CN=broker"),
        ("T61", "CN=Müller"),
        ("BMP", "CN=Müller"),
        ("Latin-1 in UTF-8", 'CN="#0c064dfc6c6c6572"'),
        ("a number for a name", 'CN="#020105"'),
        ("an empty name", ""),
    ],
)
def test_whose_a_clients_certificate_is(odd: str, text: str) -> None:
    assert subject_of((ODD | TOO_ODD)[odd]).text == text


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        (encoded(0x17, b"700101000001Z"), 1),
        (encoded(0x17, b"7001010001Z"), 60),
        (encoded(0x17, b"700101000001+0000"), 1),
        (encoded(0x17, b"700101010000+0100"), 0),
        (encoded(0x18, b"19700101000001.5Z"), 1),
        (encoded(0x18, b"19700101000000-0030"), 1800),
        (encoded(0x18, b"99991231235959Z"), 253402300799),
    ],
)
def test_dates_in_other_forms(time: bytes, seconds: int) -> None:
    assert certificate_of(certificate(begins=time)).begins_s == seconds


@pytest.mark.parametrize("time", [b"\x17\x02xx", encoded(0x17, b"241301000000Z"), encoded(0x04, b"240101000000Z")])
def test_what_is_no_date_is_refused(tmp_path: Path, time: bytes) -> None:
    path = tmp_path / "broker.pem"
    path.write_bytes(pem_of("CERTIFICATE", certificate(begins=time)))
    with pytest.raises(StoreError, match="has a certificate that cannot be read"):
        read_store(path, None)


def test_a_list_of_revoked_certificates_with_a_null(tmp_path: Path) -> None:
    authority = Authority()
    issued = authority.issue("broker")
    issued.pem(tmp_path / "broker.pem")
    content = read_item(der_of(authority.revoke(tmp_path / "revoked.pem", issued).read_bytes()))
    tbs, _, _ = sequence(content, 3)
    identifier = encoded(SEQUENCE, ECDSA_SHA256 + NULL)
    fields = [identifier if each.whole == encoded(SEQUENCE, ECDSA_SHA256) else each.whole for each in tbs.items]
    odd = encoded(SEQUENCE, b"".join(fields))
    signature = authority.key.sign(odd, ec.ECDSA(hashes.SHA256()))
    odd = encoded(SEQUENCE, odd + identifier + encoded(0x03, b"\0" + signature))
    for data in (odd, pem_of("X509 CRL", odd)):
        (tmp_path / "revoked.pem").write_bytes(data)
        own = {"keyStorePath": tmp_path / "broker.pem", "trustStorePath": authority.pem(tmp_path / "trust.pem")}
        found = loaded(tmp_path, **own, needClientAuth="true", crlPath=tmp_path / "revoked.pem")
        assert found.context.cert_store_stats()["crl"] == 1


OIDS = {each: bytes.fromhex(text) for each, text in {
    "data": "06092a864886f70d010701", "key": "060b2a864886f70d010c0a0101", "cert": "060b2a864886f70d010c0a0103",
    "x509": "060a2a864886f70d01091601", "pbmac1": "06092a864886f70d01050e", "pbkdf2": "06092a864886f70d01050c",
    "hmac": "06082a864886f70d0209",
}.items()}  # fmt: skip


def pkcs12_content(certificate: bytes) -> bytes:
    """What a digest protects in a store with the key and this certificate."""
    key = encoded(SEQUENCE, OIDS["key"] + encoded(0xA0, PKCS8))
    inside = encoded(SEQUENCE, OIDS["x509"] + encoded(0xA0, encoded(OCTETS, certificate)))
    bags = encoded(SEQUENCE, key + encoded(SEQUENCE, OIDS["cert"] + encoded(0xA0, inside)))
    return encoded(SEQUENCE, encoded(SEQUENCE, OIDS["data"] + encoded(0xA0, encoded(OCTETS, bags))))


def pkcs12(content: bytes, mac: bytes = b"") -> bytes:
    safe = encoded(SEQUENCE, OIDS["data"] + encoded(0xA0, encoded(OCTETS, content)))
    return encoded(SEQUENCE, encoded(INTEGER, b"\3") + safe + mac)


def test_a_store_with_the_digest_of_rfc_9579(tmp_path: Path) -> None:
    """Java makes such stores from version 26 on, OpenSSL from version 3.4."""
    odd = ODD["NULL behind ECDSA"]
    content = pkcs12_content(odd)
    code = encoded(SEQUENCE, OIDS["hmac"] + NULL)
    numbers = encoded(OCTETS, b"salt" * 4) + encoded(INTEGER, b"\x10\0") + encoded(INTEGER, b"\x20") + code
    made = encoded(SEQUENCE, OIDS["pbkdf2"] + encoded(SEQUENCE, numbers))
    secret = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), b"salt" * 4, 4096, 32)
    digest = encoded(OCTETS, hmac.digest(secret, content, "sha256"))
    identifier = encoded(SEQUENCE, OIDS["pbmac1"] + encoded(SEQUENCE, made + code))
    mac = encoded(SEQUENCE, encoded(SEQUENCE, identifier + digest) + encoded(OCTETS, b"unused"))
    path = tmp_path / "broker.p12"
    path.write_bytes(pkcs12(content, mac))
    assert served(loaded(tmp_path, keyStorePath=path, keyStorePassword=PASSWORD).context) == odd
    with pytest.raises(StoreError, match="the password is wrong"):
        read_store(path, "wrong")


def test_lengths_and_strings_of_ber() -> None:
    whole = b"\x24\x80" + encoded(OCTETS, b"two ") + b"\x04\x81\x05parts" + b"\0\0"
    assert read_item(whole + b"more").octets == b"two parts"
    assert [each.whole for each in items_in(whole + NULL)] == [whole, NULL]


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x05", b"\x30\x80", b"\x30\x85\1\1\1\1\1", b"\x30\x80" * 40])
def test_what_is_no_der(data: bytes) -> None:
    with pytest.raises(ValueError, match="it "):
        read_item(data)


def test_the_stricter_parser_would_refuse_it() -> None:
    """Else these tests prove nothing."""
    refused: Callable[[bytes], object] = load_der_x509_certificate
    with pytest.raises(ValueError, match="parsing"):
        refused(ODD["NULL behind ECDSA"])
