"""The first user: made once, where broker.xml asks for one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from artemis_py.config.reader import load
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.users.accounts import NEW_PASSWORD, FirstUser, files_of, make_first_user
from artemis_py.security.users.authenticator import PropertiesUsers
from tests.kit.documents import document

ASKED = '<users-file first-user="boss">people</users-file>'


@dataclass(eq=False)
class World:
    """A broker.xml, and what a start makes beside it."""

    folder: Path

    def start(self, core: str = ASKED, chosen: str = "") -> FirstUser | None:
        (self.folder / "broker.xml").write_text(document(core))
        return make_first_user(load(self.folder / "broker.xml", environ={}), {NEW_PASSWORD: chosen} if chosen else {})

    def login(self, user: str, password: str) -> Identity | None:
        files = files_of(load(self.folder / "broker.xml", environ={}))
        return PropertiesUsers(files.users, files.roles).authenticate(Credentials(user, password))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_password_is_made_up_and_told_once(world: World) -> None:
    first = world.start()
    assert first is not None
    assert (first.user, first.role, len(first.password)) == ("boss", "amq", 20)
    assert world.login("boss", first.password) == Identity("boss", frozenset({"amq"}))
    assert first.password not in (world.folder / "people").read_text()
    assert world.start() is None


def test_no_two_are_alike(world: World, tmp_path: Path) -> None:
    passwords = set()
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        first = World(folder).start()
        assert first is not None
        passwords.add(first.password)
    assert len(passwords) == 3


def test_the_environment_chooses(world: World) -> None:
    first = world.start('<users-file first-user="boss" first-role="chief" roles-file="r">people</users-file>', "chosen")
    assert first is not None
    assert first.password == ""
    assert world.login("boss", "chosen") == Identity("boss", frozenset({"chief"}))


@pytest.mark.parametrize(
    "core", ["<users-file>people</users-file>", "", ASKED + "<security-enabled>false</security-enabled>"]
)
def test_nobody_is_made_unasked(world: World, core: str) -> None:
    assert world.start(core) is None
    assert [file.name for file in world.folder.iterdir()] == ["broker.xml"]


def test_an_empty_users_file_stays_empty(world: World) -> None:
    """Somebody has removed every user: that is no first start."""
    (world.folder / "people").touch()
    assert world.start() is None
