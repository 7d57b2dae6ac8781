"""Tokens of an OpenID provider, and logins of people there: which count, and what is said of the others."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import parse_qs, urlsplit

import pytest

from artemis_py.errors import (
    ArtemisError,
    AuthenticatorError,
    BadRequestError,
    ConfigError,
    CredentialsRefusedError,
    NotYetError,
)
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.realms import open_realms
from artemis_py.security.users.reloaded import fetched_keys_of
from tests.kit.certificates import Authority
from tests.kit.documents import load_core
from tests.kit.http import ask

jwt = pytest.importorskip("jwt", reason="PyJWT is not installed (extra jwt)")
from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: E402
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: E402

from artemis_py.security.oidc import OidcAuthenticator  # noqa: E402
from artemis_py.security.tokens import LIFETIME_S, RETRY_S, FetchedKeys  # noqa: E402
from tests.kit.openid import CLIENT, Provider, forged, provider  # noqa: E402

PAGE: Final = "http://127.0.0.1:8161/ui/"


@pytest.fixture
def there() -> Iterator[Provider]:
    """A provider that runs."""
    with provider() as one:
        one.redirects = {PAGE}
        yield one


def oidc(there: Provider, **options: str) -> OidcAuthenticator:
    """Logins there."""
    usual = {"client_id": CLIENT, "user_claim": "preferred_username", "roles_claim": "realm_access.roles"}
    return OidcAuthenticator(issuer=there.issuer, **{**usual, **options})


def login(here: OidcAuthenticator, token: str, user: str | None = None) -> Identity | None:
    """Who the token names, when the keys have been fetched."""
    try:
        return here.authenticate(Credentials(user, token))
    except NotYetError:
        here.provider.keys.settle()
        return here.authenticate(Credentials(user, token))


def test_a_token_names_user_roles_and_end(there: Provider) -> None:
    here = oidc(there)
    found = login(here, there.token(exp=2_000_000_000))
    assert found == Identity("ann", frozenset({"broker-admin", "offline_access"}), 2_000_000_030_000)
    assert "realm_access.roles gives the roles 'broker-admin', 'offline_access'" in found.why_these_roles
    assert login(here, there.token(), "ann") is not None
    assert login(here, there.token(), "token") is not None


def test_nothing_is_fetched_before_a_token_comes_and_then_once(there: Provider) -> None:
    here = oidc(there)
    assert login(here, "a password") is None
    assert login(here, "a.password.with dots") is None
    assert there.asked == []
    for _ in range(3):
        assert login(here, there.token()) is not None
    assert there.asked == ["/realms/shop/.well-known/openid-configuration", "/realms/shop/certs"]


def test_roles_of_several_claims(there: Provider) -> None:
    here = oidc(there, roles_claim="realm_access.roles, resource_access.broker.roles,groups")
    found = login(here, there.token(resource_access={"broker": {"roles": ["amq"]}}, groups="staff night"))
    assert found is not None
    assert found.roles == {"broker-admin", "offline_access", "amq", "staff", "night"}
    found = login(here, there.token(realm_access={"roles": "x"}, groups=[1, None, ["y"]]))
    assert found is not None
    assert found.roles == {"x"}
    found = login(here, there.token(realm_access=["roles"]))
    assert found is not None
    assert found.roles == frozenset()
    assert "gives the roles none" in found.why_these_roles


def test_roles_have_other_names_here(there: Provider) -> None:
    here = oidc(there, role_mapping="broker-admin=amq, cn=night=guards,")
    found = login(here, there.token(realm_access={"roles": ["broker-admin", "cn=night", "staff"]}))
    assert found is not None
    assert found.roles == {"amq", "guards", "staff"}
    for wrong in ("broker-admin", "=amq", "a=b,c="):
        with pytest.raises(ArtemisError, match="role-mapping must be ROLE=OTHER"):
            oidc(there, role_mapping=wrong)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"iss": "https://other.example"}, "the token is of the issuer 'https://other.example', not 'http://127"),
        ({"iss": None}, "the token is of the issuer None, not"),
        ({"exp": 1_000_000_000}, "the token expired at 2001-09-09T01:46:40Z"),
        ({"exp": None}, "the token has no exp"),
        ({"exp": "soon"}, "the token's exp is not a date"),
        ({"exp": True}, "the token's exp is not a date"),
        ({"exp": float("inf")}, "the token's exp is not a date"),
        ({"nbf": 4_000_000_000}, "the token counts from 2096-10-02T07:06:40Z on: the clocks of provider and broker"),
        ({"iat": 1e300}, "the token counts from 1"),
        ({"azp": "other"}, "the token is for the audience 'account', and not made for the client 'console'"),
        ({"azp": None, "aud": None}, "the token is for the audience none, and not made for"),
        ({"typ": "ID"}, "the token is not an access token"),
        ({"typ": "Refresh"}, "the token is not an access token"),
        ({"cnf": {"x5t#256": "x"}}, "the token is bound to a key of its client (cnf)"),
        ({"at_hash": "x"}, "the token is not an access token"),
        ({"preferred_username": None}, "the token has no claim preferred_username"),
        ({"preferred_username": ["ann"]}, "the token has no claim preferred_username"),
    ],
)
def test_what_is_wrong_with_a_token_is_said(there: Provider, said: dict[str, Any], why: str) -> None:
    with pytest.raises(CredentialsRefusedError) as refused:
        login(oidc(there), there.token(**said))
    assert str(refused.value).startswith(why)
    assert refused.value.is_foreign == ("iss" in said)


def test_nobody_logs_in_under_another_name(there: Provider) -> None:
    with pytest.raises(CredentialsRefusedError, match="the token is not one of the user 'bob'"):
        login(oidc(there), there.token(), "bob")


def test_an_audience_that_is_named(there: Provider) -> None:
    here = oidc(there, audience="broker")
    assert login(here, there.token(aud=["account", "broker"], azp="other")) is not None
    with pytest.raises(CredentialsRefusedError, match=r"for the audience 'account', not 'broker' \(option audience\)"):
        login(here, there.token())
    assert login(oidc(there), there.token(aud=CLIENT, azp=None)) is not None


def test_the_clock_decides_and_may_differ_by_the_leeway(there: Provider) -> None:
    here = oidc(there, leeway="60")
    made = there.token(exp=2_000_000_000, iat=1_999_999_000, nbf=1_999_999_000)
    for now_s, is_good in (
        (1_999_998_939, False),
        (1_999_998_940, True),
        (2_000_000_059.9, True),
        (2_000_000_060, False),
    ):
        here.now_s = lambda now_s=now_s: now_s  # type: ignore[misc]
        if is_good:
            assert login(here, made) is not None
        else:
            with pytest.raises(CredentialsRefusedError, match=r"expired at|counts from"):
                login(here, made)


def test_forged_tokens(there: Provider) -> None:
    here = oidc(there)
    assert login(here, there.token()) is not None
    (key_id, key), claims = (
        next(iter(there.keys.items())),
        jwt.decode(there.token(), options={"verify_signature": False}),
    )
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    for algorithm in ("none", "None", "", None):
        with pytest.raises(CredentialsRefusedError, match=r"tokens with the algorithm .* are not accepted"):
            login(here, forged({"alg": algorithm, "kid": key_id}, claims))
    unsigned = forged({"alg": "HS256", "kid": key_id}, claims).rpartition(".")[0]
    signature = base64.urlsafe_b64encode(hmac.digest(public, unsigned.encode(), hashlib.sha256)).decode().rstrip("=")
    with pytest.raises(CredentialsRefusedError, match="tokens with the algorithm 'HS256' are not accepted"):
        login(here, f"{unsigned}.{signature}")
    other = rsa.generate_private_key(65537, 2048)
    with pytest.raises(CredentialsRefusedError, match="the token was not signed by its issuer"):
        login(here, str(jwt.encode(claims, other, "RS256", {"kid": key_id})))
    with suppress(CredentialsRefusedError):
        assert login(here, str(jwt.encode(claims, key, "RS256", {"kid": key_id, "crit": ["x"]}))) is None
    for broken in (
        forged({"alg": "RS256", "kid": key_id}, claims),
        forged({"alg": "ES256", "kid": key_id}, claims, b"x" * 64),
    ):
        with suppress(CredentialsRefusedError):
            assert login(here, broken) is None


def test_new_keys_count_at_once_and_old_ones_no_more(there: Provider) -> None:
    now_s = 0.0
    here = oidc(there)
    here.provider.keys._clock_s = lambda: now_s  # type: ignore[misc]
    old = there.token()
    assert login(here, old) is not None
    there.rotate()
    with pytest.raises(CredentialsRefusedError, match=r"the provider has no key '.*', with which the token is signed"):
        login(here, there.token())  # so soon it is not asked again
    now_s += RETRY_S
    assert login(here, there.token()) is not None
    with pytest.raises(CredentialsRefusedError, match="the provider has no key"):
        login(here, old)
    assert there.asked.count("/realms/shop/certs") == 2


def test_a_provider_that_is_down_stops_nobody_who_is_known(there: Provider, capsys: pytest.CaptureFixture[str]) -> None:
    now_s = 0.0
    here = oidc(there)
    here.provider.keys._clock_s = lambda: now_s  # type: ignore[misc]
    assert login(here, there.token()) is not None
    there.status = 503
    now_s += LIFETIME_S
    for _ in range(3):
        assert here.authenticate(Credentials(None, there.token())) is not None
        here.provider.keys.settle()
    assert there.asked.count("/realms/shop/certs") == 2, "each ten seconds at most"
    assert "HTTP Error 503" in capsys.readouterr().err
    there.rotate()
    now_s += RETRY_S
    with pytest.raises(AuthenticatorError, match="HTTP Error 503") as unknown:
        login(here, there.token())
    assert not isinstance(unknown.value, CredentialsRefusedError)


def test_a_document_of_another_provider_is_not_used(there: Provider) -> None:
    there.issuer_told = "https://other.example"
    with pytest.raises(AuthenticatorError, match=r"is the issuer 'https://other\.example', not 'http://127"):
        login(oidc(there), there.token())


def test_only_a_certificate_that_is_trusted_counts(tmp_path: Path) -> None:
    authority = Authority()
    with provider(authority.issue("localhost").pem(tmp_path / "provider.pem")) as there:
        here = oidc(there, ca_file=str(authority.pem(tmp_path / "ca.pem")))
        assert login(here, there.token()) is not None
        for wrong in ({}, {"ca_file": str(Authority().pem(tmp_path / "other.pem"))}):
            with pytest.raises(AuthenticatorError, match="CERTIFICATE_VERIFY_FAILED"):
                login(oidc(there, **wrong), there.token())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"issuer": ""}, "issuer and client-id must not be empty"),
        ({"client_id": ""}, "issuer and client-id must not be empty"),
        ({"issuer": "http://id.example.org"}, "the provider (option issuer) must be at an https URL"),
        ({"issuer": "id.example.org"}, "the provider (option issuer) must be at an https URL"),
        ({"token": "refresh_token"}, "token must be access_token or id_token, not 'refresh_token'"),
        ({"scope": "profile"}, "scope must contain openid: 'profile'"),
        ({"leeway": "301"}, "leeway must be a number of seconds up to 300"),
        ({"redirect_uri": "http://console.example/ui/"}, "the console (option redirect-uri) must be at an https URL"),
        ({"ca_file": "no/such"}, "no/such has no certificates that can be trusted: No such file"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, str], reason: str) -> None:
    with pytest.raises(ArtemisError) as refused:
        OidcAuthenticator(**{"issuer": "https://id.example.org", "client_id": CLIENT, **options})
    assert str(refused.value).startswith(reason)


def test_each_login_has_a_name_of_its_own(tmp_path: Path) -> None:
    one = (
        '<authenticator name="oidc"><option name="issuer" value="https://id.example.org/a"/>'
        '<option name="client-id" value="console"/></authenticator>'
    )
    with pytest.raises(ConfigError) as refused:
        open_realms(load_core(f"<authentication>{one}\n{one}</authentication>"))
    assert "4: authenticator oidc: another one has the name 'id.example.org', too; give it the option name" in str(
        refused.value
    )


def test_of_several_providers_the_one_of_the_token_says_what_is_wrong(there: Provider) -> None:
    with provider() as other:
        for issuers in ((there.issuer, other.issuer), (other.issuer, there.issuer)):
            named = "".join(
                f'<authenticator name="oidc"><option name="issuer" value="{issuer}"/>'
                f'<option name="client-id" value="{CLIENT}"/></authenticator>'
                for issuer in issuers
            )
            realms = open_realms(load_core(f"<authentication>{named}</authentication>"))
            with pytest.raises(NotYetError):
                realms.authenticate(Credentials(None, there.token(exp=1)))
            for keys in fetched_keys_of(realms):
                cast(FetchedKeys, keys).settle()
            with pytest.raises(CredentialsRefusedError, match="expired"):
                realms.authenticate(Credentials(None, there.token(exp=1)))
            with pytest.raises(CredentialsRefusedError, match="the token is of the issuer 'https://third"):
                realms.authenticate(Credentials(None, there.token(iss="https://third.example")))
            assert realms.authenticate(Credentials(None, there.token())) is not None


# ---- login.config --------------------------------------------------------------------------------


def module(folder: Path, options: str) -> Any:
    """The modules of an Artemis instance: its OIDCLoginModule, then files."""
    (folder / "users.properties").write_text("zoe = secret\n")
    (folder / "roles.properties").write_text("night = ann,zoe\n")
    package = "org.apache.activemq.artemis.spi.core.security.jaas."
    (folder / "login.config").write_text(
        f"activemq {{ {package}OIDCLoginModule sufficient\n{options};\n{package}PropertiesLoginModule required "
        'org.apache.activemq.jaas.properties.user="users.properties" '
        'org.apache.activemq.jaas.properties.role="roles.properties"; };'
    )
    return open_realms(load_core(f'<authentication login-config="{folder}/login.config"/>'))


def test_the_module_of_artemis(there: Provider, tmp_path: Path) -> None:
    realms = module(
        tmp_path, f'provider="{there.issuer}" audience="account" rolesPaths="realm_access.roles" debug=true'
    )
    made = there.token(exp=2_000_000_000)
    with pytest.raises(NotYetError):
        realms.authenticate(Credentials(None, made))
    realms.fetched_keys[0].settle()
    found = realms.authenticate(Credentials(None, made))
    assert found == Identity("number of ann", frozenset({"broker-admin", "offline_access"}), 2_000_000_060_000)
    assert "realm_access.roles" in found.why_these_roles
    assert realms.authenticate(Credentials("zoe", "secret")) == Identity("zoe", frozenset({"night"}))
    assert realms.authenticate(Credentials("zoe", "wrong")) is None
    with pytest.raises(CredentialsRefusedError, match="the token expired at"):
        realms.authenticate(Credentials(None, there.token(exp=1)))


def test_roles_of_a_module_may_come_from_files(there: Provider, tmp_path: Path) -> None:
    options = f'provider="{there.issuer}" audience="account" identityPaths=preferred_username'
    realms = module(tmp_path, options)
    file = tmp_path / "login.config"
    file.write_text(
        file.read_text()
        .replace("OIDCLoginModule sufficient", "OIDCLoginModule required")
        .replace("PropertiesLoginModule required", "PropertiesLoginModule optional")
    )
    realms = open_realms(load_core(f'<authentication login-config="{file}"/>'))
    with pytest.raises(NotYetError):
        realms.authenticate(Credentials(None, there.token()))
    realms.fetched_keys[0].settle()  # type: ignore[attr-defined]
    found = realms.authenticate(Credentials(None, there.token()))
    assert found is not None
    assert (found.user, found.roles, found.why_these_roles) == ("ann", {"night"}, "")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("audience=x", "login.config:1: OIDCLoginModule needs the option provider"),
        ('provider="https://id.example"', "login.config:1: OIDCLoginModule needs the option audience"),
        (
            'provider="https://id.example" audience=x allowPlainJWT=true',
            "config:2: allowPlainJWT is not supported",
        ),
        ('provider="http://id.example" audience=x', "login.config:1: OIDCLoginModule: the provider (option issuer)"),
        ('provider="https://id.example" audience=x maxClockSkew="900"', "login.config:1: OIDCLoginModule: leeway must"),
    ],
)
def test_modules_that_make_no_sense(tmp_path: Path, options: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        module(tmp_path, options)
    assert problem in str(refused.value)


# ---- people --------------------------------------------------------------------------------------


def went_there(there: Provider, here: OidcAuthenticator, user: str = "ann") -> dict[str, str]:
    """What a page has when its user comes back."""
    page = {
        "redirectUri": PAGE,
        "state": "s",
        "nonce": "n" + secrets.token_hex(),
        "verifier": secrets.token_urlsafe(48),
    }
    url = here.begin(page)["url"].removeprefix(f"http://127.0.0.1:{there.port}")
    back = urlsplit(ask(there.port, "POST", url, f"who={user}".encode()).headers["Location"])
    given = {name: values[0] for name, values in parse_qs(back.fragment or back.query).items()}
    assert given["state"] == "s"
    return {
        **{name: page[name] for name in ("redirectUri", "nonce", "verifier")},
        "code": given["code"],
        "issuer": given["iss"],
    }


def test_a_code_becomes_tokens_and_those_new_ones(there: Provider) -> None:
    here = oidc(there)
    told = here.redeem(went_there(there, here))
    assert told["user"] == "ann"
    assert 3_590_000 < told["lasts_ms"] <= 3_600_000
    assert login(here, told["token"]) is not None
    again = here.redeem({"redirectUri": PAGE, "refreshToken": told["refreshToken"]})
    assert (again["user"], again["refreshToken"] != told["refreshToken"]) == ("ann", True)
    with pytest.raises(CredentialsRefusedError, match="refuses it: invalid_grant"):
        here.redeem({"redirectUri": PAGE, "refreshToken": told["refreshToken"]})
    assert "client_secret" not in there.forms[0]


def test_the_url_has_no_secret_and_the_logout_ends_the_session(there: Provider) -> None:
    here = oidc(there)
    page = {"redirectUri": PAGE, "state": "s", "nonce": "n", "verifier": "v" * 43}
    url = here.begin(page)["url"]
    assert "v" * 43 not in url
    assert parse_qs(urlsplit(url).query)["response_mode"] == ["fragment"]
    told = here.redeem(went_there(there, here))
    assert there.sessions == {"ann"}
    logout = told["logout"].removeprefix(f"http://127.0.0.1:{there.port}")
    assert ask(there.port, "GET", logout).headers["Location"] == PAGE
    assert there.sessions == set()


@pytest.mark.parametrize("methods", [["client_secret_basic"], ["client_secret_post"]])
def test_a_client_with_a_secret(there: Provider, methods: list[str]) -> None:
    there.secret, there.methods = "a secret", methods
    here = oidc(there, client_secret="a secret")
    assert here.redeem(went_there(there, here))["user"] == "ann"
    wrong = oidc(there, client_secret="another")
    with pytest.raises(CredentialsRefusedError, match="invalid_client") as refused:
        wrong.redeem(went_there(there, here))
    assert "another" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"verifier": "w" * 43}, "invalid_grant: PKCE verification failed"),
        ({"code": "guessed"}, "invalid_grant: Code not valid"),
        ({"nonce": "another"}, "the provider's ID token is of another login: its nonce is not this page's"),
        ({"issuer": "https://other.example"}, "the code is of the issuer 'https://other.example', not"),
    ],
)
def test_what_belongs_to_another_login(there: Provider, change: dict[str, str], why: str) -> None:
    here = oidc(there)
    with pytest.raises(CredentialsRefusedError) as refused:
        here.redeem({**went_there(there, here), **change})
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"aud": "other"}, "the provider's ID token is for another client"),
        ({"nonce": None}, "the provider's ID token is of another login"),
        ({"exp": 1_000_000_000}, "the token expired at 2001"),
        ({"iss": "https://other.example"}, "the token is of the issuer 'https://other.example'"),
    ],
)
def test_what_is_wrong_with_an_id_token(there: Provider, said: dict[str, Any], why: str) -> None:
    here = oidc(there)
    there.said = said
    with pytest.raises(CredentialsRefusedError) as refused:
        here.redeem(went_there(there, here))
    assert str(refused.value).startswith(why)


def test_a_provider_whose_access_tokens_are_no_jwts(there: Provider) -> None:
    there.access_tokens_are_jwts = False
    here = oidc(there)
    with pytest.raises(CredentialsRefusedError, match="sends no access_token that is a JWT; the option token names"):
        here.redeem(went_there(there, here))
    by_id = oidc(there, token="id_token")
    told = by_id.redeem(went_there(there, by_id))
    found = login(by_id, told["token"])
    assert found is not None
    assert "broker-admin" in found.roles
    assert told["token"] not in told["logout"], "it would let in whoever reads a log of URLs"


def test_a_redirect_uri_that_is_named(there: Provider) -> None:
    named = "https://console.example.org/ui/"
    there.redirects = {named}
    here = oidc(there, redirect_uri=named)
    page = {"redirectUri": PAGE, "state": "s", "nonce": "n", "verifier": "v" * 43}
    with pytest.raises(CredentialsRefusedError, match=r"to the console at https://console\.example\.org/ui/: open it"):
        here.begin(page)
    assert parse_qs(urlsplit(here.begin({**page, "redirectUri": named})["url"]).query)["redirect_uri"] == [named]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"verifier": "short"}, "the verifier must have 43 to 128"),
        ({"state": ""}, "the request lacks state"),
        ({"nonce": "n" * 9000}, "nonce is longer than 8192 characters"),
    ],
)
def test_pages_that_ask_for_too_little_or_too_much(there: Provider, change: dict[str, str], why: str) -> None:
    page = {"redirectUri": PAGE, "state": "s", "nonce": "n", "verifier": "v" * 43}
    with pytest.raises(BadRequestError, match=why):
        oidc(there).begin({**page, **change})
    with pytest.raises(BadRequestError, match="the request lacks code, verifier, nonce"):
        oidc(there).redeem({"redirectUri": PAGE})


def test_nobody_can_log_in_while_the_provider_is_down(there: Provider) -> None:
    here = oidc(there)
    given = went_there(there, here)
    there.status = 500
    with pytest.raises(AuthenticatorError, match="answers with the status 500") as unknown:
        here.redeem(given)
    assert not isinstance(unknown.value, CredentialsRefusedError)
    there.server_close()
    with pytest.raises(AuthenticatorError, match="Connection refused"):
        oidc(there).begin({"redirectUri": PAGE, "state": "s", "nonce": "n", "verifier": "v" * 43})
