"""Files that are made by their name, and directories, are for the broker's user alone."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from artemis_py.storage.disk.permissions import make_private, open_to_others
from artemis_py.storage.format import records
from artemis_py.storage.format.records import FileHeader
from artemis_py.storage.format.segment_index import index_name
from artemis_py.storage.journal.index_files import index_beside
from artemis_py.storage.retention.retention import move


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_all_directories_that_are_made_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_private(tmp_path / "a" / "b" / "c")
    assert [mode_of(tmp_path / name) for name in ("a", "a/b", "a/b/c")] == [0o700] * 3
    make_private(tmp_path / "a" / "b" / "c")
    monkeypatch.chdir(tmp_path)
    make_private(Path("here"))
    assert mode_of(tmp_path / "here") == 0o700


def test_an_index_that_is_made_for_a_reader(tmp_path: Path) -> None:
    segment = tmp_path / "artemis-journal-000000000001.log"
    segment.write_bytes(records.encode_file_header(FileHeader(records.KIND_JOURNAL, 1, 1, 0)))
    index_beside(segment)
    assert mode_of(tmp_path / index_name(segment.name)) == 0o600


def test_a_body_that_is_copied_to_another_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"body")
    rename = os.rename

    def other_file_system(old: Path, new: Path) -> None:
        if old == source:
            raise OSError(errno.EXDEV, "another file system")
        rename(old, new)

    monkeypatch.setattr(os, "rename", other_file_system)
    move(source, target)
    assert (target.read_bytes(), mode_of(target)) == (b"body", 0o600)


@pytest.mark.parametrize(("mode", "is_told"), [(0o700, False), (0o755, False), (0o775, True), (0o702, True)])
def test_directories_in_which_others_write(tmp_path: Path, mode: int, is_told: bool) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(mode)
    lines = open_to_others([folder, folder, tmp_path / "none"])
    assert len(lines) == is_told
    assert all(str(folder) in line and f"{mode:04o}" in line for line in lines)
