"""What a disk has after the power was lost: what was synced, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from artemis_py.storage.disk.disk import DiskError, FileDisk
from artemis_py.testing.disk import MachineDisk


def lose_power(machine: MachineDisk, disk: FileDisk) -> None:
    machine.is_off = True
    changes: list[Callable[[], object]] = [
        lambda: disk.create("new", 1),
        lambda: disk.begin("new"),
        lambda: disk.write("a", 0, b"late"),
        lambda: disk.sync("a"),
        lambda: disk.rename("a", "b"),
        lambda: disk.delete("a"),
    ]
    for change in changes:
        with pytest.raises(DiskError, match="the power is off"):
            change()
    disk.close()
    machine.lose_unsynced()


def test_writes_are_undone_up_to_the_last_sync(tmp_path: Path) -> None:
    machine = MachineDisk()
    disk = machine.open(tmp_path / "data")
    disk.create("a", 4)
    disk.write("a", 0, b"kept")
    disk.sync("a")
    disk.write("a", 1, b"XX")
    disk.write("a", 2, b"YYYYYY")
    disk.begin("begun")
    disk.write("begun", 0, b"gone")
    disk.begin("synced")
    disk.write("synced", 0, b"there")
    disk.sync("synced")
    disk.write("synced", 5, b"!")
    disk.rename("synced", "renamed")
    assert disk.read("a") == b"kXYYYYYY"
    lose_power(machine, disk)
    assert {name: disk.read(name) for name in disk.names()} == {"a": b"kept", "renamed": b"there"}


def test_what_stood_on_the_disk_at_an_orderly_end_stays(tmp_path: Path) -> None:
    machine = MachineDisk()
    disk = machine.open(tmp_path / "data")
    disk.begin("a")
    disk.write("a", 0, b"kept")
    disk.close()
    machine.settle()
    disk = machine.open(tmp_path / "data")
    lose_power(machine, disk)
    assert disk.read("a") == b"kept"


def test_a_full_disk_seems_full_to_whoever_asks(tmp_path: Path) -> None:
    machine = MachineDisk()
    real = machine.space_of(str(tmp_path))
    assert real.used_fraction < 1
    machine.is_full = True
    full = machine.space_of(str(tmp_path))
    assert (full.used_fraction, full.free_bytes, full.total_bytes) == (1.0, 0, real.total_bytes)
