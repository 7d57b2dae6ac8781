"""Users are added, changed and removed; everything else in the files stays as it was."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from artemis_py import atomic_files
from artemis_py.atomic_files import replace_file
from artemis_py.security.users.accounts import Account, Accounts, UserFiles
from artemis_py.security.users.passwords import PlainPassword
from artemis_py.security.users.tables import PropertiesText, UsersFileError
from tests.kit.failing_os import FailingOs

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


@pytest.fixture
def files(tmp_path: Path) -> UserFiles:
    files = UserFiles(tmp_path / "artemis-users.properties", tmp_path / "artemis-roles.properties")
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
    files.users.write_bytes(b"bob = old\neve = x\nbob = counts\n")
    Accounts(files).reset("bob", "new", None)
    assert files.users.read_bytes() == b"eve = x\nbob = new\n"


def test_files_are_made_for_the_owner_alone(tmp_path: Path) -> None:
    files = UserFiles(tmp_path / "artemis-users.properties", tmp_path / "artemis-roles.properties")
    Accounts(files).add("bob", "x", [])
    assert (files.users.read_bytes(), files.roles.read_bytes()) == (b"bob = x\n", b"# nobody\n")
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
    """Each call to the system fails once, in turn, until a change gets by."""
    for number in range(100):
        failing_os = FailingOs(("open", "fchmod", "fsync", "replace"))
        failing_os.at = number + 1
        with monkeypatch.context() as patch:
            failing_os.put_in_place(patch, atomic_files)
            with suppress(UsersFileError):
                Accounts(files).add("ann", "x", ["amq"])
                break
        assert (files.users.read_bytes(), files.roles.read_bytes()) == (USERS, ROLES), number
        assert len(os.listdir(files.users.parent)) == 2, number
    assert number > 8
    assert b"ann = x" in files.users.read_bytes()


def test_a_full_disk_leaves_no_trace(tmp_path: Path) -> None:
    """No file of the process may grow beyond a limit, as on a disk that is full."""
    program = """
import resource, signal, sys
from pathlib import Path
from artemis_py.cli.context import Contexts
from artemis_py.cli.init import write
from artemis_py.errors import ArtemisError
from artemis_py.security.users.accounts import Accounts
from artemis_py.security.users.accounts import files_in
from artemis_py.storage.disk.permissions import replace_private
folder = Path(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20, resource.RLIM_INFINITY))
for change in (
    lambda: Accounts(files_in(folder)).add("ann", "x" * 30, ["amq"]),
    lambda: Accounts(files_in(folder)).reset("bob", "y" * 30, ["amq"]),
    lambda: Contexts(folder / "contexts.toml", {"here": {"url": "http://localhost:8161"}}).write(),
    lambda: write(folder / "broker.xml", replaces=True),
    lambda: write(folder / "other.xml"),
    lambda: replace_private(folder / "log-id", b"0" * 33),
):
    try:
        change()
    except (ArtemisError, OSError) as error:
        print("refused:", error)
"""
    before = {
        "artemis-users.properties": b"bob = builder\n",
        "artemis-roles.properties": b"view = bob\n",
        "contexts.toml": b"[old]\n",
        "broker.xml": b"<configuration/>\n",
        "log-id": b"1" * 33,
    }
    for name, data in before.items():
        (tmp_path / name).write_bytes(data)
    ended = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)
    assert ended.stdout.count("refused:") == 6
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("cut", ["users", "roles"])
def test_a_line_that_may_have_been_cut_is_not_completed(files: UserFiles, cut: str) -> None:
    """Another line behind it would give it its end, and it would count."""
    file: Path = getattr(files, cut)
    before = file.read_bytes()[:-2]
    file.write_bytes(before)
    changes: list[Callable[[], object]]
    changes = [lambda: Accounts(files).add("ann", "x", ["amq"]), lambda: Accounts(files).remove("bob")]
    for change in changes:
        with pytest.raises(UsersFileError, match=r"line \d: the last line of the file has no line end"):
            change()
    assert file.read_bytes() == before


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
    changes: list[Callable[[], object]]
    changes = [lambda: Accounts(files).remove("ann"), lambda: Accounts(files).reset("ann", "x", None)]
    for change in changes:
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
