"""``artemis-py ha``: what is tried, what is said of a file system, and that one without locks is found out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from unittest.mock import Mock

import pytest

from artemis_py.cli import main as cli
from artemis_py.storage.disk.disk import LockedError
from artemis_py.storage.disk.lock import DirectoryLock, this_process
from artemis_py.storage.disk.lock_check import LockHolder, file_system_of, held_lock, trials
from tests.kit.forks import COMMAND

MOUNTS = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:44 / /srv rw - xfs /dev/vdb rw
31 22 0:45 / /srv/a\040b rw,relatime shared:2 master:3 - nfs4 nas:/export rw,vers=4.2
32 31 0:46 / /srv/over rw - tmpfs tmpfs rw
33 31 0:47 / /srv/over rw - fuse.s3fs s3fs rw
bad line
"""


@pytest.mark.parametrize(
    ("directory", "kind", "is_local"),
    [
        ("/var/x", "ext4", True),
        ("/srv", "xfs", True),
        ("/srvice", "ext4", True),
        ("/srv/a b/journal", "nfs4", False),
        ("/srv/over", "fuse.s3fs", False),
    ],
)
def test_the_file_system_of_a_directory(directory: str, kind: str, is_local: bool) -> None:
    found = file_system_of(Path(directory), MOUNTS)
    assert (found.kind, found.is_local) == (kind, is_local)


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    assert file_system_of(tmp_path, "") == ("unknown", "", False)
    assert file_system_of(tmp_path).kind != "unknown"


def test_a_file_system_that_excludes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ha", "check", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["excludes"] is True
    names = {each["name"]: each["passed"] for each in told["trials"]}
    assert names == {"excludes": True, "releases": True, "notices": True, "syncs": None}
    assert os.listdir(tmp_path) == []


def test_a_holder_that_somebody_else_has_started(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As on another machine: this process has to be kept out by it."""
    holder = subprocess.Popen([*COMMAND, "ha", "hold", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert cli.main(["ha", "check", str(tmp_path)]) == 0
        first, second, _ = capsys.readouterr().out.splitlines()
        assert first.startswith(f"{tmp_path}: ")
        assert second.startswith("yes  this process was kept out: ")
        assert f"(process {holder.pid} on host " in second
        holder.send_signal(signal.SIGINT)
        assert holder.wait(120) == 130
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.interpreted
def test_a_holder_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with held_lock(tmp_path), monkeypatch.context() as elsewhere:
        elsewhere.setattr("artemis_py.storage.disk.lock._BOOT_ID", str(tmp_path / "other"))
        (tmp_path / "other").write_text("another-boot\n")
        assert cli.main(["ha", "check", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("\nTwo brokers on these two machines can share it.\n")


@pytest.mark.interpreted
def test_a_file_system_that_lets_both_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing_excludes = Mock(DirectoryLock)
    monkeypatch.setattr("artemis_py.storage.disk.lock_check.DirectoryLock", nothing_excludes)
    assert cli.main(["ha", "check", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "NO   a second process got the lock, too"
    assert lines[2] == "NO   a lock file that was replaced was not noticed"
    assert lines[-1].startswith("Do not run two brokers on it")


def test_another_machine_that_has_the_same_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its holder goes on writing while this process has the lock."""
    probe = tmp_path / "ha-check"
    probe.mkdir()
    beats = iter(range(1000))

    def sleep(_seconds: float) -> None:
        (probe / "holder").write_bytes(this_process(f"{next(beats)}").text)

    sleep(0)
    monkeypatch.setattr("artemis_py.storage.disk.lock_check.time.sleep", sleep)
    (finding,) = trials(tmp_path, LockHolder)
    assert finding.passed is False
    assert finding.told.startswith(f"this process got the lock, and process {os.getpid()} on host ")


def test_what_a_holder_that_was_killed_left_is_no_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artemis_py.storage.disk.lock_check._SILENT_S", 0.05)
    (tmp_path / "ha-check").mkdir()
    (tmp_path / "ha-check" / "holder").write_bytes(this_process("1").text)
    assert cli.main(["ha", "check", str(tmp_path)]) == 0


@pytest.mark.interpreted
def test_a_lock_that_is_not_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process is killed, and the file system goes on as if it lived."""
    monkeypatch.setattr("artemis_py.storage.disk.lock_check._RELEASED_S", 0.03)
    found = trials(tmp_path, lambda: Mock(lock=DirectoryLock(tmp_path / "ha-check")))
    assert next(found).passed
    released = next(found)
    assert (released.name, released.passed) == ("releases", False)


def test_nothing_can_be_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ha", "check", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"{tmp_path}/none is not a directory\n"
    with held_lock(tmp_path), pytest.raises(LockedError), held_lock(tmp_path):
        pass
    assert cli.main(["ha", "hold", str(tmp_path / "none")]) == 2


def test_a_holder_that_is_killed_leaves_the_lock(tmp_path: Path) -> None:
    holder = subprocess.Popen([*COMMAND, "ha", "hold", str(tmp_path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    holder.kill()
    holder.communicate()
    DirectoryLock.soon(tmp_path / "ha-check", 120).release()
