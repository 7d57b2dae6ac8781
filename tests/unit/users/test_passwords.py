"""Hashes of users files: Artemis' own vectors, ours, and texts that only look like one."""

from __future__ import annotations

import pytest

from artemis_py.security.users.passwords import (
    ITERATIONS,
    HashedPassword,
    PlainPassword,
    UnreadablePassword,
    hashed,
    stored_password,
)

ARTEMIS = {
    "password": "ENC(1024:973A466A489ABFDED3D4B3D181DC77F410F2FC6E87432809A46B72B294147D76:"
    "C999ECA8A85387E1FFB14E4FE5CECD17948BA80BA04318A9BE4C3E34B7FE2925F43AB6BC9DFE0D9855DA67439AEEB985"
    "0351BC4D5D3AEC6A6903C42B8EB4ED1E)",
    "manager": "ENC(1024:48018CDB1B5925DA2CC51DBD6F7E8C5FF156C22C03C6C69720C56F8BE76A1D48:"
    "0A0F68C2C01F46D347C6C51D641291A4608EDA50A873ED122909D9134B7A757C14176F0C033F0BD3CE35B3C373D5B652"
    "650CDE5FFBBB0F286D4495CEFEEDB166)",
    "s3cret": "ENC(1024:49A4AB640EA00669E272E3AF573D0D59C7C40EE0BDD68D811CA82CFEC5599C20:"
    "0EC3B8E939C5E9E3BEDEA55C2437B7CC946FAFF26B418F917C4F0E685BABCE6F9773E22889E18A08AB3A60E5BE6F306C"
    "D7038D03F0309311D1FD44614F09D46F)",
}


@pytest.mark.parametrize("password", ARTEMIS)
def test_hashes_of_artemis(password: str) -> None:
    for text in (ARTEMIS[password], "ENC" + ARTEMIS[password][3:].lower()):
        stored = stored_password(text)
        assert isinstance(stored, HashedPassword)
        assert stored.verify(password)
        assert not any(
            stored.verify(other) for other in ("", password + " ", password.title(), *ARTEMIS) if other != password
        )
        assert str(stored) == ARTEMIS[password]


def test_our_hashes_are_stronger_and_differ_each_time() -> None:
    first, second = hashed("ä ö ü 日本"), hashed("ä ö ü 日本")
    assert (first.iterations, len(first.salt), len(first.hash)) == (ITERATIONS, 32, 64) == (100_000, 32, 64)
    assert first != second
    assert [stored_password(str(one)) for one in (first, second)] == [first, second]
    assert first.verify("ä ö ü 日本")
    assert not first.verify("ä ö ü")


def test_iterations_and_lengths_are_those_of_the_text() -> None:
    """RFC 6070 has these vectors of PBKDF2 with HMAC-SHA1."""
    for text, password in {
        "ENC(1:73616C74:0C60C80F961F0E71F3A9B524AF6012062FE037A6)": "password",
        "ENC(4096:73616C74:4B007901B765489ABEAD49D926F721D065A429C1)": "password",
        "ENC(4096:73616C7453414C5473616C7453414C5473616C7453414C5473616C7453414C5473616C74:"
        "3D2EEC4FE41C849B80C8D83662C0E44A8B291A964CF2F07038)": "passwordPASSWORDpassword",
        "ENC(4096:73616C74:4B007901B765489ABEAD49D926F721D065A429C1:and:more)": "password",
    }.items():
        assert stored_password(text).verify(password)


@pytest.mark.parametrize("text", ["secret", "enc(1:ab:cd)", "ENC 1", " ENC(1:ab:cd)", ")"])
def test_everything_else_is_a_plain_password(text: str) -> None:
    stored = stored_password(text)
    assert isinstance(stored, PlainPassword)
    assert stored.verify(text)
    assert not stored.verify(text + "x")
    assert repr(stored) == "PlainPassword()"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ENC(c2FsdA==:4096:c3RvcmVk:c2VydmVy)", "SCRAM"),
        ("ENC()", "iterations:salt:hash"),
        ("ENC(1024:AB)", "iterations:salt:hash"),
        ("ENC(0:AB:CD)", "from 1 to"),
        ("ENC(-5:AB:CD)", "from 1 to"),
        ("ENC(²:AB:CD)", "from 1 to"),
        (f"ENC({'9' * 5000}:AB:CD)", "from 1 to"),
        ("ENC(1024::CD)", "hexadecimal"),
        ("ENC(1024:XY:CD)", "hexadecimal"),
        ("ENC(1024:AB:)", "hexadecimal"),
        ("ENC(5aec0780b12bf225)", "iterations:salt:hash"),
        ("ENC(1024:AB:CD", "its ) is missing"),
        ("ENC(1024:AB:CD) ", "its ) is missing"),
        ("ENC(", "its ) is missing"),
        ("EN", "its ) is missing"),
        ("", "empty"),
    ],
)
def test_what_only_looks_like_a_hash_lets_nobody_in(text: str, reason: str) -> None:
    stored = stored_password(text)
    assert isinstance(stored, UnreadablePassword)
    assert reason in stored.reason
    assert not stored.verify(text)
    assert not stored.verify("")


def test_no_hash_is_shown() -> None:
    assert repr(stored_password("ENC(5:ABCDEF:123456)")) == "HashedPassword(iterations=5)"
