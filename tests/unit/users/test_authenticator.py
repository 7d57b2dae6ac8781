"""Logins by the files: who gets in with which roles, when the files are read again, and what time tells."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from unittest.mock import Mock

import pytest

from artemis_py import terminal_output
from artemis_py.errors import AuthenticatorError
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.users.authenticator import PropertiesUsers
from artemis_py.security.users.passwords import hashed
from artemis_py.security.users.tables import users_table

LONG_AGO_S = 1_000_000_000


class World:
    """Two files and who can log in by them."""

    def __init__(self, folder: Path) -> None:
        self.users_file = folder / "users"
        self.roles_file = folder / "roles"
        self.told: list[str] = []
        self.write(
            users=f"bob = builder\nsam = {hashed('i am', 10)}\n", roles="amq = bob,sam\nguests = sam, bob,nobody\n"
        )
        self.users = PropertiesUsers(self.users_file, self.roles_file, tell=self.told.append)

    def write(self, users: str | None = None, roles: str | None = None, at_s: int = LONG_AGO_S) -> None:
        for file, text in ((self.users_file, users), (self.roles_file, roles)):
            if text is not None:
                new = file.with_suffix(".new")
                new.write_text(text, "latin-1")
                os.utime(new, (at_s, at_s))
                new.rename(file)

    def login(self, user: str | None, password: str | None) -> Identity | None:
        return self.users.authenticate(Credentials(user, password))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_who_gets_in(world: World) -> None:
    assert world.login("bob", "builder") == Identity("bob", frozenset({"amq"}))
    assert world.login("sam", "i am") == Identity("sam", frozenset({"amq", "guests"}))
    for user, password in (("bob", "Builder"), ("sam", "x"), ("eve", "x"), ("bob", None), (None, "builder"), ("", "")):
        assert world.login(user, password) is None


def test_nothing_is_trimmed(world: World) -> None:
    """`guests = sam, bob` names a user with a blank."""
    assert world.users.roles_of("bob") == {"amq"}
    assert world.users.roles_of(" bob") == {"guests"}
    assert world.users.roles_of("nobody") == {"guests"}


def test_an_empty_password_lets_nobody_in(world: World) -> None:
    world.write(users="open =\nshut\nbob = builder\n")
    for user in ("open", "shut"):
        assert world.login(user, None) is world.login(user, "") is None
    assert world.login("bob", "builder")


def test_changed_files_are_read_again(world: World) -> None:
    assert world.login("eve", "apple") is None
    world.write(users="eve = apple\n")
    assert world.login("eve", "apple") == Identity("eve", frozenset())
    assert world.login("bob", "builder") is None
    world.write(roles="garden = eve\n")
    assert world.login("eve", "apple") == Identity("eve", frozenset({"garden"}))
    assert world.told == []


def test_unchanged_files_are_not(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change of state is younger than a second in this test, so that second is waited out by an older clock."""
    read: list[bytes] = []
    users = PropertiesUsers(world.users_file, world.roles_file, tell=world.told.append)
    monkeypatch.setattr(users._users, "_parse", lambda data: read.append(data) or users_table(data))
    monkeypatch.setattr("artemis_py.security.users.reloaded._SETTLED_NS", 0)
    for _ in range(3):
        assert users.authenticate(Credentials("bob", "builder"))
    assert len(read) == 1


def test_a_file_that_has_just_changed_is_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its second change may be within the same tick of the file system's clock, and look like no change at all."""
    for file in (world.users_file, world.roles_file):
        file.touch()
    seen = {str(file): file.stat() for file in (world.users_file, world.roles_file)}
    look = os.stat
    monkeypatch.setattr(
        "artemis_py.security.users.reloaded.os.stat", lambda path, **how: seen.get(str(path)) or look(path, **how)
    )
    assert world.login("bob", "builder")
    with world.users_file.open("r+") as written:
        written.write("bob = bulldog")
    assert world.login("bob", "bulldog")


def test_roles_are_read_again_for_other_users(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a last line without a line end is whole, is decided by who there is."""
    monkeypatch.setattr("artemis_py.security.users.reloaded._SETTLED_NS", 0)
    world.write(users="ann = a\n", roles="amq = ann\nview = bob")
    assert world.login("ann", "a") == Identity("ann", frozenset({"amq"}))
    assert "line 2" in world.users.files[1].complaint
    world.write(users="ann = a\nbob = b\n")
    assert world.login("bob", "b") == Identity("bob", frozenset({"view"}))
    assert world.users.files[1].complaint == ""
    world.told.clear()
    world.write(users="ann = a\nbob = b\nbobby = c\n")
    assert world.login("bob", "b") == Identity("bob", frozenset({"view"}))
    (told,) = world.told
    assert "line 2" in told
    assert "stays in force" in told
    assert "line 2" in world.users.files[1].complaint
    world.write(roles="amq = ann\nview = bob\n")
    assert world.login("bobby", "c") == Identity("bobby", frozenset())
    assert world.users.files[1].complaint == ""


def test_a_flaw_is_complained_of_as_long_as_it_is_there(world: World) -> None:
    world.write(users="bob = builder\neve = ENC(100:00\n")
    assert world.login("bob", "builder")
    world.write(users="bob = bulldog\neve = ENC(100:00\n")
    assert world.login("bob", "bulldog")
    assert "line 2" in world.users.files[0].complaint
    assert len(world.told) == 1, "it is told once"
    world.write(users="bob = bulldog\n")
    assert world.login("bob", "bulldog")
    assert world.users.files[0].complaint == ""


def test_without_reload_files_are_read_once(world: World) -> None:
    users = PropertiesUsers(world.users_file, world.roles_file, reloads=False, tell=world.told.append)
    assert users.authenticate(Credentials("bob", "builder"))
    world.write(users="eve = apple\n")
    assert users.authenticate(Credentials("bob", "builder"))


@pytest.mark.parametrize("broken", ["bob = \\u12\n", None])
def test_a_broken_file_keeps_the_users_and_is_told_once(world: World, broken: str | None) -> None:
    assert world.login("bob", "builder")
    if broken is None:
        world.users_file.unlink()
    else:
        world.write(users=broken)
    for _ in range(3):
        assert world.login("bob", "builder")
    reason = "cannot be read: No such file" if broken is None else "line 1: \\u must"
    assert len(world.told) == 1
    assert reason in world.told[0]
    assert "stays in force" in world.told[0]
    assert "builder" not in world.told[0]
    world.write(users="bob = changed\n")
    assert world.login("bob", "changed")
    world.users_file.unlink()
    assert world.login("bob", "changed")
    assert len(world.told) == 2


@pytest.mark.parametrize(
    ("broken", "text"),
    [("bob = \\u12\n", "line=1 warning: \\u must be"), (None, "warning: cannot be read: No such file")],
)
def test_a_line_of_the_log_names_the_file_once(
    world: World, broken: str | None, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal_output._Log, "has_begun", True)
    users = PropertiesUsers(world.users_file, world.roles_file)
    assert users.authenticate(Credentials("bob", "builder"))
    if broken is None:
        world.users_file.unlink()
    else:
        world.write(users=broken)
    assert users.authenticate(Credentials("bob", "builder"))
    (line,) = capsys.readouterr().err.splitlines()
    assert f" ART-2011 file={world.users_file} {text}" in line
    assert line.count(str(world.users_file)) == 1


def test_a_file_that_was_never_there(world: World) -> None:
    world.roles_file.unlink()
    for _ in range(2):
        with pytest.raises(AuthenticatorError, match="roles cannot be read: No such file"):
            world.login("bob", "builder")
    assert world.login("bob", "wrong") is None
    world.write(roles="")
    assert world.login("bob", "builder") == Identity("bob", frozenset())


def test_a_pipe_hangs_nobody(world: World) -> None:
    world.users_file.unlink()
    os.mkfifo(world.users_file)
    with pytest.raises(AuthenticatorError, match="not a regular file"):
        world.login("bob", "builder")


def test_every_refusal_costs_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of HMAC: an unknown user, a plain password, a short hash, the dearest hash."""
    derive = Mock(wraps=hashlib.pbkdf2_hmac)
    monkeypatch.setattr("artemis_py.security.users.passwords.hashlib.pbkdf2_hmac", derive)
    dear = hashed("x", 50)
    world.write(users=f"bob = builder\nsam = {hashed('i am', 10)}\nshort = ENC(7:AB:CD)\nbad = ENC(x)\ndear = {dear}\n")
    costs = set()
    for user in ("bob", "sam", "short", "bad", "dear", "nobody"):
        derive.reset_mock()
        assert world.login(user, "wrong") is None
        calls = [call.args for call in derive.call_args_list]
        costs.add(sum(iterations * -(-length // 20) for _, _, _, iterations, length in calls))
    assert costs == {50 * 4}
    derive.reset_mock()
    assert world.login("bob", "builder")
    assert not derive.called
