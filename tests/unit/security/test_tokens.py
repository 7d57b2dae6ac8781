"""Real signed tokens: which are good, what is read from them, and where the keys come from."""

from __future__ import annotations

import base64
import json
import time
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from artemis_py.errors import ArtemisError, AuthenticatorError, NotYetError
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.tokens import LIFETIME_S, RETRY_S, FetchedKeys
from tests.kit.process import eventually, for_each_test
from tests.kit.web_server import WebServer, web_server

jwt = pytest.importorskip("jwt", reason="PyJWT is not installed (extra jwt)")
from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: E402
from cryptography.hazmat.primitives.serialization import (  # noqa: E402
    Encoding,
    PublicFormat,
)

from artemis_py.security import tokens  # noqa: E402
from artemis_py.security.tokens import JwtAuthenticator, KeySourceError, WebSource, keys_of  # noqa: E402
from tests.kit.openid import forged  # noqa: E402

RSA = rsa.generate_private_key(65537, 2048)
OTHER_RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
SECRET = b"0123456789abcdef0123456789abcdef"
WHO = {"issuer": "https://issuer.example", "audience": "broker"}


def token(key: Any = RSA, algorithm: str = "RS256", headers: dict[str, Any] | None = None, **more: Any) -> str:
    """A signed token; None takes a claim away."""
    exp = int(time.time()) + 86_400
    said = {"iss": WHO["issuer"], "aud": ["broker", "other"], "sub": "ann", "exp": exp, "roles": ["amq"], **more}
    claims = {name: value for name, value in said.items() if value is not None}
    return str(jwt.encode(claims, key, algorithm, headers=headers))


def pem(key: Any) -> bytes:
    """The public key."""
    return bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def key_set(**keys: Any) -> bytes:
    """A key set with RSA keys by id."""
    listed = [
        {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())), "kid": name, "use": "sig"}
        for name, key in keys.items()
    ]
    return json.dumps({"keys": listed}).encode()


@pytest.fixture
def rsa_file(tmp_path: Path) -> Path:
    """The public key of ``RSA``."""
    file = tmp_path / "key.pem"
    file.write_bytes(pem(RSA))
    return file


@pytest.fixture
def by_rsa(rsa_file: Path) -> JwtAuthenticator:
    """Trusts ``RSA``."""
    return JwtAuthenticator(**WHO, key_file=str(rsa_file))


def test_a_good_token_names_user_roles_and_end(by_rsa: JwtAuthenticator) -> None:
    exp = int(time.time()) + 86_400
    found = by_rsa.authenticate(Credentials("ann", token(exp=exp)))
    assert found == Identity("ann", frozenset({"amq"}), (exp + 30) * 1000)


@pytest.mark.parametrize(
    ("user", "admitted"), [(None, True), ("", True), ("token", True), ("ann", True), ("bob", False)]
)
def test_nobody_logs_in_under_another_name(by_rsa: JwtAuthenticator, user: str | None, admitted: bool) -> None:
    assert (by_rsa.authenticate(Credentials(user, token())) is not None) == admitted


@pytest.mark.parametrize(
    "wrong",
    [
        {"exp": int(time.time()) - 60},
        {"exp": None},
        {"exp": "soon"},
        {"exp": float("inf")},
        {"aud": "somebody else"},
        {"aud": None},
        {"iss": "https://other.example"},
        {"iss": None},
        {"nbf": int(time.time()) + 86_400},
        {"sub": None},
        {"sub": ""},
        {"key": OTHER_RSA},
        {"headers": {"crit": ["x"], "x": 1}},
        {"key": EC, "algorithm": "ES256"},
        {"algorithm": "RS384"},
    ],
)
def test_other_tokens_are_refused(by_rsa: JwtAuthenticator, wrong: dict[str, Any]) -> None:
    assert by_rsa.authenticate(Credentials(None, token(**wrong))) is None


CLAIMS = jwt.decode(token(), options={"verify_signature": False})


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "RS256", ""])
def test_a_token_without_a_signature_is_refused(by_rsa: JwtAuthenticator, algorithm: str) -> None:
    assert by_rsa.authenticate(Credentials(None, forged({"alg": algorithm}, CLAIMS))) is None


def test_a_public_key_is_no_shared_secret(by_rsa: JwtAuthenticator) -> None:
    """The attack: sign with HMAC and the public key, which everybody has."""
    import hashlib
    import hmac

    header, said, _ = forged({"alg": "HS256"}, CLAIMS).split(".")
    signature = hmac.digest(pem(RSA), f"{header}.{said}".encode(), hashlib.sha256)
    made = f"{header}.{said}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    assert by_rsa.authenticate(Credentials(None, made)) is None


@pytest.mark.parametrize(
    "password",
    [
        None,
        "",
        "secret",
        "a.b.c",
        "..",
        "\ud800.b.c",
        "é.é.é",
        "W10.W10.W10",
        "bnVsbA.bnVsbA.",
        "a" * 20000 + ".b.c",
        base64.urlsafe_b64encode(b"[" * 9000).decode() + ".b.c",
    ],
    ids=lambda it: repr(it)[:12],
)
def test_what_is_no_token_is_nobody(by_rsa: JwtAuthenticator, password: str | None) -> None:
    assert by_rsa.authenticate(Credentials("ann", password)) is None


def test_elliptic_curves_and_certificates(tmp_path: Path) -> None:
    file = tmp_path / "ec.pem"
    file.write_bytes(pem(EC))
    assert JwtAuthenticator(**WHO, key_file=str(file)).authenticate(Credentials(None, token(EC, "ES256"))) is not None


def test_a_shared_secret(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(SECRET + b"\n")
    by_secret = JwtAuthenticator(**WHO, secret_file=str(file))
    assert by_secret.authenticate(Credentials(None, token(SECRET, "HS256"))) is not None
    assert by_secret.authenticate(Credentials(None, token(SECRET[::-1], "HS256"))) is None
    assert by_secret.authenticate(Credentials(None, token(RSA, "RS256"))) is None
    file.write_bytes(b"short")
    with pytest.raises(AuthenticatorError, match="5 bytes, at least 32 are needed"):
        JwtAuthenticator(**WHO, secret_file=str(file))


@pytest.mark.parametrize(
    ("name", "said", "roles"),
    [
        ("roles", {"roles": ["a", "b", 3, ""]}, {"a", "b"}),
        ("roles", {"roles": None}, set()),
        ("roles", {"roles": {"a": 1}}, set()),
        ("scope", {"scope": "read  write"}, {"read", "write"}),
        ("realm_access.roles", {"realm_access": {"roles": ["a"]}}, {"a"}),
        ("realm_access.roles", {"realm_access": ["roles"]}, set()),
        ("https://x.example/roles", {"https://x.example/roles": ["a"]}, {"a"}),
    ],
)
def test_roles_come_from_a_claim(rsa_file: Path, name: str, said: dict[str, Any], roles: set[str]) -> None:
    found = JwtAuthenticator(**WHO, key_file=str(rsa_file), roles_claim=name).authenticate(
        Credentials(None, token(**said))
    )
    assert found is not None
    assert found.roles == roles


def test_the_user_comes_from_a_claim_and_clocks_may_differ(rsa_file: Path) -> None:
    lenient = JwtAuthenticator(**WHO, key_file=str(rsa_file), user_claim="preferred_username", leeway="300")
    found = lenient.authenticate(Credentials(None, token(preferred_username="Ann", exp=int(time.time()) - 200)))
    assert found is not None
    assert found.user == "Ann"
    assert found.expires_ms > time.time() * 1000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "exactly one of key-file"),
        ({"key_file": "a", "jwks_file": "b"}, "exactly one of key-file"),
        ({"key_file": "KEY", "algorithms": "none"}, "algorithm none does not go with public keys"),
        ({"key_file": "KEY", "algorithms": "HS256"}, "algorithm HS256 does not go with public keys"),
        ({"secret_file": "KEY", "algorithms": "RS256"}, "algorithm RS256 does not go with a secret"),
        ({"key_file": "KEY", "leeway": "301"}, "leeway must be"),
        ({"key_file": "KEY", "issuer": ""}, "issuer and audience"),
        ({"key_file": "/no/such/file"}, "/no/such/file cannot be read: No such file"),
        ({"jwks_url": "http://keys.example/jwks"}, "at an https URL"),
        ({"jwks_url": "file:///etc/passwd"}, "at an https URL"),
        ({"jwks_url": "https://keys.example", "ca_file": "/no/ca"}, "/no/ca has no certificates"),
    ],
)
def test_options_that_make_no_sense_are_named(rsa_file: Path, options: dict[str, str], words: str) -> None:
    given = {name: str(rsa_file) if value == "KEY" else value for name, value in {**WHO, **options}.items()}
    with pytest.raises(ArtemisError, match=words):
        JwtAuthenticator(**given)


def test_options_that_do_not_exist_and_those_that_are_missing() -> None:
    with pytest.raises(ArtemisError, match=r"^there is no option jwk-url; did you mean jwks-url\?$"):
        JwtAuthenticator(**WHO, jwk_url="https://x")
    with pytest.raises(ArtemisError, match=r"^the option issuer is missing$"):
        JwtAuthenticator(audience="x")


def test_a_key_file_is_read_again_when_it_changes(rsa_file: Path, by_rsa: JwtAuthenticator) -> None:
    other = token(OTHER_RSA)
    assert by_rsa.authenticate(Credentials(None, other)) is None
    rsa_file.write_bytes(pem(OTHER_RSA) + b"\n")
    assert by_rsa.authenticate(Credentials(None, other)) is not None
    for broken, why in ((b"no key", "it has no public key in PEM"), (b"", "it is empty")):
        rsa_file.write_bytes(broken)
        assert by_rsa.authenticate(Credentials(None, other)) is not None
        assert why in by_rsa.files[0].complaint
    rsa_file.write_bytes(pem(RSA))
    assert by_rsa.authenticate(Credentials(None, other)) is None
    assert by_rsa.files[0].complaint == ""


def test_a_secret_that_may_have_been_cut_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    whole = SECRET + b"and more"
    file.write_bytes(whole + b"\n")
    by_secret = JwtAuthenticator(**WHO, secret_file=str(file))
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert by_secret.authenticate(Credentials(None, token(whole, "HS256"))) is not None
        if length >= 32:
            assert by_secret.authenticate(Credentials(None, token(whole[:length], "HS256"))) is None
            assert "may have been cut" in by_secret.files[0].complaint


def test_a_key_set_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_bytes(key_set(one=RSA))
    by_set = JwtAuthenticator(**WHO, jwks_file=str(file))
    assert by_set.authenticate(Credentials(None, token(headers={"kid": "one"}))) is not None
    assert by_set.authenticate(Credentials(None, token())) is not None  # there is only one
    assert by_set.authenticate(Credentials(None, token(headers={"kid": "two"}))) is None
    file.write_bytes(key_set(one=RSA, two=OTHER_RSA))
    assert by_set.authenticate(Credentials(None, token(OTHER_RSA, headers={"kid": "two"}))) is not None
    assert by_set.authenticate(Credentials(None, token(headers={"kid": "two"}))) is None
    assert by_set.authenticate(Credentials(None, token())) is None  # which one?
    file.write_bytes(b'{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}')
    assert by_set.authenticate(Credentials(None, token(OTHER_RSA, headers={"kid": "two"}))) is not None
    assert "has no key for signatures" in by_set.files[0].complaint
    whole = key_set(one=RSA)
    for length in range(0, len(whole), 7):
        file.write_bytes(whole[:length])
        assert by_set.authenticate(Credentials(None, token(OTHER_RSA, headers={"kid": "two"}))) is not None


issuer = for_each_test(lambda _: web_server(key_set(one=RSA)))
"""It serves a key set over HTTP, which the test may change or break."""


def fetching(issuer: WebServer, clock: SimpleNamespace) -> FetchedKeys:
    """Its keys, by steady seconds that the test moves."""
    web = WebSource()
    return FetchedKeys(WHO["issuer"], lambda: keys_of(web.get(issuer.url, "the keys"), issuer.url), lambda: clock.now_s)


def key_for(keys: FetchedKeys, key_id: str | None) -> Any:
    """The key, when it is known whether there is one."""
    try:
        return keys.key_for(key_id)
    except NotYetError:
        keys.settle()
        return keys.key_for(key_id)


def test_keys_are_fetched_once_and_again_for_one_that_is_new(issuer: WebServer) -> None:
    clock = SimpleNamespace(now_s=0.0)
    keys = fetching(issuer, clock)
    assert key_for(keys, "one") is not None
    assert key_for(keys, "one") is not None
    assert len(issuer.asked) == 1
    issuer.contents = [key_set(two=OTHER_RSA)]
    for number in range(20):  # strangers name what they like
        assert key_for(keys, f"stranger {number}") is None
    assert len(issuer.asked) == 1
    clock.now_s = RETRY_S
    assert key_for(keys, "two") is not None
    assert key_for(keys, "one") is None
    assert len(issuer.asked) == 2
    clock.now_s += LIFETIME_S - 1
    assert key_for(keys, "two") is not None
    keys.settle()
    assert len(issuer.asked) == 2
    clock.now_s += 1
    assert key_for(keys, "two") is not None
    keys.settle()
    assert len(issuer.asked) == 3


@pytest.mark.parametrize(
    ("status", "content"), [(500, b""), (302, b""), (200, b"{}"), (200, b"[" * 5000), (200, b"x" * 2000000)]
)
def test_old_keys_last_while_new_ones_cannot_be_fetched(
    issuer: WebServer, status: int, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = SimpleNamespace(now_s=0.0)
    keys = fetching(issuer, clock)
    assert key_for(keys, "one") is not None
    good, issuer.contents, issuer.status = issuer.contents, [content], status
    clock.now_s = LIFETIME_S
    assert keys.key_for("one") is not None
    keys.settle()
    assert len(issuer.asked) == 2
    assert "; those that were fetched before stay in force" in capsys.readouterr().err
    assert keys.complaint
    clock.now_s += RETRY_S
    with pytest.raises(AuthenticatorError, match=r"127\.0\.0\.1"):
        key_for(keys, "two")
    assert len(issuer.asked) == 3
    assert capsys.readouterr().err == "", "it is told once"
    issuer.contents, issuer.status = good, 200
    clock.now_s += RETRY_S
    assert key_for(keys, "two") is None
    assert "its keys can be fetched again" in capsys.readouterr().err
    assert keys.complaint == ""


def test_an_issuer_that_hangs_holds_nobody(issuer: WebServer) -> None:
    clock = SimpleNamespace(now_s=0.0)
    keys = fetching(issuer, clock)
    assert key_for(keys, "one") is not None
    issuer.may_answer.clear()
    clock.now_s = LIFETIME_S
    assert keys.key_for("one") is not None  # while a thread waits for the issuer
    eventually("the issuer is asked again", lambda: len(issuer.asked), lambda count: count == 2)
    for _ in range(3):
        with pytest.raises(NotYetError):
            keys.key_for("two")
    issuer.may_answer.set()
    keys.settle()
    assert key_for(keys, "two") is None
    assert len(issuer.asked) == 2


def test_an_issuer_that_never_ends_is_given_up(issuer: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "TIMEOUT_S", 0.0001)
    slow = MagicMock()
    slow.__enter__.return_value.read1.side_effect = repeat(b" ", 1_000)
    web = WebSource()
    monkeypatch.setattr(web._opener, "open", Mock(return_value=slow))
    with pytest.raises(KeySourceError, match=r"the keys at .* cannot be fetched: it takes too long"):
        web.get(issuer.url, "the keys")


def test_keys_outlast_a_reload(issuer: WebServer) -> None:
    before = JwtAuthenticator(**WHO, jwks_url=issuer.url)
    good = Credentials(None, token(headers={"kid": "one"}))
    with pytest.raises(NotYetError):
        before.authenticate(good)
    before.fetched_keys[0].settle()
    assert before.authenticate(good) is not None
    issuer.status = 500
    after = JwtAuthenticator(**WHO, jwks_url=issuer.url)
    after.fetched_keys[0].follow(before.fetched_keys[0])
    assert after.authenticate(good) is not None
    after.fetched_keys[0].settle()
    assert len(issuer.asked) == 2, "it is asked at once whether they are still right"
    assert after.authenticate(good) is not None


def test_tokens_with_keys_at_a_url(issuer: WebServer) -> None:
    by_url = JwtAuthenticator(**WHO, jwks_url=issuer.url)
    good = Credentials(None, token(headers={"kid": "one"}))
    with pytest.raises(NotYetError):
        by_url.authenticate(good)
    by_url.fetched_keys[0].settle()
    assert by_url.authenticate(good) is not None
    issuer.server_close()
    assert by_url.authenticate(good) is not None


def test_nobody_can_tell_while_the_issuer_is_down(capsys: pytest.CaptureFixture[str]) -> None:
    with web_server(b"") as issuer:
        url = f"{issuer.url}/jwks"
    by_url, good = JwtAuthenticator(**WHO, jwks_url=url), Credentials(None, token(headers={"kid": "one"}))
    with pytest.raises(NotYetError):
        by_url.authenticate(good)
    by_url.fetched_keys[0].settle()
    with pytest.raises(AuthenticatorError, match=r"the keys at http://127\.0\.0\.1:\d+/jwks cannot be fetched"):
        by_url.authenticate(good)
    assert "; tokens cannot be checked" in capsys.readouterr().err
