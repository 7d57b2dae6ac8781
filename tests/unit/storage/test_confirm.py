"""A file is confirmed to be where others look for it: by its directory while no name changes, else by itself."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import Mock, call

import pytest

from artemis_py.storage.disk.disk import DiskError, FileDisk
from tests.kit.files import age

NAMES = ("one.log", "two.log")
SECOND_NS = 10**9
HOUR_S = 3600


def made(folder: Path) -> FileDisk:
    """Two files that were written to."""
    files = FileDisk(folder)
    for name in NAMES:
        files.create(name, 4096)
        files.write(name, 0, b"data")
    return files


@pytest.mark.interpreted
def test_a_file_is_looked_at_again_only_when_names_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = made(tmp_path)
    age(tmp_path, HOUR_S)
    stat = Mock(wraps=os.stat)
    monkeypatch.setattr(os, "stat", stat)
    for _ in range(5):
        for name in NAMES:
            files.confirm(name)
    for name in NAMES:
        assert stat.mock_calls.count(call(f"{tmp_path}/{name}")) == 1
    (tmp_path / "other").touch()
    for name in NAMES:
        files.confirm(name)
    for name in NAMES:
        assert stat.mock_calls.count(call(f"{tmp_path}/{name}")) == 2


def test_two_changes_with_one_time(tmp_path: Path) -> None:
    """Where a file system counts in seconds the second cannot be seen: so soon after one nothing is believed."""
    files = made(tmp_path)
    now_ns = (time.time_ns() // SECOND_NS - 1) * SECOND_NS
    os.utime(tmp_path, ns=(now_ns, now_ns))
    files.confirm(NAMES[0])
    (tmp_path / NAMES[0]).unlink()
    os.utime(tmp_path, ns=(now_ns, now_ns))
    with pytest.raises(DiskError, match=r"one\.log: No such file"):
        files.confirm(NAMES[0])


VANISHING: dict[str, Callable[[Path], object]] = {
    "removed": lambda folder: (folder / NAMES[0]).unlink(),
    "replaced": lambda folder: (
        (folder / "new").write_bytes((folder / NAMES[0]).read_bytes()),
        (folder / "new").rename(folder / NAMES[0]),
    ),
    "the directory moved": lambda folder: folder.rename(folder.with_name("elsewhere")),
    "the directory replaced": lambda folder: (folder.rename(folder.with_name("elsewhere")), folder.mkdir()),
}


@pytest.mark.parametrize("vanish", VANISHING.values(), ids=VANISHING)
@pytest.mark.parametrize("again", [False, True])
def test_what_vanishes_after_a_quiet_hour(tmp_path: Path, vanish: Callable[[Path], object], *, again: bool) -> None:
    folder = tmp_path / "journal"
    files = made(folder)
    age(folder, HOUR_S)
    for _ in range(3):
        files.confirm(NAMES[0])
    vanish(folder)
    confirm = files.confirm_again if again else partial(files.confirm, NAMES[0])
    with pytest.raises(DiskError, match="removed or replaced while the broker ran"):
        confirm()


def test_a_directory_that_tells_nothing_of_its_names(tmp_path: Path) -> None:
    """On a file system without times of directories it is noticed all the same, when nothing is written."""
    files = made(tmp_path)
    age(tmp_path, HOUR_S)
    told = os.stat(tmp_path)
    for name in NAMES:
        files.confirm(name)
    (tmp_path / NAMES[1]).unlink()
    os.utime(tmp_path, ns=(told.st_atime_ns, told.st_mtime_ns))
    files.confirm(NAMES[1])
    with pytest.raises(DiskError, match=r"two\.log: No such file"):
        files.confirm_again()
