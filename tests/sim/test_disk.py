"""The simulated disk does what it says: it forgets and tears what was not synced, and nothing else."""

from __future__ import annotations

import random

import pytest

from artemis_py.storage.disk.disk import DiskError
from tests.kit.disk import SECTOR_BYTES, Fault, PowerCut, SimDisk

SIZE = 4 * SECTOR_BYTES


def _outcomes(prepare: str) -> set[bytes]:
    """What 300 crashes leave of a file of four sectors."""
    left = set()
    for seed in range(300):
        disk = SimDisk(random.Random(seed))
        disk.create("a", SIZE)
        disk.write("a", 0, b"1" * SIZE)
        if prepare == "synced":
            disk.sync("a")
        disk.crash()
        left.add(disk.read("a"))
    return left


def test_synced_writes_survive_every_crash() -> None:
    assert _outcomes("synced") == {b"1" * SIZE}


def test_unsynced_writes_are_kept_lost_and_torn() -> None:
    left = _outcomes("written")
    assert b"1" * SIZE in left
    assert bytes(SIZE) in left
    hole = bytes(SECTOR_BYTES) + b"1" * SECTOR_BYTES
    assert any(one.startswith(hole) for one in left), "no later sector survived an earlier one"
    assert any(one.rstrip(b"\0").count(b"1") % SECTOR_BYTES for one in left), "nothing was torn inside a sector"


def test_a_later_write_may_survive_an_earlier_one() -> None:
    left = set()
    for seed in range(100):
        disk = SimDisk(random.Random(seed))
        disk.create("a", 2)
        disk.write("a", 0, b"1")
        disk.write("a", 1, b"2")
        disk.crash()
        left.add(disk.read("a"))
    assert left == {b"\0\0", b"1\0", b"\0002", b"12"}


def test_a_deleted_file_may_come_back_until_the_directory_is_synced() -> None:
    came_back = 0
    for seed in range(50):
        disk = SimDisk(random.Random(seed))
        for name in "ab":
            disk.create(name, 1)
        disk.delete("a")
        disk.crash()
        came_back += "a" in disk.names()
        disk.delete("b")
        disk.create("c", 1)
        disk.crash()
        assert "b" not in disk.names()
    assert 0 < came_back < 50


def test_the_power_goes_at_the_operation_that_was_named() -> None:
    disk = SimDisk(random.Random(1))
    disk.cut_at = 2
    disk.create("a", 1)
    with pytest.raises(PowerCut):
        disk.write("a", 0, b"1")


@pytest.mark.parametrize("verb", ["create", "write", "sync"])
def test_a_fault_fails_its_verbs_from_then_on(verb: str) -> None:
    disk = SimDisk(random.Random(1))
    disk.create("a", 1)
    disk.fault = Fault(2, "No space left on device", verbs=(verb,))
    for _ in range(2):
        with pytest.raises(DiskError, match="No space left"):
            {
                "create": lambda: disk.create("b", 1),
                "write": lambda: disk.write("a", 0, b"1"),
                "sync": lambda: disk.sync("a"),
            }[verb]()


def test_a_short_write_leaves_a_part() -> None:
    disk = SimDisk(random.Random(1))
    disk.create("a", 100)
    disk.fault = Fault(1, short=True)
    with pytest.raises(DiskError):
        disk.write("a", 0, b"1" * 100)
    assert 0 < disk.read("a").count(b"1") < 100
