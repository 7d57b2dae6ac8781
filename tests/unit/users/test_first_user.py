"""The first user: made once, where broker.xml asks for one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from artemis_py.config.reader import load
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.users import accounts
from artemis_py.security.users.accounts import NEW_PASSWORD, FirstUser, make_first_user
from artemis_py.security.users.authenticator import PropertiesUsers
from artemis_py.security.users.passwords import hashed
from tests.kit.documents import broker_xml
from tests.kit.users import CHEAP

ASKED = '<users-file first-user="boss">people</users-file>'


def start(folder: Path, core: str = ASKED, chosen: str = "") -> FirstUser | None:
    """What a start makes beside a broker.xml, with a cheap hash."""
    file = broker_xml(folder, core)
    with patch.object(accounts, "hashed", partial(hashed, iterations=CHEAP)):
        return make_first_user(load(file, environ={}), {NEW_PASSWORD: chosen} if chosen else {})


def test_the_password_is_made_up_and_told_once(tmp_path: Path) -> None:
    first = start(tmp_path)
    assert first is not None
    assert (first.user, first.role, len(first.password)) == ("boss", "amq", 20)
    users = PropertiesUsers(tmp_path / "people", tmp_path / "artemis-roles.properties")
    assert users.authenticate(Credentials("boss", first.password)) == Identity("boss", frozenset({"amq"}))
    assert first.password not in (tmp_path / "people").read_text()
    assert start(tmp_path) is None


def test_no_two_are_alike(tmp_path: Path) -> None:
    passwords = set()
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        first = start(folder)
        assert first is not None
        passwords.add(first.password)
    assert len(passwords) == 3


def test_the_environment_chooses(tmp_path: Path) -> None:
    first = start(
        tmp_path, '<users-file first-user="boss" first-role="chief" roles-file="r">people</users-file>', "chosen"
    )
    assert first is not None
    assert first.password == ""
    users = PropertiesUsers(tmp_path / "people", tmp_path / "r")
    assert users.authenticate(Credentials("boss", "chosen")) == Identity("boss", frozenset({"chief"}))


@pytest.mark.parametrize(
    "core", ["<users-file>people</users-file>", "", ASKED + "<security-enabled>false</security-enabled>"]
)
def test_nobody_is_made_unasked(tmp_path: Path, core: str) -> None:
    assert start(tmp_path, core) is None
    assert [file.name for file in tmp_path.iterdir()] == ["broker.xml"]


def test_an_empty_users_file_stays_empty(tmp_path: Path) -> None:
    """Somebody has removed every user: that is no first start."""
    (tmp_path / "people").touch()
    assert start(tmp_path) is None
