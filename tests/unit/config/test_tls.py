"""TLS parameters of acceptors: what is refused, what is an error, what is only told."""

from __future__ import annotations

import ssl

import pytest

from artemis_py.config.tables.acceptor import OPENSSL_NAMES
from tests.kit.documents import acceptor, errors_of, load_core, warnings_of

TLS = "tcp://localhost:1?sslEnabled=true;"
KEY = f"{TLS}keyStorePath=broker.pem;"


def test_a_port_with_tls_is_opened() -> None:
    found = load_core(acceptor(KEY)).acceptors[0]
    assert found.is_opened
    assert found.is_tls
    assert found.text_param("keyStorePath") == "broker.pem"
    assert found.text_param("trustStorePath") is None
    assert warnings_of(acceptor(KEY)) == []


def test_words_without_effect_need_no_notice() -> None:
    uri = KEY + "keyStoreType=JKS;trustStoreType=PKCS12;sslProvider=OPENSSL;forceSSLParameters=true"
    assert warnings_of(acceptor(uri)) == []


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        (TLS, "sslEnabled needs keyStorePath"),
        (TLS + "keyStoreProvider=PKCS11", "PKCS#11"),
        (TLS + "keyStoreType=pkcs11", "PKCS#11"),
        (KEY + "needClientAuth=true", "needClientAuth needs trustStorePath"),
        (KEY + "wantClientAuth=true", "wantClientAuth needs trustStorePath"),
        (KEY + "verifyHost=true", "verifyHost: this version does not compare"),
        (KEY + "trustAll=true", "trustAll: it would accept certificates that anybody made"),
        (KEY + "trustManagerFactoryPlugin=x.Y", "it is a Java class"),
        (KEY + "useDefaultSslContext=true", "there is no Java virtual machine here"),
        (KEY + "crcOptions=SOFT_FAIL", "use crlPath"),
        (KEY + "ocspResponderURL=http://x", "use crlPath"),
    ],
)
def test_ports_that_are_not_opened(uri: str, words: str) -> None:
    (refused,) = load_core(acceptor(uri)).acceptors
    assert words in str(refused.refused)
    assert not refused.is_opened
    (plain,) = load_core(acceptor(uri.replace("sslEnabled=true", "sslEnabled=false"))).acceptors
    assert plain.refused is None


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("enabledProtocols=TLSv1.4", "did you mean 'TLSv1.3'?"),
        ("enabledProtocols=SSLv3,TLSv1", "enabledProtocols leaves no protocol"),
        (
            "enabledCipherSuites=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA38",
            "did you mean 'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384'?",
        ),
        ("enabledCipherSuites=ECDHE-RSA-AES128-GCM-SHA256", "the names that Java uses"),
        ("sniHost=(", "sniHost is not a regular expression"),
    ],
)
def test_wrong_values_are_errors(more: str, words: str) -> None:
    found = [str(each) for each in errors_of(acceptor(KEY + more))]
    assert any(words in each for each in found), found


def test_an_old_version_is_left_out() -> None:
    assert any(
        "TLSv1.1 is not secure" in each for each in warnings_of(acceptor(KEY + "enabledProtocols=TLSv1.1,TLSv1.2"))
    )


def test_acceptors_of_other_protocols_are_not_checked() -> None:
    assert errors_of(acceptor(KEY + "protocols=CORE;enabledCipherSuites=NONSENSE")) == []


def test_openssl_knows_every_suite_of_the_table() -> None:
    """Those that this OpenSSL was built without are left out of a list of several, so each is tried with another."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for name in OPENSSL_NAMES.values():
        if "DSS" not in name:
            context.set_ciphers(f"{name}:@SECLEVEL=0")
            assert name in [each["name"] for each in context.get_ciphers()]
