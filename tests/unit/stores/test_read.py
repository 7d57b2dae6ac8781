"""Key and trust stores of every kind: told apart by their content, and refused with the next step."""

from __future__ import annotations

import random
import shutil
import ssl
import struct
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from artemis_py.security.der import INTEGER, OID, SEQUENCE
from artemis_py.security.jks import read_jks
from artemis_py.security.key_store import StoreError, WantedKey
from artemis_py.server.tls.context import read_store
from tests.kit.certificates import PASSWORD, Authority, Issued
from tests.kit.tls import converted, keytool, needs_keytool, needs_openssl, openssl

ABOVE = Authority("Above")
AUTHORITY = Authority("Between", ABOVE)
OWN = AUTHORITY.issue("broker")


def assert_is(
    path: Path,
    issued: Issued,
    kind: str,
    password: str | None = PASSWORD,
    alias: str | None = None,
    key_password: str | None = None,
) -> None:
    store = read_store(path, password, WantedKey(alias, key_password))
    assert store.format == kind
    assert store.key is not None
    assert [one.der for one in store.key.chain] == [der(one) for one in (issued.certificate, *issued.issuers)]
    store.key.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))  # OpenSSL checks that the key belongs to it
    assert path in store.files


def der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)


def refusal(
    path: Path, password: str | None = PASSWORD, alias: str | None = None, key_password: str | None = None
) -> str:
    with pytest.raises(StoreError) as caught:
        read_store(path, password, WantedKey(alias, key_password))
    assert str(path.parent) in str(caught.value)
    assert PASSWORD not in str(caught.value)
    return str(caught.value)


# ---- PEM -----------------------------------------------------------------------------------------


def test_a_key_and_its_chain_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "broker.pem"
    owners = (Authority("Nobody's"), AUTHORITY, ABOVE, OWN)
    path.write_bytes(b"".join(one.certificate.public_bytes(Encoding.PEM) for one in owners) + OWN.key_pem())
    assert_is(path, OWN, "PEM", None)


def test_bag_attributes_and_an_encrypted_key(tmp_path: Path) -> None:
    path = tmp_path / "broker.pem"
    attributes = (
        b"Bag Attributes\n    friendlyName: broker\n    localKeyID: 54 69 6D 65\nKey Attributes: <No Attributes>\n"
    )
    subject = b"Bag Attributes\n    2.16.840.1.113894.746875.1.1: <Unsupported tag 6>\nsubject=CN = broker\n"
    path.write_bytes(attributes + OWN.key_pem(PASSWORD) + subject + OWN.chain_pem())
    assert_is(path, OWN, "PEM")
    assert "keyStorePassword is missing" in refusal(path, None)
    told = refusal(path, "wrong")
    assert f"{path}: its private key cannot be read: the password is wrong" in told
    assert told.endswith(f"openssl pkey -noout -in {path}"), "a command that shows no key"


def test_pem_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "broker.pem"
    path.write_bytes(OWN.key_pem())
    assert "no certificate of this key" in refusal(path)
    path.write_bytes(OWN.key_pem() + AUTHORITY.issue("other").chain_pem())
    assert "no certificate of this key" in refusal(path)
    path.write_bytes(OWN.key_pem() + AUTHORITY.issue("other").key_pem() + OWN.chain_pem())
    assert "a second private key" in refusal(path)
    path.write_bytes(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    assert "a certificate that cannot be read" in refusal(path)
    path.write_bytes(OWN.key_pem() + OWN.chain_pem()[:-9])
    assert "a -----BEGIN without its -----END, so it may have been cut" in refusal(path)
    path.write_bytes(b"-----BEGIN NOTHING-----\n-----END NOTHING-----\n")
    assert "no key and no certificate" in refusal(path)


def test_pemcfg_names_its_sources(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_bytes(OWN.key_pem())
    (tmp_path / "chain.pem").write_bytes(OWN.chain_pem())
    path = tmp_path / "broker.pemcfg"
    path.write_text(f"# ours\nalias=broker\nsource.key=key.pem\nsource.cert = {tmp_path}/chain.pem\n")
    assert_is(path, OWN, "PEMCFG", None)
    assert read_store(path, None).files == (path, tmp_path / "key.pem", tmp_path / "chain.pem")
    path.write_text("source.key=classpath:key.pem\nsource.cert=classpath:missing.pem\n")
    assert "missing.pem cannot be read: No such file" in refusal(path, None)


def test_a_trust_store_of_pem(tmp_path: Path) -> None:
    path = tmp_path / "trust.pem"
    pems = [one.certificate.public_bytes(Encoding.PEM) for one in (AUTHORITY, ABOVE)]
    path.write_bytes(b"# all of them\n" + b"".join(pems))
    store = read_store(path, None)
    assert store.key is None
    assert [one.der for one in store.trusted] == [der(AUTHORITY.certificate), der(ABOVE.certificate)]


# ---- PKCS12 --------------------------------------------------------------------------------------


def test_pkcs12_made_here(tmp_path: Path) -> None:
    path = OWN.pkcs12(tmp_path / "broker.p12")
    assert_is(path, OWN, "PKCS12")
    assert_is(path, OWN, "PKCS12", alias="BROKER")
    told = refusal(path, "wrong")
    assert "the password is wrong (keyStorePassword), or the file is damaged; try it with: keytool -list" in told
    assert "has no key with the alias 'other', only: broker" in refusal(path, alias="other")
    path.write_bytes(path.read_bytes()[:200])
    assert "not a PKCS12 store" in refusal(path)


# ---- what Java makes -----------------------------------------------------------------------------


@cache
def own_in(kind: str) -> bytes:
    """A store of Java with ``OWN``; converted once, as keytool takes a second."""
    with TemporaryDirectory() as name:
        return converted(OWN.pkcs12(Path(name, "source.p12")), Path(name, "store"), kind).read_bytes()


@needs_keytool
@pytest.mark.parametrize("kind", ["PKCS12", "JKS", "JCEKS"])
def test_keytool_makes_a_key_store(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "broker.store"
    path.write_bytes(own_in(kind))
    assert_is(path, OWN, kind)
    assert_is(path, OWN, kind, alias="Broker")
    assert "has no key with the alias 'x'" in refusal(path, alias="x")
    assert "the password is wrong" in refusal(path, "wrong")


@needs_keytool
@pytest.mark.parametrize("kind", ["PKCS12", "JKS", "JCEKS"])
def test_keytool_makes_a_trust_store(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "trust.store"
    for name, authority in (("one", AUTHORITY), ("two", ABOVE)):
        pem = authority.pem(tmp_path / f"{name}.pem")
        keytool(
            "-importcert", "-noprompt", "-alias", name, "-file", pem, "-keystore", path, "-storetype", kind,
            "-storepass", PASSWORD,
        )  # fmt: skip
    store = read_store(path, PASSWORD)
    assert store.format == kind
    assert store.key is None
    assert {one.der for one in store.trusted} == {der(AUTHORITY.certificate), der(ABOVE.certificate)}


@needs_keytool
@pytest.mark.parametrize("kind", ["JKS", "JCEKS", "PKCS12"])
def test_each_of_several_keys_is_read_by_its_alias(tmp_path: Path, kind: str) -> None:
    other = AUTHORITY.issue("other")
    path = tmp_path / "both.store"
    path.write_bytes(own_in(kind))
    converted(other.pkcs12(tmp_path / "two.p12", "zweiter-schlüssel"), path, kind, "zweiter-schlüssel")
    assert_is(path, OWN, kind, alias="broker")
    assert_is(path, other, kind, alias="Zweiter-Schlüssel")
    assert "has 2 keys (" in refusal(path)
    assert read_store(path, PASSWORD).key is None  # as a trust store it needs no alias


@needs_keytool
@pytest.mark.parametrize("kind", ["JKS", "JCEKS"])
def test_a_key_with_a_password_of_its_own(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "broker.store"
    path.write_bytes(own_in(kind))
    keytool(
        "-keypasswd", "-alias", "broker", "-keystore", path, "-storetype", kind, "-storepass", PASSWORD,
        "-new", "something else",
    )  # fmt: skip
    assert "the key has another password than keyStorePassword; write it as keyPassword" in refusal(path)
    assert "write it as keyPassword, or correct what is there" in refusal(path, key_password="wrong")
    assert_is(path, OWN, kind, key_password="something else")
    assert read_store(path, PASSWORD).key is None  # as a trust store it needs no password of a key


def test_no_wrong_password_opens_the_key_of_a_jceks(tmp_path: Path, rng: random.Random) -> None:
    """With one of 256 wrong passwords, what comes out ends as if it were decrypted."""

    def item(tag: int, content: bytes) -> bytes:
        return bytes((tag, len(content))) + content

    salt_and_rounds = item(SEQUENCE, item(0x04, bytes(8)) + item(INTEGER, b"\1"))
    algorithm = item(SEQUENCE, item(OID, bytes.fromhex("2b060104012a021301")) + salt_and_rounds)
    for _ in range(5000):
        protected = item(SEQUENCE, algorithm + item(0x04, rng.randbytes(40)))
        data = struct.pack(">4sIIIH8xI", b"\xce" * 4, 2, 1, 1, 0, len(protected)) + protected + bytes(4 + 20)
        with pytest.raises(StoreError, match="the key has another password than keyStorePassword"):
            read_jks(tmp_path, data, None, WantedKey(None, "wrong"))


@needs_keytool
def test_a_secret_key_in_a_jceks_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broker.jceks"
    path.write_bytes(own_in("JCEKS"))
    keytool(
        "-genseckey", "-alias", "hidden", "-keyalg", "AES", "-keysize", "128", "-keystore", path, "-storetype", "JCEKS",
        "-storepass", PASSWORD,
    )  # fmt: skip
    told = refusal(path)
    assert "has a secret key (hidden), which only Java can read" in told
    keytool(*told.partition("keytool ")[2].split(), "-storepass", PASSWORD)
    assert_is(path, OWN, "JCEKS")


@needs_openssl
@pytest.mark.parametrize(
    "options",
    [
        ("-legacy",),
        ("-legacy", "-keypbe", "PBE-SHA1-RC4-128", "-certpbe", "PBE-SHA1-RC2-128"),
        ("-legacy", "-keypbe", "PBE-SHA1-2DES", "-certpbe", "PBE-SHA1-RC4-40", "-macalg", "md5"),
        ("-keypbe", "NONE", "-certpbe", "NONE"),
        ("-keypbe", "AES-128-CBC", "-certpbe", "DES-EDE3-CBC", "-macalg", "sha512"),
        ("-keypbe", "AES-192-CBC", "-certpbe", "AES-256-CBC", "-nomac"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_pkcs12_is_encrypted_in_many_ways(tmp_path: Path, options: tuple[str, ...]) -> None:
    source, path = OWN.pem(tmp_path / "source.pem"), tmp_path / "broker.p12"
    made = ("pkcs12", "-export", "-in", source, "-name", "broker", "-out", path, "-passout", f"pass:{PASSWORD}")
    openssl(*made, *options)
    assert_is(path, OWN, "PKCS12")
    assert_is(path, OWN, "PKCS12", alias="broker")
    if "-nomac" not in options and options != ("-keypbe", "NONE", "-certpbe", "NONE"):
        assert "the password is wrong" in refusal(path, "wrong")
        assert "the password is wrong" in refusal(path, None)


@needs_openssl
def test_the_key_of_a_pkcs12_has_a_password_of_its_own(tmp_path: Path) -> None:
    """OpenSSL makes such a store only without a digest of it all."""
    source, path = OWN.pem(tmp_path / "source.pem"), tmp_path / "broker.p12"
    openssl(
        "pkcs12", "-export", "-in", source, "-name", "broker", "-out", path, "-passout", f"pass:{PASSWORD}",
        "-certpbe", "NONE", "-nomac",
    )  # fmt: skip
    for password in (None, "another"):
        for key_password in (None, "wrong"):
            told = refusal(path, password, key_password=key_password)
            assert "the key has another password than keyStorePassword; write it as keyPassword" in told
    assert_is(path, OWN, "PKCS12", "another", key_password=PASSWORD)
    with pytest.raises(StoreError, match=r"the password is wrong \(trustStorePassword\)"):
        read_store(OWN.pkcs12(tmp_path / "trust.p12"), "wrong")


@needs_openssl
def test_pkcs12_without_a_password(tmp_path: Path) -> None:
    source, path = OWN.pem(tmp_path / "source.pem"), tmp_path / "broker.p12"
    openssl("pkcs12", "-export", "-in", source, "-out", path, "-passout", "pass:")
    assert_is(path, OWN, "PKCS12", "")
    assert_is(path, OWN, "PKCS12", None)


@needs_openssl
def test_no_damage_of_a_pkcs12_surprises(tmp_path: Path) -> None:
    source, path = OWN.pem(tmp_path / "source.pem"), tmp_path / "broker.p12"
    openssl("pkcs12", "-export", "-in", source, "-out", path, "-passout", f"pass:{PASSWORD}", "-iter", "1")
    data = path.read_bytes()
    for at in range(0, len(data), 5):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x11]) + data[at + 1 :])
        with suppress(StoreError):
            read_store(path, PASSWORD, WantedKey())
        path.write_bytes(data[:at])
        with suppress(StoreError):
            read_store(path, PASSWORD, WantedKey())


@needs_keytool
def test_every_damage_of_a_jks_is_found(tmp_path: Path) -> None:
    path = tmp_path / "broker.jks"
    path.write_bytes(own_in("JKS"))
    data = path.read_bytes()
    for at in range(4, len(data), 7):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert "the password is wrong (keyStorePassword), or the file is damaged" in refusal(path)
        path.write_bytes(data[:at])
        refusal(path)


# ---- the rest ------------------------------------------------------------------------------------


def test_a_jks_without_a_password_is_only_read_for_its_certificates(tmp_path: Path) -> None:
    content = der(AUTHORITY.certificate)
    entry = struct.pack(">IH2sQ", 2, 2, b"ca", 0) + struct.pack(">H5sI", 5, b"X.509", len(content)) + content
    path = tmp_path / "trust.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed" + struct.pack(">II", 2, 1) + entry + bytes(20))
    assert [one.der for one in read_store(path, None).trusted] == [der(AUTHORITY.certificate)]


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00" * 100, b"source of nothing\n", b"a=b\n"])
def test_other_files_are_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "something"
    path.write_bytes(content)
    assert "is not a key or trust store: it is not PEM, PEMCFG" in refusal(path)


def test_a_missing_file(tmp_path: Path) -> None:
    assert "cannot be read: No such file or directory" in refusal(tmp_path / "missing")


def test_the_keys_of_a_real_java() -> None:
    """The list of public authorities that comes with each JDK."""
    java = shutil.which("java")
    found = Path(java).resolve().parent.parent / "lib/security/cacerts" if java else Path("none")
    if not found.exists():
        pytest.skip("there is no Java with a file cacerts on this machine")
    store = read_store(found, "changeit")
    assert store.key is None
    assert len(store.trusted) > 50
