"""Masked passwords are read as Artemis reads them, and nothing says what they are."""

from __future__ import annotations

from contextlib import suppress

import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.modes import ECB
from cryptography.hazmat.primitives.padding import PKCS7
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.errors import ConfigError
from artemis_py.security.masked import CODEC_CLASS, Codec, MaskedError, acceptor_password, codec_of, reveal
from tests.kit.documents import acceptor, load_core

# Texts that `artemis mask` printed.
VECTORS = [
    ("3bdfd94fe8cdf710e7fefa72f809ea90", "defaultmasked"),
    ("80cf731af62c290", "guest"),
    ("-41e444c3ed07d6dd", "secret"),
    ("-5da23e449f1b4b24dd05b6572705eea3", "testuser"),
    ("2a7c211d21c295cdbcde3589c205decb", "secureexample"),
    ("5aec0780b12bf225a13ab70c6c76bc8e", "helloworld"),
    ("-5a2376c61c668aaf", "keypass"),
]
WITH_KEY = "-170b9ef34d79ed12"  # "secret", masked with the key "helloworld"


@pytest.mark.parametrize(("masked", "plain"), VECTORS)
def test_what_artemis_mask_prints(masked: str, plain: str) -> None:
    codec = codec_of(None, environ={})
    assert codec.decode(masked) == plain
    assert reveal(f"ENC({masked})", codec) == plain


def test_where_the_key_comes_from() -> None:
    in_the_file, of_java = f"{CODEC_CLASS};key=helloworld", {"artemis.default.sensitive.string.codec.key": "helloworld"}
    environ = {"ARTEMIS_DEFAULT_SENSITIVE_STRING_CODEC_KEY": "helloworld"}
    assert codec_of(in_the_file, environ={}).decode(WITH_KEY) == "secret"
    assert codec_of(None, of_java, environ={}).decode(WITH_KEY) == "secret"
    assert codec_of(None, environ=environ).decode(WITH_KEY) == "secret"
    assert codec_of(in_the_file, dict.fromkeys(of_java, "other"), environ={}).decode(WITH_KEY) == "secret"
    with pytest.raises(MaskedError, match="does not belong to this key"):
        codec_of(None, environ={}).decode(WITH_KEY)


def test_what_is_masked_depends_on_mask_password() -> None:
    codec = codec_of(None, environ={})
    assert reveal("plain", codec) == "plain"
    assert reveal("80cf731af62c290", codec, masked=True) == "guest"
    assert reveal("ENC(80cf731af62c290)", codec, masked=False) == "ENC(80cf731af62c290)"


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ("com.example.Vault;file=/etc/key", "com.example.Vault is a Java class"),
        (f"{CODEC_CLASS};algorithm=one-way", "a hash cannot be read back"),
    ],
)
def test_codecs_that_are_refused(definition: str, text: str) -> None:
    with pytest.raises(MaskedError, match=text):
        codec_of(definition, environ={})


def test_an_acceptor_says_where_its_password_is_wrong() -> None:
    tls = acceptor("tcp://127.0.0.1:0?protocols=STOMP;keyStorePassword=ENC(80cf731af62c290)")
    config = load_core(tls)
    assert acceptor_password(config, config.acceptors[0], "keyStorePassword") == "guest"
    assert acceptor_password(config, config.acceptors[0], "trustStorePassword") is None
    for codec in ("com.example.Vault", f"{CODEC_CLASS};key=kept-to-itself"):
        config = load_core(f"{tls}<password-codec>{codec}</password-codec>")
        with pytest.raises(ConfigError) as refused:
            acceptor_password(config, config.acceptors[0], "keyStorePassword")
        (problem,) = refused.value.problems
        assert problem.line == 3
        assert "kept-to-itself" not in str(problem)
        assert "80cf731af62c290" not in str(problem)


@given(st.text(alphabet="-0123456789abcdefABCDEF()E;_ \u0660", max_size=80), st.binary(max_size=70))
def test_any_text_gives_a_password_or_an_error(text: str, key: bytes) -> None:
    with suppress(MaskedError):
        Codec(key.hex()).decode(text)


def masked_as_artemis_does(plain: str, key: str) -> str:
    """What ``artemis mask`` prints: the bytes as a number, without the zeros before it."""
    padder = PKCS7(64).padder()
    encryptor = Cipher(Blowfish(key.encode()), ECB()).encryptor()
    data = encryptor.update(padder.update(plain.encode()) + padder.finalize()) + encryptor.finalize()
    return f"{int.from_bytes(data, 'big', signed=True):x}"


def test_zeros_that_are_not_written() -> None:
    """One in 256 texts begins with a byte of zeros."""
    assert masked_as_artemis_does("guest", "clusterpassword") == "80cf731af62c290"
    texts = [masked_as_artemis_does(f"{number} password", "clusterpassword") for number in range(2000)]
    short = [number for number, text in enumerate(texts) if not text.startswith("-") and len(text) <= 30]
    assert short
    codec = codec_of(None, environ={})
    assert [codec.decode(texts[number]) for number in short] == [f"{number} password" for number in short]
