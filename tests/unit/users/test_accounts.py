"""Users are added, changed and removed; everything else in the files stays as it was."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from artemis_py.security.users.accounts import Account, Accounts
from artemis_py.security.users.editing import PropertiesText, UsersFileError, replace_file
from artemis_py.security.users.files import UserFiles
from artemis_py.security.users.passwords import PlainPassword

USERS = b"""\
## users\r
\r
bob = builder
 ! of two lines
eve:\\
   snake
zo\xeb = \xfc
"""
ROLES = b"""\
# roles
amq = bob,\\
  eve
guests=eve
"""


def files_in_folder(folder: Path) -> UserFiles:
    return UserFiles(folder / "artemis-users.properties", folder / "artemis-roles.properties")


@pytest.fixture
def files(tmp_path: Path) -> UserFiles:
    files = files_in_folder(tmp_path)
    files.users.write_bytes(USERS)
    files.roles.write_bytes(ROLES)
    return files


def test_all(files: UserFiles) -> None:
    assert Accounts(files).all() == [
        Account("bob", ("amq",), PlainPassword("builder")),
        Account("eve", ("amq", "guests"), PlainPassword("snake")),
        Account("zoë", (), PlainPassword("ü")),
    ]


def test_adding_leaves_the_rest_as_it_is(files: UserFiles) -> None:
    Accounts(files).add("my ann", "pass phrase", ["guests", "new"])
    assert files.users.read_bytes() == USERS + b"my\\ ann = pass phrase\r\n"
    assert files.roles.read_bytes() == ROLES.replace(b"guests=eve", b"guests = eve,my ann") + b"new = my ann\n"


def test_resetting_the_password_or_the_roles(files: UserFiles) -> None:
    Accounts(files).reset("eve", "apple", None)
    assert files.users.read_bytes() == USERS.replace(b"eve:\\\n   snake", b"eve = apple")
    assert files.roles.read_bytes() == ROLES
    Accounts(files).reset("eve", None, ["amq", "view"])
    assert files.users.read_bytes() == USERS.replace(b"eve:\\\n   snake", b"eve = apple")
    assert files.roles.read_bytes() == b"# roles\namq = bob,eve\nview = eve\n"


def test_removing(files: UserFiles) -> None:
    Accounts(files).remove("eve")
    assert files.users.read_bytes() == USERS.replace(b"eve:\\\n   snake\n", b"")
    assert files.roles.read_bytes() == b"# roles\namq = bob\n"


def test_every_line_of_a_user_given_twice_changes(files: UserFiles) -> None:
    files.users.write_bytes(b"bob = old\neve = x\nbob = counts")
    Accounts(files).reset("bob", "new", None)
    assert files.users.read_bytes() == b"eve = x\nbob = new"


def test_files_are_made_for_the_owner_alone(tmp_path: Path) -> None:
    files = files_in_folder(tmp_path)
    Accounts(files).add("bob", "x", [])
    assert (files.users.read_bytes(), files.roles.read_bytes()) == (b"bob = x\n", b"")
    for file in (files.users, files.roles):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        file.chmod(0o644)
    Accounts(files).reset("bob", "y", ["a"])
    assert {stat.S_IMODE(file.stat().st_mode) for file in (files.users, files.roles)} == {0o600}
    assert sorted(os.listdir(tmp_path)) == ["artemis-roles.properties", "artemis-users.properties"]


def test_behind_a_link_the_file_changes(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_bytes(b"a = b\n")
    link = tmp_path / "link"
    link.symlink_to(real)
    replace_file(link, b"c = d\n")
    assert link.is_symlink()
    assert real.read_bytes() == b"c = d\n"


def test_a_write_that_fails_leaves_no_trace(files: UserFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(UsersFileError, match=r"roles.properties: No space left"):
        Accounts(files).add("ann", "x", ["amq"])
    assert (files.users.read_bytes(), files.roles.read_bytes()) == (USERS, ROLES)
    assert len(os.listdir(files.users.parent)) == 2


@pytest.mark.parametrize("name", ["", "a,b", " a", "a ", "a\n", "\x1b[31m"])
def test_names_that_nobody_could_use_are_refused(files: UserFiles, name: str) -> None:
    with pytest.raises(UsersFileError):
        Accounts(files).add(name, "x", [])
    with pytest.raises(UsersFileError):
        Accounts(files).add("ann", "x", [name])
    assert (files.users.read_bytes(), files.roles.read_bytes()) == (USERS, ROLES)


def test_users_that_are_there_or_not(files: UserFiles) -> None:
    with pytest.raises(UsersFileError, match="already has a user bob"):
        Accounts(files).add("bob", "x", [])
    for change in (lambda: Accounts(files).remove("ann"), lambda: Accounts(files).reset("ann", "x", None)):
        with pytest.raises(UsersFileError, match="has no user ann"):
            change()


def test_a_broken_file_is_not_changed(files: UserFiles) -> None:
    files.users.write_bytes(b"# x\nbob = \\u12\n")
    with pytest.raises(UsersFileError, match=r"users.properties: line 2: \\u must be followed"):
        Accounts(files).add("ann", "x", [])
    files.users.unlink()
    files.users.mkdir()
    with pytest.raises(UsersFileError, match=r"users.properties"):
        Accounts(files).all()


def test_two_at_the_same_time_lose_nothing(files: UserFiles) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: Accounts(files).add(f"user{number}", "x", ["many"]), range(40)))
    assert {account.user for account in Accounts(files).all() if account.roles == ("many",)} == {
        f"user{number}" for number in range(40)
    }


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
COMMENT = b"# \xe9 = a comment\\\n"
ROWS = st.lists(st.sampled_from([COMMENT, b"\r\n", b"a=1\n", b"a:\\\n 2\n", b"k\\ x = y\r", b"\n", b"=\n"]))
LAST = st.sampled_from([b"", b"z", b"z = \\", b"# no end"])


@example([b"k\\ x = y\r", b"=\n", b"\n", COMMENT], b"", [("", None), ("", ""), ("", None)])
@given(ROWS, LAST, st.lists(st.tuples(TEXT, TEXT | st.none())))
def test_any_changes_to_any_file(rows: list[bytes], last: bytes, changes: list[tuple[str, str | None]]) -> None:
    text = PropertiesText(b"".join(rows) + last)
    meant = {entry.key: entry.value for entry in text.entries()}
    for key, value in changes:
        if value is None:
            assert text.remove(key) == (key in meant)
            meant.pop(key, None)
        else:
            text.put(key, value)
            meant[key] = value
    again = PropertiesText(text.data)
    assert {entry.key: entry.value for entry in again.entries()} == meant
    assert text.data.count(COMMENT) == rows.count(COMMENT)
