"""How programs log in at a broker: where a login may come from, and that nothing shows its secrets."""

from __future__ import annotations

import argparse
import base64
import pickle
from pathlib import Path

import pytest

from artemis_py.cli import context, logins
from artemis_py.errors import ArtemisError
from artemis_py.security.client_login import PASSWORD, TOKEN, USER, ClientLogin, completed
from artemis_py.security.client_tls import ClientTls, tls_of

NAMED = {name: f"option {name}" for name in ("user", "password", "passwordFile", "token", "tokenFile")}
FILES = {name: f"option {name}" for name in ("caFile", "certificateFile", "keyFile")}


def said(given: dict[str, str], environment: dict[str, str] | None = None) -> tuple[str | None, str | None, str | None]:
    login = completed(given, environment or {}, NAMED)
    return login.user, login.password, login.token


def test_options_come_before_files_before_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(" p ä:ss \r\nmore".encode())
    everything = {USER: "eve", PASSWORD: "env"}
    assert said({}) == (None, None, None)
    assert said({}, everything) == ("eve", "env", None)
    assert said({"user": "ann"}, everything) == ("ann", "env", None)
    assert said({"user": "ann", "password": "p"}, everything) == ("ann", "p", None)
    assert said({"user": "ann", "passwordFile": str(file)}, everything) == ("ann", " p ä:ss ", None)
    assert said({"tokenFile": str(file)}, everything) == (None, None, " p ä:ss ")
    assert said({}, {TOKEN: "t", PASSWORD: "unused"}) == (None, None, "t")
    assert said({"user": "ann"}) == ("ann", None, None)


@pytest.mark.parametrize(
    ("given", "environment", "words"),
    [
        ({"user": "a", "password": "x9", "passwordFile": "f"}, {}, "option password and option passwordFile both"),
        ({"token": "x9", "tokenFile": "f"}, {}, "option token and option tokenFile both"),
        ({"user": "a", "token": "x9"}, {}, "a token is the whole login; leave out option user"),
        ({"password": "x9"}, {}, "a password needs a user: give option user"),
        ({}, {USER: "a", TOKEN: "x9"}, f"{USER} and {TOKEN} are both set"),
        ({"user": "a", "password": "x9\n"}, {}, "the password has a line break"),
        ({"user": "a", "passwordFile": "/no/where"}, {}, "option passwordFile: /no/where cannot be read: No such file"),
        ({"user": "a", "passwordFile": "/"}, {}, "option passwordFile: / cannot be read: Is a directory"),
        ({"tokenFile": "/dev/null"}, {}, "the first line of /dev/null is empty"),
        ({"tokenFile": "/dev/zero"}, {}, "the first line of /dev/zero is too long"),
    ],
)
def test_what_makes_no_login(given: dict[str, str], environment: dict[str, str], words: str) -> None:
    with pytest.raises(ArtemisError, match=words) as refused:
        completed(given, environment, NAMED)
    assert "x9" not in str(refused.value)


def test_what_is_sent() -> None:
    login = ClientLogin("ann", "s:ä")
    assert login.authorization == "Basic " + base64.b64encode("ann:s:ä".encode()).decode()
    assert login.passcode == "s:ä"
    token = ClientLogin(token="a.b")
    assert (token.authorization, token.passcode, token.user) == ("Bearer a.b", "a.b", None)
    assert ClientLogin().authorization is None


def test_nothing_shows_a_secret() -> None:
    for one in (ClientLogin("ann", "s3cret"), ClientLogin(token="s3cret"), ClientTls(None, b"s3cret", b"s3cret")):
        assert "s3cret" not in f"{one!r} {one} {one:}"
        assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("url", "plain", "user"),
    [
        ("http://broker:1", "http://broker:1", None),
        ("http://ann@broker:1/x", "http://broker:1/x", "ann"),
        ("stomp://an%40n@[::1]:2", "stomp://[::1]:2", "an@n"),
    ],
)
def test_a_url_may_name_a_user(url: str, plain: str, user: str | None) -> None:
    assert context.without_user(url) == (plain, user)


def test_a_url_must_not_have_a_password() -> None:
    with pytest.raises(ArtemisError, match="must not contain a password") as refused:
        context.without_user("http://ann:s3cret@broker")
    assert "s3cret" not in str(refused.value)


def test_commands_take_a_user_from_the_url_and_a_password_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("s3cret\n")
    parser = argparse.ArgumentParser()
    logins.add_login(parser)
    logins.add_tls(parser)
    args = parser.parse_args(["--password-file", str(tmp_path / "p"), "--no-verify"])
    assert logins.login_of(args, "ann") == ClientLogin("ann", "s3cret")
    assert logins.spark_options(args) == {"passwordFile": str(tmp_path / "p"), "verify": "false"}
    assert not logins.tls_of(args).verifies


@pytest.mark.parametrize(
    ("given", "verifies", "words"),
    [
        ({"keyFile": "/k"}, True, "option keyFile needs option certificateFile"),
        ({"caFile": "/no/where"}, True, "option caFile: /no/where cannot be read"),
        ({"caFile": "/dev/null"}, False, "has no meaning if certificates are not verified"),
        ({"caFile": "/etc/hostname"}, True, "caFile contains no certificates"),
        ({"certificateFile": "/etc/hostname"}, True, "certificateFile and keyFile are not a certificate with its key"),
    ],
)
def test_files_that_say_nothing_about_tls(given: dict[str, str], verifies: bool, words: str) -> None:
    with pytest.raises(ArtemisError, match=words):
        tls_of(given, verifies=verifies, named=FILES)
