"""All sources of users as one authenticator: who is asked, in which order, and what a wrong configuration says."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import final

import pytest

from artemis_py.config.reader import load
from artemis_py.errors import AuthenticatorError, ConfigError
from artemis_py.security import realms
from artemis_py.security.identity import Authenticator, Credentials, Identity
from artemis_py.security.realms import open_realms
from tests.kit.documents import broker_xml

ASKED: list[str] = []


@final
class Club:
    """An authenticator of somebody else: members know the word."""

    def __init__(self, word: str, door_step: str = "front") -> None:
        if word == "wrong":
            raise AuthenticatorError("this word is taken")
        self._word = word
        self._door = door_step

    def authenticate(self, credentials: Credentials) -> Identity | None:
        ASKED.append(self._door)
        if credentials.password == "closed":
            raise AuthenticatorError(f"the {self._door} door is closed")
        return Identity(f"{credentials.user}", frozenset({self._door})) if credentials.password == self._word else None


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    here = __name__
    points = EntryPoints(
        [
            EntryPoint("club", f"{here}:Club", "artemis_py.authenticators"),
            EntryPoint("gone", f"{here}_of_nobody:Club", "artemis_py.authenticators"),
        ]
    )
    monkeypatch.setattr(realms, "entry_points", lambda group: points.select(group=group))
    ASKED.clear()
    yield
    ASKED.clear()


def opened(folder: Path, core: str) -> Authenticator:
    return open_realms(load(broker_xml(folder, core), environ={}))


def club(**options: str) -> str:
    inside = "".join(f'<option name="{name.replace("_", "-")}" value="{value}"/>' for name, value in options.items())
    return f'<authenticator name="club">{inside}</authenticator>'


def test_without_any_source_nobody_gets_in(tmp_path: Path) -> None:
    with pytest.raises(AuthenticatorError, match=r"artemis-users\.properties cannot be read"):
        opened(tmp_path, "").authenticate(Credentials("ann", ""))


def test_sources_are_asked_in_order_until_one_knows(tmp_path: Path) -> None:
    (tmp_path / "artemis-users.properties").write_text("ann = welcome\n")
    (tmp_path / "artemis-roles.properties").write_text("staff = ann\n")
    both = f"<authentication>{club(word='a')}{club(word='ENC(80cf731af62c290)', door_step='back')}</authentication>"
    realms = opened(tmp_path, both)
    assert realms.authenticate(Credentials("ann", "welcome")) == Identity("ann", frozenset({"staff"}))
    assert ASKED == []
    assert realms.authenticate(Credentials("ann", "guest")) == Identity("ann", frozenset({"back"}))
    assert ASKED == ["front", "back"]
    assert realms.authenticate(Credentials("ann", "?")) is None
    with pytest.raises(AuthenticatorError, match="the back door is closed"):
        realms.authenticate(Credentials("ann", "closed"))


def test_a_source_that_does_not_answer_does_not_stop_the_next(tmp_path: Path) -> None:
    realms = opened(tmp_path, f"<authentication>{club(word='a')}{club(word='closed')}</authentication>")
    with pytest.raises(AuthenticatorError):
        realms.authenticate(Credentials("ann", "closed"))
    assert len(ASKED) == 2


def test_users_beside_the_file_do_not_count_beside_a_login_config(tmp_path: Path) -> None:
    (tmp_path / "artemis-users.properties").write_text("ann = welcome\n")
    (tmp_path / "artemis-roles.properties").write_text("")
    (tmp_path / "login.config").write_text(
        "activemq { org.apache.activemq.artemis.spi.core.security.jaas.GuestLoginModule required"
        " credentialsInvalidate=true; };"
    )
    core = '<authentication login-config="login.config"/>'
    assert opened(tmp_path, core).authenticate(Credentials("ann", "welcome")) is None
    named = f"{core}<users-file>artemis-users.properties</users-file>"
    assert opened(tmp_path, named).authenticate(Credentials("ann", "welcome")) == Identity("ann", frozenset())
    alone = opened(tmp_path, named).authenticate(Credentials("ann", "welcome", domain="activemq"))
    assert alone is None  # the domain of a port decides alone


@pytest.mark.parametrize(
    ("authenticator", "reason"),
    [
        (
            '<authenticator name="clubb"/>',
            "there is no authenticator of this name; found 'clubb'; allowed: jwt, ldap, oidc, club",
        ),
        ('<authenticator name="gone"/>', "authenticator gone cannot be loaded: No module named"),
        ('<authenticator name="club"/>', "authenticator club: its options are wrong: "),
        (club(word="a", dress="tie"), "authenticator club: its options are wrong: "),
        (club(word="wrong"), "authenticator club: this word is taken"),
        (club(word="ENC(12)"), "authenticator club: option word: the masked password does not belong to this key"),
    ],
)
def test_what_is_refused(tmp_path: Path, authenticator: str, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        opened(tmp_path, f"\n<authentication>{authenticator}</authentication>")
    (problem,) = (each for each in refused.value.problems if each.severity == "error")
    assert str(problem).startswith(f"{tmp_path}/broker.xml:4: {reason}")
