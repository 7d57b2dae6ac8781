"""The names of files that a start had to go without, in a small file beside the journal.

Large bodies and pages that were missing can come back: a file system is mounted again, a copy is put back. By then the
journal needs them no longer, and so they would look like what a crash leaves behind. A later start that finds one of
these names among what nobody needs puts the file aside and removes nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from artemis_py.storage import codec
from artemis_py.storage.body_names import start_of
from artemis_py.storage.codec import CodecError
from artemis_py.storage.disk import Disk
from artemis_py.storage.page_codec import page_numbers
from artemis_py.storage.quarantine import put_aside

NAME: Final = "journal-given-up"
_UNFINISHED: Final = NAME + ".part"
_TYPE: Final = 201


@dataclass(frozen=True, slots=True)
class GivenUp:
    """What the file says. ``fault`` is what is wrong with it: then there may be more names."""

    names: frozenset[str] = frozenset()
    fault: str | None = None

    @property
    def start(self) -> int:
        """The last start whose large bodies may come back: its numbers are not given again. 0: none."""
        return max((start_of(name) or 0 for name in self.names), default=0)

    @property
    def stream(self) -> int:
        """The last stream whose pages may come back: its number is not given again. 0: none."""
        return max((numbers[0] for name in self.names if (numbers := page_numbers(name)) is not None), default=0)


def read_given_up(disk: Disk) -> GivenUp:
    """What the file in a journal directory says. Raises DiskError."""
    if NAME not in disk.names():
        return GivenUp()
    try:
        record = codec.decode_record(disk.read(NAME), 0)
        if record is None:
            raise CodecError("it is empty")
        return GivenUp(frozenset(codec.decode_fields(record.payload)["files"]))
    except (CodecError, KeyError, TypeError, ValueError) as error:
        return GivenUp(fault=f"{NAME} is DAMAGED: {error}")


def note_given_up(disk: Disk, names: Collection[str]) -> None:
    """These as well, durably: to be done before the journal says that nobody needs them. Raises DiskError."""
    told = read_given_up(disk)
    if told.names.issuperset(names):
        return
    if told.fault is not None:
        put_aside(disk, NAME)
    record = codec.encode_record(_TYPE, 0, codec.encode_fields({"files": sorted(told.names.union(names))}))
    disk.begin(_UNFINISHED)
    disk.write(_UNFINISHED, 0, record)
    disk.sync(_UNFINISHED)
    disk.finish(_UNFINISHED)
    disk.rename(_UNFINISHED, NAME)
