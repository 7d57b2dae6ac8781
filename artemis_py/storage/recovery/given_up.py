"""The names of files that a start had to do without, in a small file next to the journal.

Missing large bodies and pages can reappear: a file system is mounted again, or a copy is restored. By then the journal
no longer needs them, so they would look like leftovers of a crash. If a later start finds one of these names among
unneeded files, it puts the file aside instead of removing it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from artemis_py.storage.disk.disk import Disk
from artemis_py.storage.disk.quarantine import put_aside
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.names import page_numbers, start_of
from artemis_py.storage.format.records import CodecError

NAME: Final = "journal-given-up"
_UNFINISHED: Final = NAME + ".part"


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The content of the file. ``fault`` says what is wrong with it: then names may be missing."""

    names: frozenset[str] = frozenset()
    fault: str | None = None

    @property
    def start(self) -> int:
        """The last start whose large bodies may reappear: its numbers are not reused. 0: none."""
        return max((start_of(name) or 0 for name in self.names), default=0)

    @property
    def stream(self) -> int:
        """The last stream whose pages may reappear: its number is not reused. 0: none."""
        return max((numbers[0] for name in self.names if (numbers := page_numbers(name)) is not None), default=0)


def read_given_up(disk: Disk) -> GivenUp:
    """Read the file in a journal directory. Raises DiskError."""
    if NAME not in disk.names():
        return GivenUp()
    try:
        record = records.decode_record(disk.read(NAME), 0)
        if record is None:
            raise CodecError("it is empty")
        return GivenUp(frozenset(codec.decode_fields(record.payload)["files"]))
    except (CodecError, KeyError, TypeError, ValueError) as error:
        return GivenUp(fault=f"{NAME} is DAMAGED: {error}")


def note_given_up(disk: Disk, names: Collection[str]) -> None:
    """Add names, durably, before the journal records that they are not needed. Raises DiskError."""
    told = read_given_up(disk)
    if told.names.issuperset(names):
        return
    if told.fault is not None:
        put_aside(disk, NAME)
    record = records.encode_record(records.GIVEN_UP, 0, codec.encode_fields({"files": sorted(told.names.union(names))}))
    disk.begin(_UNFINISHED)
    disk.write(_UNFINISHED, 0, record)
    disk.sync(_UNFINISHED)
    disk.finish(_UNFINISHED)
    disk.rename(_UNFINISHED, NAME)
