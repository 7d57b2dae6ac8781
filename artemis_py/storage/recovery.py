"""Back from the files: read every segment, apply what holds, and say what does not.

A record that is damaged in the last batch of the last segment is a write that a crash tore: everything from it on is
cut, and that harms nothing before it. Damage anywhere else is not explained by a crash. It is reported with file and
offset, the file is copied aside (quarantine), and reading goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from artemis_py.storage import codec
from artemis_py.storage.codec import FILE_HEADER_BYTES, CodecError, Record
from artemis_py.storage.disk import Disk
from artemis_py.storage.index import Index, Segment
from artemis_py.storage.journal import segment_number


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in a file that is not as it was written. ``torn``: the end of a write that a crash interrupted."""

    name: str
    offset: int
    reason: str
    torn: bool

    def __str__(self) -> str:
        what = "an unfinished write was cut off" if self.torn else "DAMAGED"
        return f"{self.name} at byte {self.offset}: {what}: {self.reason}"


@dataclass(slots=True)
class Recovered:
    """What the files say."""

    index: Index = field(default_factory=Index)
    segments: list[Segment] = field(default_factory=list)
    next_lsn: int = 1
    batch_number: int = 0
    record_count: int = 0
    damages: list[Damage] = field(default_factory=list)


def read_segment(name: str, data: bytes, damages: list[Damage]) -> Iterator[Record]:
    """The records of one segment that are whole. What is not goes to ``damages``, and reading goes on at the next whole
    record.
    """
    offset = FILE_HEADER_BYTES
    while True:
        try:
            record = codec.decode_record(data, offset)
        except CodecError as error:
            following = _next_whole(data, offset + 1)
            damages.append(Damage(name, offset, str(error), torn=following is None))
            if following is None:
                return
            offset = following
            continue
        if record is None:
            return
        yield record
        offset = record.end


def _next_whole(data: bytes, offset: int) -> int | None:
    """Where the next whole BATCH record begins: only a batch that began later proves that what is before it was
    durable once.
    """
    end = len(data) - codec.RECORD_HEADER_BYTES
    while offset < end:
        offset = data.find(_BATCH_LENGTH, offset + 4) - 4 if data.find(_BATCH_LENGTH, offset + 4) >= 0 else end
        if offset >= end:
            return None
        try:
            record = codec.decode_record(data, offset)
        except CodecError:
            record = None
        if record is not None and record.type_code == codec.BATCH:
            return offset
        offset += 1
    return None


_BATCH_LENGTH = (16).to_bytes(4, "little")


def recover(disk: Disk, progress: Callable[[int, int], None] | None = None) -> Recovered:
    """Read all segments. ``progress`` is told (bytes read, bytes in all) after each. Raises DiskError."""
    recovered = Recovered()
    names = [name for name in disk.names() if segment_number(name) is not None]
    for place, name in enumerate(names):
        _read_into(recovered, disk, name, is_last=place == len(names) - 1)
        if progress is not None:
            progress(place + 1, len(names))
    recovered.index.drop_orphans()
    return recovered


def _read_into(recovered: Recovered, disk: Disk, name: str, *, is_last: bool) -> None:
    data = disk.read(name)
    try:
        header = codec.decode_file_header(data)
    except CodecError as error:
        if not is_last or any(data[FILE_HEADER_BYTES:]):
            recovered.damages.append(Damage(name, 0, str(error), torn=is_last))
        disk.delete(name) if is_last else _quarantine(disk, name, data)
        return
    segment = Segment(header.number, name, header.first_lsn)
    recovered.segments.append(segment)
    damages: list[Damage] = []
    end = FILE_HEADER_BYTES
    for record in read_segment(name, data, damages):
        recovered.record_count += 1
        apply(recovered, record, segment)
        end = record.end
    segment.written_bytes = end
    for damage in damages:
        if damage.torn and not is_last:
            damage = Damage(name, damage.offset, damage.reason, torn=False)
        recovered.damages.append(damage)
    if any(not damage.torn for damage in recovered.damages if damage.name == name):
        _quarantine(disk, name, data)
    elif damages:
        disk.write(name, end, bytes(len(data) - end))
        disk.sync(name)


def _quarantine(disk: Disk, name: str, data: bytes) -> None:
    copy = f"quarantined-{name}"
    if copy not in disk.names():
        disk.create(copy, 0)
        disk.write(copy, 0, data)
        disk.sync(copy)


def apply(recovered: Recovered, record: Record, segment: Segment) -> None:
    """Add one record to what the files say."""
    index = recovered.index
    recovered.next_lsn = max(recovered.next_lsn, record.lsn + 1)
    kind = record.type_code
    payload = record.payload
    if kind == codec.MESSAGE:
        index.add(codec.decode_message(payload), segment)
    elif kind == codec.SETTLED:
        queue_id, _, message_ids = codec.decode_settled(payload)
        for message_id in message_ids:
            index.settle(queue_id, message_id)
    elif kind == codec.ATTEMPTED:
        index.attempt(*codec.decode_attempted(payload))
    elif kind == codec.DUE:
        queue_id, message_ids = codec.decode_ids(payload)
        index.fall_due(record.lsn, queue_id, message_ids)
    elif kind == codec.GROUP:
        for inner in _records_of(payload):
            apply(recovered, inner, segment)
    elif kind == codec.BATCH:
        recovered.batch_number = max(recovered.batch_number, codec.decode_batch(payload)[0])
    else:
        _apply_binding(recovered, kind, payload, segment)


def _apply_binding(recovered: Recovered, kind: int, payload: bytes, segment: Segment) -> None:
    index = recovered.index
    segment.has_bindings = True
    fields = codec.decode_fields(payload) if kind != codec.DELIVERED else {}
    if kind == codec.ADDRESS:
        index.set_address(fields)
    elif kind == codec.QUEUE:
        index.set_queue(fields)
    elif kind == codec.QUEUE_DELETED:
        index.delete_queue(fields["id"])
    elif kind == codec.DUPLICATE:
        index.add_duplicate_id(fields["address"], fields["id"], 1 << 30)
    elif kind == codec.DUPLICATES_CLEARED:
        index.duplicate_ids.pop(fields["address"], None)


def _records_of(payload: bytes) -> Iterator[Record]:
    offset = 0
    while offset < len(payload):
        record = codec.decode_record(payload, offset)
        if record is None:
            return
        yield record
        offset = record.end
