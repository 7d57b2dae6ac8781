"""What a start finds in the journal's files, and to which queues lost records belonged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from mypy_extensions import mypyc_attr

from artemis_py.storage.disk.disk import Disk, DiskError
from artemis_py.storage.format import codec
from artemis_py.storage.format.names import segment_name, segment_number
from artemis_py.storage.format.records import (
    ATTEMPTED,
    BATCH,
    DUE,
    FILE_HEADER_BYTES,
    GROUP,
    IDS_FIELDS,
    KIND_JOURNAL,
    MESSAGE,
    RECORD_HEADER_BYTES,
    RECORD_NAMES,
    SETTLED,
    TYPE_AT,
    CodecError,
    FileHeader,
    Record,
    VersionError,
    decode_file_header,
    end_said,
    is_whole,
)
from artemis_py.storage.format.scan import Damage, lowest_lsn, next_batch, whole_records
from artemis_py.storage.format.segment_index import decode_index, index_name
from artemis_py.storage.journal.bindings_copy import read_copy
from artemis_py.storage.journal.extent import JournalExtent, StoredExtent, read_extent
from artemis_py.storage.journal.index import Index, Replayed, Segment, apply
from artemis_py.storage.journal.settings import JournalStart
from artemis_py.storage.recovery.missing_files import MissingFiles
from artemis_py.terminal_output import many

# ---- lost ------------------------------------------------------------------------------------------------------------
#
# Finds out which queues lost records belonged to, as far as the remaining bytes tell. A message's record names its
# queues and its address, and bindings say which queues an address has: if one is damaged, the other still helps.
# Otherwise the record counts as unknown.


UNKNOWN: Final = "of unknown queues"
_LOOKED_AT_BYTES: Final = 1 << 20
_OF_A_QUEUE: Final = frozenset({SETTLED, ATTEMPTED, DUE})
"""Records that begin with the queue's number."""
_QUEUE: Final = IDS_FIELDS.only("queue")


@mypyc_attr(allow_interpreted_subclasses=True)
class QueueNames:
    """The names of an index's queues, by number and by address: built once for all damaged places."""

    def __init__(self, index: Index) -> None:
        self.by_number = {number: str(fields.get("name")) for number, fields in index.queues.items()}
        self.by_address: dict[bytes, dict[int, str]] = {}
        for number, fields in index.queues.items():
            queues = self.by_address.setdefault(str(fields.get("address")).encode(), {})
            queues[number] = self.by_number[number]


class _Lost:
    """The findings in damaged bytes."""

    def __init__(self, names: QueueNames) -> None:
        self.messages: set[str] = set()
        """Queues of messages."""
        self.ends: set[str] = set()
        """Queues of events of messages."""
        self.count = 0
        self._names = names.by_number
        self._at = names.by_address

    def walk(self, data: bytes) -> bool:
        """Walk over consecutive records with wrong bytes; False if nothing was found."""
        before = self.count
        place = 0
        while place + RECORD_HEADER_BYTES <= len(data):
            end = _end_of(data, place)
            self._note(data[place + RECORD_HEADER_BYTES : end], data[place + TYPE_AT], is_valid=is_whole(data, place))
            place = end
        return self.count > before

    def _note(self, payload: bytes, type_code: int, *, is_valid: bool) -> None:
        if (type_code == GROUP or is_whole(payload, 0)) and self.walk(payload):
            self.count += 1
        elif names := self._queues_of_message(payload, is_message=type_code == MESSAGE):
            self.messages |= names
            self.count += 1
        elif type_code in _OF_A_QUEUE and (name := self._named(payload)) is not None:
            self.ends.add(name)
            self.count += 1
        elif is_valid:
            self.count += 1

    def _named(self, payload: bytes) -> str | None:
        """The name of the queue at the beginning of a payload; None if there is none."""
        number: int | None = _QUEUE.unpack_from(payload)[0] if len(payload) >= _QUEUE.size else None
        return None if number is None else self._names.get(number)

    def _queues_of_message(self, payload: bytes, *, is_message: bool) -> set[str]:
        """Empty if it names no queue or is not a message."""
        with suppress(CodecError):
            readings = codec.readings_of_message(payload)
            for address, queue_ids in readings:
                queues = self._at.get(address)
                if queues is not None:  # the number is wrong: it may be any of these
                    is_sure = bool(queue_ids) and all(number in queues for number in queue_ids)
                    return {queues[number] for number in queue_ids} if is_sure else set(queues.values())
            _, said = readings[0]
            if is_message and all(number in self._names for number in said):  # the address is wrong
                return {self._names[number] for number in said}
        return set()


def whose(data: bytes, names: QueueNames, lost: int) -> str:
    """For people: the queues of the at most ``lost`` records that were in ``data``."""
    found = _Lost(names)
    if len(data) <= _LOOKED_AT_BYTES:
        found.walk(data)
    told = [f"messages of {_shown(found.messages)}"] if found.messages else []
    if found.ends:
        told.append(f"events of messages of {_shown(found.ends)}")
    if not found.count:
        told.append(UNKNOWN)
    elif lost > found.count:
        told.append(f"{lost - found.count} {UNKNOWN}")
    return "; ".join(told)


def whose_file(disk: Disk, name: str, index: Index) -> str:
    """For people: the queues with messages in a missing file, according to its index if that still exists."""
    addresses: list[str] | None = None
    with suppress(DiskError, CodecError, KeyError):
        addresses = decode_index(disk.read(index_name(name)))["addresses"]
    if addresses is None:
        return f"its messages were {UNKNOWN}"
    names = {str(fields.get("name")) for fields in index.queues.values() if fields.get("address") in addresses}
    if names:
        return f"its messages were of {_shown(names)}"
    at = f" (only of addresses: {_shown(set(addresses))})" if addresses else ""
    return f"it had no messages of existing queues{at}"


def _shown(names: set[str]) -> str:
    return ", ".join(sorted(names))


def _end_of(data: bytes, place: int) -> int:
    """Where a record ends: where it says, if it is valid, if the data ends there or if a valid record follows;
    otherwise before the next valid one.
    """
    said = end_said(data, place)
    if said == len(data) or (said < len(data) and (is_whole(data, place) or is_whole(data, said))):
        return said
    for candidate in range(place + RECORD_HEADER_BYTES, len(data) - RECORD_HEADER_BYTES + 1):
        if data[candidate + TYPE_AT] in RECORD_NAMES and is_whole(data, candidate):
            return candidate
    return len(data)


# ---- examination -----------------------------------------------------------------------------------------------------
#
# Examines the files of a journal as a whole, without changing anything. A damaged record in the last batch of the
# last segment is a write torn by a crash: everything from it on is ignored, and nothing before it is harmed. A crash
# does not explain damage anywhere else; reading continues after it. Nothing counts as a leftover only because
# something else is missing: the required files are recorded (``extent``), each file's header says where the previous
# file ended, and lost bindings are restored from their copy (``bindings_copy``). Whatever remains unexplained is
# reported, by name and count.


LOST_RECORDS_MAX: Final = 1000
"""If more records are lost, a person must allow the broker to start without them."""
MOVES_NAME: Final = "journal-repair"
"""This file exists if a repair was interrupted while moving files."""
REPAIRED_NAME: Final = "journal-repaired"
"""This file exists if the journal was repaired and no broker has started on it since."""
_KNOWN_END: Final = "the file ends here, but its records continued"


@dataclass(slots=True)
class Reading:
    """One file as read."""

    segment: Segment
    size_bytes: int
    header: FileHeader | None
    """None if it is damaged."""
    damages: list[Damage] = field(default_factory=list)
    record_count: int = 0
    torn_from: int = -1
    """Everything from here on is ignored: the end of an incomplete write. -1: the whole file counts."""
    before_lsn: int = 0
    """The lsn of the last record in the previous files."""

    @property
    def is_empty(self) -> bool:
        """Does it have no valid record?"""
        return self.record_count == 0


@dataclass(slots=True)
class Examined(Replayed):
    """The content of the files, and what is wrong with them."""

    readings: list[Reading] = field(default_factory=list)
    record_count: int = 0
    damages: list[Damage] = field(default_factory=list)
    stored: StoredExtent = field(default_factory=lambda: StoredExtent(None, 0, ()))
    leftovers: list[str] = field(default_factory=list)
    """Deleted files that reappeared after a crash."""
    missing: list[str] = field(default_factory=list)
    """Required files that are missing."""
    whose_missing: dict[str, str] = field(default_factory=dict)
    """For each missing file, the queues of its messages, as far as known."""
    foreign: list[str] = field(default_factory=list)
    """A line for each file that is not what its name says, or does not follow the previous file."""
    orphans: dict[int, int] = field(default_factory=dict)
    """The number of messages of unknown queues, which are recorded neither as existing nor as deleted."""
    is_half_repaired: bool = False
    is_repaired: bool = False
    restored: list[str] = field(default_factory=list)
    """Bindings found only in their copy."""
    copy_faults: list[str] = field(default_factory=list)
    absent: list[MissingFiles] = field(default_factory=list)
    """What other directories lack entirely, if they were checked (``missing_files``)."""

    @property
    def segments(self) -> list[Segment]:
        """The segments with content."""
        return [reading.segment for reading in self.readings if not reading.is_empty]

    @property
    def start(self) -> JournalStart:
        """Where a journal goes on behind these files."""
        return JournalStart(
            index=self.index,
            segments=self.segments,
            next_lsn=self.next_lsn,
            batch_number=self.batch_number,
            damaged_places=sum(not damage.torn for damage in self.damages),
            lost_records=self.lost_records,
        )

    @property
    def lost_records(self) -> int:
        """How many records are lost at most, not counting missing files."""
        return sum(damage.lost for damage in self.damages if not damage.torn)

    @property
    def is_whole(self) -> bool:
        """Does a crash explain everything that is wrong?"""
        return not (self.missing or self.foreign) and all(damage.torn for damage in self.damages)

    @property
    def tells_all(self) -> bool:
        """Is everything not named here surely unneeded? Not if the journal is damaged, repaired or missing."""
        return self.is_whole and not self.is_repaired and bool(self.segments)

    @property
    def reasons(self) -> list[str]:
        """Why a broker must not start with this journal without permission, one line each; empty if it may."""
        lines = ["a repair was interrupted; run it again"] if self.is_half_repaired else []
        lines += [f"{name} is missing: {self.whose_missing[name]}" for name in self.missing] + self.foreign
        lines += [
            f"{reading.segment.name} has no whole record"
            for reading in self.readings
            if reading.is_empty and any(not damage.torn for damage in reading.damages)
        ]
        if not self.is_whole or self.stored.extent is None:
            for queue_id, count in self.orphans.items():
                lines.append(f"queue number {queue_id}, whose name is lost, has {many(count, 'message')}")
        if self.lost_records > LOST_RECORDS_MAX:
            lines.append(f"up to {many(self.lost_records, 'record')} lost")
        return lines

    @property
    def losses(self) -> list[str]:
        """The same for everything checked: the journal, large bodies, pages."""
        return [*self.reasons, *map(str, self.absent)]


def examine(disk: Disk, progress: Callable[[int, int], None] | None = None) -> Examined:
    """Read all segments; nothing is changed. ``progress`` gets (files read, files in total) after each. Raises
    DiskError, and VersionError for a file of another format version.
    """
    told = read_extent(disk)
    found = _read_all(disk, told, (), progress)
    if not found.is_whole:
        records, faults = read_copy(disk)
        if records:
            known = set(found.index.queues), set(found.index.addresses), set(found.index.cursors)
            found = _read_all(disk, told, records, progress)
            found.restored = _restored(found, *known)
        found.copy_faults = faults
    found.whose_missing = {name: whose_file(disk, name, found.index) for name in found.missing}
    names = disk.names()
    found.is_half_repaired, found.is_repaired = MOVES_NAME in names, REPAIRED_NAME in names
    found.orphans = {
        queue_id: len(messages) for queue_id, messages in found.index.orphans().items() if queue_id not in found.deleted
    }
    found.index.queue_id_max = max([found.index.queue_id_max, *found.orphans])
    return found


def _restored(found: Examined, queues: set[int], addresses: set[str], cursors: set[str]) -> list[str]:
    index = found.index
    names = [f"queue {fields.get('name')}" for queue_id, fields in index.queues.items() if queue_id not in queues]
    names += [f"address {name}" for name in index.addresses if name not in addresses]
    return names + [f"cursor {name}" for name in index.cursors if name not in cursors]


def _read_all(
    disk: Disk, told: StoredExtent, copied: Sequence[Record], progress: Callable[[int, int], None] | None
) -> Examined:
    """Read the required files in order, with the ``copied`` records merged at their places."""
    found = Examined(stored=told)
    names = _in_order(found, disk)
    reader = _Reader(found, list(copied))
    for place, (number, name) in enumerate(names):
        reader.read(disk, name, number, is_last=place == len(names) - 1)
        if progress is not None:
            progress(place + 1, len(names))
    reader.end()
    return found


def _in_order(found: Examined, disk: Disk) -> list[tuple[int, str]]:
    """The required files, by number. If a file's header and name differ, the header counts, unless another file has
    that number.
    """
    named = {number: name for name in disk.names() if (number := segment_number(name)) is not None}
    files: dict[int, str] = {}
    strays: list[tuple[int, str]] = []
    for number, name in named.items():
        try:
            header = decode_file_header(disk.read(name, 0, FILE_HEADER_BYTES))
        except CodecError:
            files[number] = name
            continue
        if header.number == number or header.kind != KIND_JOURNAL:
            files[number] = name
        else:
            strays.append((header.number, name))
            found.foreign.append(f"the header of {name} says that it is file {header.number}")
    for number, name in strays:
        files.setdefault(number, name)
    extent = found.stored.extent
    first = extent.first if extent is not None else min(files, default=1)
    last = max([*files, 0 if extent is None else extent.last])
    found.missing = [segment_name(number) for number in range(first, last + 1) if number not in files]
    while first - 1 in files:  # it was leaving, but may not have been retained yet
        first -= 1
    found.leftovers = [name for number, name in sorted(files.items()) if number < first]
    return sorted((number, name) for number, name in files.items() if number >= first)


class _Reader:
    """Reads files in order and estimates the cost of damage: lsns are consecutive, so the records before and after it
    show how many are lost.
    """

    def __init__(self, found: Examined, copied: list[Record]) -> None:
        self._found = found
        self._copied = copied
        self._copied_place = 0
        self._last_lsn = 0
        self._batch_lsn = 0
        """The lsn of the last BATCH, whose records follow it and have lower lsns."""
        self._next_batch_lsn = 0
        """The lsn of the last BATCH after the open damage."""
        self._begun_lsn = -1
        """Before the first file: the lsn preceding its header's, which may be that of a BATCH."""
        self._damaged: dict[tuple[str, int], bytes] = {}
        """The bytes at damaged places, by file and offset."""
        self._open: tuple[Reading, int] | None = None
        """Damage after which no record was read yet, by its index in its reading's list."""

    def read(self, disk: Disk, name: str, number: int, *, is_last: bool) -> None:
        """The next file."""
        data = disk.read(name)
        extent = self._found.stored.extent
        is_reached = extent is not None and number <= extent.last
        end_lsn = extent.end_lsn if extent is not None and extent.last == number else 0
        before = self._found.readings[-1] if self._found.readings else None
        reading = Reading(Segment(number, name, 0), len(data), None, before_lsn=self._last_lsn)
        self._found.readings.append(reading)
        self._read_header(reading, data, may_be_torn=is_last and not is_reached)
        header = reading.header
        if header is not None:
            data += bytes(max(header.made_bytes - len(data), 0))  # nothing is left where a file was cut off
            if before is None:
                self._last_lsn = self._begun_lsn = header.first_lsn - 1
            else:
                self._join(before, header.before_lsn)
        self._read_records(reading, data, may_be_torn=is_last and not end_lsn)
        if end_lsn:
            self._join(reading, end_lsn)
        elif is_last and header is not None and reading.size_bytes < header.made_bytes:
            self._cut_off(reading, data, header.made_bytes)

    def end(self) -> None:
        """All files are read."""
        found = self._found
        for record in self._copied[self._copied_place :]:
            if record.lsn < found.next_lsn or found.missing:
                self._apply_copied(record)
        names = QueueNames(found.index) if any(reading.damages for reading in found.readings) else None
        for reading in found.readings:
            found.damages += [self._named(damage, names) for damage in reading.damages]
        found.finish()

    def _named(self, damage: Damage, names: QueueNames | None) -> Damage:
        """Add the queues of lost records, now that the bindings are known."""
        if names is None or damage.torn or not damage.lost:
            return damage
        data = self._damaged.get((damage.name, damage.offset), b"")
        return replace(damage, whose=whose(data, names, damage.lost))

    # ---- one file --------------------------------------------------------------------------------

    def _read_header(self, reading: Reading, data: bytes, *, may_be_torn: bool) -> None:
        """A damaged header counts as torn if the file's first write may have been its last: no second batch proves that
        the first was durable.
        """
        try:
            reading.header = decode_file_header(data)
            reading.segment.first_lsn = reading.header.first_lsn
        except VersionError:
            raise
        except CodecError as error:
            first = next_batch(data, FILE_HEADER_BYTES)
            is_torn = may_be_torn and (first is None or next_batch(data, first + 1) is None)
            reading.damages.append(Damage(reading.segment.name, 0, str(error), torn=is_torn))

    def _read_records(self, reading: Reading, data: bytes, *, may_be_torn: bool) -> None:
        """Keep the cost per record minimal: records are only weighed after damage."""
        segment, damages, found = reading.segment, reading.damages, self._found
        told = len(damages)
        last_lsn = self._last_lsn
        is_plain = not (self._copied or reading.header is None or self._open is not None)
        record: Record | None = None
        for record in whole_records(segment.name, data, damages, is_last=may_be_torn):
            reading.record_count += 1
            if is_plain and len(damages) == told and record.type_code != BATCH:
                last_lsn = record.lsn
            else:
                if len(damages) != told:
                    told = len(damages)
                    self._open = reading, told - 1
                self._last_lsn = last_lsn
                self._note(reading, record)
                last_lsn = self._last_lsn
                is_plain = not (self._copied or reading.header is None or self._open is not None)
            apply(found, record, segment)
        self._last_lsn = last_lsn
        for damage in damages:
            if not damage.torn:
                self._damaged[damage.name, damage.offset] = data[damage.offset : damage.end]
        if len(damages) != told:
            last = damages[-1]
            self._open = None if last.torn else (reading, len(damages) - 1)
            reading.torn_from = last.offset if last.torn else -1
        found.record_count += reading.record_count
        segment.written_bytes = FILE_HEADER_BYTES if record is None else record.end
        segment.last_lsn = last_lsn

    def _note(self, reading: Reading, record: Record) -> None:
        """Note a BATCH, or a record if damage is open."""
        segment = reading.segment
        if not segment.first_lsn:
            segment.first_lsn = record.lsn
        if record.type_code == BATCH:
            self._next_batch_lsn = record.lsn
            if self._open is None:
                self._batch_lsn = record.lsn
            return
        if reading.header is None:
            segment.first_lsn = min(segment.first_lsn, lowest_lsn(record))
        if self._open is not None:
            self._weigh(lowest_lsn(record))
        if self._copied:
            self._apply_copies_before(record.lsn, segment)
        self._last_lsn = record.lsn

    # ---- what is lost ----------------------------------------------------------------------------

    def _weigh(self, lsn: int) -> None:
        """The record after damage was read; it has this lsn."""
        assert self._open is not None
        reading, place = self._open
        self._open = None
        lost = lsn - self._last_lsn - 1 - (self._last_lsn < self._batch_lsn < lsn)
        if not self._last_lsn:  # the numbers before may be of files that went long ago
            damage = reading.damages[place]
            lost = min(lost, ((damage.end or reading.size_bytes) - damage.offset) // RECORD_HEADER_BYTES)
        reading.damages[place] = replace(reading.damages[place], lost=max(lost, 0))
        self._batch_lsn = self._next_batch_lsn

    def _join(self, before: Reading, end_lsn: int) -> None:
        """Everything read so far, ending with ``before``, must end with this lsn (0: unknown)."""
        if not end_lsn:
            return
        name = before.segment.name
        if self._last_lsn > end_lsn and self._last_lsn == self._begun_lsn:  # only BATCH records so far
            self._last_lsn = end_lsn
        elif self._last_lsn > end_lsn:
            self._found.foreign.append(
                f"{name} continues to record {self._last_lsn}, but the log left it after record {end_lsn}: the file "
                "is from another time than the others"
            )
        elif self._last_lsn < end_lsn:
            if self._open is None and not self._found.missing:
                before.damages.append(Damage(name, before.segment.written_bytes, _KNOWN_END, torn=False))
                self._open = before, len(before.damages) - 1
            if self._open is not None:
                self._weigh(end_lsn + 1)
            self._last_lsn = end_lsn
            self._found.next_lsn = max(self._found.next_lsn, end_lsn + 2)
        self._open = None

    def _cut_off(self, reading: Reading, data: bytes, made_bytes: int) -> None:
        """The last file is shorter than at its creation. Zeros at its end show that its records ended before that."""
        reason = f"the file ends here, but was created with {made_bytes} bytes"
        rest = data[reading.segment.written_bytes : reading.size_bytes]
        is_harmless = len(rest) >= RECORD_HEADER_BYTES and not rest.strip(b"\0")
        reading.damages.append(Damage(reading.segment.name, reading.size_bytes, reason, torn=False))
        if not is_harmless:
            self._found.foreign.append(f"{reading.segment.name} is truncated: what was after its end is unknown")

    # ---- the copy of bindings --------------------------------------------------------------------

    def _apply_copies_before(self, lsn: int, segment: Segment) -> None:
        place, copied = self._copied_place, self._copied
        while place < len(copied) and copied[place].lsn < lsn:
            apply(self._found, copied[place], segment)
            place += 1
        self._copied_place = place

    def _apply_copied(self, record: Record) -> None:
        readings = self._found.readings
        apply(self._found, record, readings[-1].segment if readings else Segment(0, "", 0))


def kept_extent(examined: Examined) -> JournalExtent | None:
    """The extent if the findings are accepted; None if there are no files. The end recorded by an orderly stop stays:
    the next records go to a new file.
    """
    segments = examined.segments
    if not segments:
        return None
    last = segments[-1]
    told = examined.stored.extent
    end_lsn = told.end_lsn if told is not None and told.last == last.number else 0
    return JournalExtent(segments[0].number, last.number, end_lsn)
