"""What is put aside stays, whole, whatever else is put aside under the same name."""

from __future__ import annotations

from contextlib import suppress

from artemis_py.storage.disk.disk import keep_copy
from artemis_py.storage.format.names import page_name, segment_name
from artemis_py.storage.pages import delete_leftovers
from artemis_py.storage.recovery.accept_journal import recover
from tests.kit.crash.prepared import flip, prepare, records
from tests.kit.disk import File, PowerCut, SimDisk

FIRST = segment_name(1)


def _damaged() -> SimDisk:
    """A message in the middle is damaged, and the header, which a start writes again."""
    disk = prepare(2, 3, 2)
    flip(disk, FIRST, records(disk, FIRST)[4].offset + 20)
    flip(disk, FIRST, 12)
    return disk


def test_a_copy_is_whole_wherever_the_power_went() -> None:
    """It had its name before its bytes: the next start took it for the copy, and mended the file."""
    whole = _damaged()
    as_it_was = whole.read(FIRST)
    recover(whole)
    operations = whole.operations - _damaged().operations
    assert operations > 4
    for at in range(1, operations + 1):
        disk = _damaged()
        disk.cut_at = disk.operations + at
        with suppress(PowerCut):
            recover(disk)
        disk.crash()
        recover(disk)
        kept = [disk.read(name) for name in disk.names() if name.startswith("quarantined-") and name.endswith(".log")]
        assert as_it_was in kept, at


def test_a_copy_of_an_older_journal_is_no_copy_of_this_one() -> None:
    disk = _damaged()
    as_it_was = disk.read(FIRST)
    disk.files[f"quarantined-{FIRST}"] = File(bytearray(b"of an older journal"))
    keep_copy(disk, FIRST)
    keep_copy(disk, FIRST)
    kept = {name: disk.read(name) for name in disk.names() if name.startswith("quarantined-")}
    assert list(kept.values()) == [as_it_was, b"of an older journal"], "each once"


def test_a_page_takes_the_place_of_no_other() -> None:
    """A journal that begins anew gives numbers of pages again."""
    disk = prepare(1)
    for content in (b"first", b"second", b"third"):
        disk.files[page_name(1, 1)] = File(bytearray(content))
        delete_leftovers(disk, [], keep=True)
    kept = [disk.read(name) for name in disk.names() if name.startswith("quarantined-")]
    assert sorted(kept) == [b"first", b"second", b"third"]
