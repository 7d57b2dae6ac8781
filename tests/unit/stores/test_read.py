"""Key and trust stores of every kind: told apart by their content, and refused with the next step."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from artemis_py.security.stores.read import read_store
from artemis_py.security.stores.store import StoreError
from tests.certificates import PASSWORD, Authority, Issued
from tests.e2e.tls import converted, keytool, needs_keytool

ABOVE = Authority("Above")
AUTHORITY = Authority("Between", ABOVE)
OWN = AUTHORITY.issue("broker")


def assert_is(path: Path, issued: Issued, kind: str, password: str | None = PASSWORD, alias: str | None = None) -> None:
    store = read_store(path, password, alias)
    assert store.format == kind
    assert store.key is not None
    assert store.key.chain == (issued.certificate, *issued.issuers)
    assert store.key.key.public_key() == issued.key.public_key()
    assert path in store.files


def refusal(path: Path, password: str | None = PASSWORD, alias: str | None = None) -> str:
    with pytest.raises(StoreError) as caught:
        read_store(path, password, alias)
    assert str(path.parent) in str(caught.value)
    assert PASSWORD not in str(caught.value)
    return str(caught.value)


# ---- PEM -----------------------------------------------------------------------------------------


def test_a_key_and_its_chain_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "broker.pem"
    others = b"".join(issued_pem(one) for one in (Authority("Nobody's"), AUTHORITY, ABOVE))
    path.write_bytes(others + issued_pem(OWN) + OWN.key_pem())
    assert_is(path, OWN, "PEM", None)


def issued_pem(owner: Issued | Authority) -> bytes:
    return owner.certificate.public_bytes(Encoding.PEM)


def test_bag_attributes_and_an_encrypted_key(tmp_path: Path) -> None:
    path = tmp_path / "broker.pem"
    attributes = (
        b"Bag Attributes\n    friendlyName: broker\n    localKeyID: 54 69 6D 65\nKey Attributes: <No Attributes>\n"
    )
    subject = b"Bag Attributes\n    2.16.840.1.113894.746875.1.1: <Unsupported tag 6>\nsubject=CN = broker\n"
    path.write_bytes(attributes + OWN.key_pem(PASSWORD) + subject + OWN.chain_pem())
    assert_is(path, OWN, "PEM")
    assert "keyStorePassword is missing" in refusal(path, None)
    assert "the password is wrong" in refusal(path, "wrong")


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
    path.write_bytes(b"# all of them\n" + issued_pem(AUTHORITY) + issued_pem(ABOVE))
    store = read_store(path, None)
    assert store.key is None
    assert store.trusted == (AUTHORITY.certificate, ABOVE.certificate)


# ---- PKCS12 --------------------------------------------------------------------------------------


def test_pkcs12_made_here(tmp_path: Path) -> None:
    path = OWN.pkcs12(tmp_path / "broker.p12")
    assert_is(path, OWN, "PKCS12")
    assert_is(path, OWN, "PKCS12", alias="BROKER")
    assert "the password is wrong, or the file is damaged; try it with: keytool -list" in refusal(path, "wrong")
    assert "has no key with the alias 'other', only: broker" in refusal(path, alias="other")
    path.write_bytes(path.read_bytes()[:200])
    assert "not a PKCS12 store" in refusal(path)


# ---- what Java makes -----------------------------------------------------------------------------


@needs_keytool
@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_keytool_makes_a_key_store(tmp_path: Path, kind: str) -> None:
    path = converted(OWN.pkcs12(tmp_path / "source.p12"), tmp_path / "broker.store", kind)
    assert_is(path, OWN, kind)
    assert_is(path, OWN, kind, alias="Broker")
    assert "has no key with the alias 'x'" in refusal(path, alias="x")
    assert "the password is wrong" in refusal(path, "wrong")


@needs_keytool
@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
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
    assert set(store.trusted) == {AUTHORITY.certificate, ABOVE.certificate}


@needs_keytool
def test_several_keys_in_a_jks(tmp_path: Path) -> None:
    other = AUTHORITY.issue("other")
    path = converted(OWN.pkcs12(tmp_path / "one.p12"), tmp_path / "both.jks", "JKS")
    converted(other.pkcs12(tmp_path / "two.p12", "zweiter-schlüssel"), path, "JKS", "zweiter-schlüssel")
    assert_is(path, OWN, "JKS", alias="broker")
    assert_is(path, other, "JKS", alias="Zweiter-Schlüssel")
    assert "has 2 keys" in refusal(path)


@needs_keytool
def test_several_keys_in_a_pkcs12_are_refused_with_the_line_that_helps(tmp_path: Path) -> None:
    path = OWN.pkcs12(tmp_path / "both.p12")
    converted(AUTHORITY.issue("other").pkcs12(tmp_path / "two.p12", "second"), path, "PKCS12", "second")
    assert_is(path, OWN, "PKCS12", alias="broker")
    told = refusal(path, alias="second")
    assert "keytool -importkeystore" in told
    line = told.partition("keytool ")[2].replace("second.p12", str(tmp_path / "second.p12"))
    keytool(*line.split(), "-srcstorepass", PASSWORD, "-deststorepass", PASSWORD)
    assert read_store(tmp_path / "second.p12", PASSWORD, "second").key is not None


@needs_keytool
def test_a_key_with_another_password_than_its_jks(tmp_path: Path) -> None:
    path = converted(OWN.pkcs12(tmp_path / "source.p12"), tmp_path / "broker.jks", "JKS")
    keytool("-keypasswd", "-alias", "broker", "-keystore", path, "-storepass", PASSWORD, "-new", "something else")
    assert "the key has another password than the store" in refusal(path)


@needs_keytool
def test_jceks_is_refused_with_the_line_that_converts_it(tmp_path: Path) -> None:
    path = converted(OWN.pkcs12(tmp_path / "source.p12"), tmp_path / "broker.jceks", "JCEKS")
    told = refusal(path)
    line = told.partition("keytool ")[2].replace("broker.p12", str(tmp_path / "broker.p12"))
    keytool(*line.split(), "-noprompt", "-srcstorepass", PASSWORD, "-deststorepass", PASSWORD)
    assert_is(tmp_path / "broker.p12", OWN, "PKCS12")


@needs_keytool
def test_every_damage_of_a_jks_is_found(tmp_path: Path) -> None:
    path = converted(OWN.pkcs12(tmp_path / "source.p12"), tmp_path / "broker.jks", "JKS")
    data = path.read_bytes()
    for at in range(4, len(data), 7):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert "the password is wrong, or the file is damaged" in refusal(path)
        path.write_bytes(data[:at])
        refusal(path)


# ---- the rest ------------------------------------------------------------------------------------


def test_a_jks_without_a_password_is_only_read_for_its_certificates(tmp_path: Path) -> None:
    der = AUTHORITY.certificate.public_bytes(Encoding.DER)
    entry = struct.pack(">IH2sQ", 2, 2, b"ca", 0) + struct.pack(">H5sI", 5, b"X.509", len(der)) + der
    path = tmp_path / "trust.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed" + struct.pack(">II", 2, 1) + entry + bytes(20))
    assert read_store(path, None).trusted == (AUTHORITY.certificate,)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00" * 100, b"source of nothing\n", b"a=b\n"])
def test_other_files_are_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "something"
    path.write_bytes(content)
    assert "is no key or trust store: it is not PEM, PEMCFG" in refusal(path)


def test_a_missing_file(tmp_path: Path) -> None:
    assert "cannot be read: No such file or directory" in refusal(tmp_path / "missing")


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_the_keys_of_a_real_java() -> None:
    """The list of public authorities that comes with each JDK."""
    java = shutil.which("java")
    found = Path(java).resolve().parent.parent / "lib/security/cacerts" if java else Path("none")
    if not found.exists():
        pytest.skip("there is no Java with a file cacerts on this machine")
    store = read_store(found, "changeit")
    assert store.key is None
    assert len(store.trusted) > 50
