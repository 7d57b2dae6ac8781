"""Back from the files: read every segment, apply what holds, and say what does not.

A record that is damaged in the last batch of the last segment is a write that a crash tore: everything from it on is
cut, and that harms nothing before it. Damage anywhere else is not explained by a crash. It is reported with file and
offset, the file is copied aside (quarantine), and reading goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from artemis_py.paged import Page, PlaceSet, Settled
from artemis_py.storage import codec, page_codec
from artemis_py.storage.codec import FILE_HEADER_BYTES, CodecError, FileHeader, Record, VersionError
from artemis_py.storage.disk import Disk
from artemis_py.storage.index import Index, Segment
from artemis_py.storage.journal import segment_number
from artemis_py.storage.scan import Damage, inner_records, next_batch, whole_records


@dataclass(slots=True)
class Recovered:
    """What the files say."""

    index: Index = field(default_factory=Index)
    segments: list[Segment] = field(default_factory=list)
    next_lsn: int = 1
    batch_number: int = 0
    record_count: int = 0
    damages: list[Damage] = field(default_factory=list)


def recover(disk: Disk, progress: Callable[[int, int], None] | None = None) -> Recovered:
    """Read all segments. ``progress`` is told (files read, files in all) after each. Raises DiskError."""
    recovered = Recovered()
    names = _without_leftovers(disk)
    for place, name in enumerate(names):
        _read_into(recovered, disk, name, is_last=place == len(names) - 1)
        if progress is not None:
            progress(place + 1, len(names))
    recovered.index.drop_orphans()
    return recovered


def _without_leftovers(disk: Disk) -> list[str]:
    """The segments in order. Numbers have no gaps, so what is below one was deleted and came back: it goes again."""
    names = [name for name in disk.names() if segment_number(name) is not None]
    numbers = [segment_number(name) or 0 for name in names]
    for place in range(len(names) - 1, 0, -1):
        if numbers[place - 1] != numbers[place] - 1:
            for name in names[:place]:
                disk.delete(name)
            return names[place:]
    return names


def _read_into(recovered: Recovered, disk: Disk, name: str, *, is_last: bool) -> None:
    data = disk.read(name)
    segment = Segment(segment_number(name) or 0, name, 0)
    found: list[Damage] = []
    header_damage = _read_header(segment, data, is_last=is_last)
    if header_damage is not None:
        found.append(header_damage)
    end = FILE_HEADER_BYTES
    for record in whole_records(name, data, found, is_last=is_last):
        recovered.record_count += 1
        if not segment.first_lsn:
            segment.first_lsn = record.lsn
        apply(recovered, record, segment)
        end = record.end
    segment.written_bytes = end
    recovered.damages.extend(found)
    if any(not damage.torn for damage in found):
        _quarantine(disk, name, data)
    elif found:
        disk.write(name, end, bytes(max(len(data) - end, 0)))
    if end == FILE_HEADER_BYTES and is_last:
        disk.delete(name)
        return
    recovered.segments.append(segment)
    if header_damage is not None:
        header = FileHeader(codec.KIND_JOURNAL, segment.number, segment.first_lsn, 0)
        disk.write(name, 0, codec.encode_file_header(header))
    if found:
        disk.sync(name)


def _read_header(segment: Segment, data: bytes, *, is_last: bool) -> Damage | None:
    """Read a file's header. What is wrong with it is torn when the file's first write can have been its last: in the
    last file, unless a second batch proves that the first was durable. Raises VersionError for a file of another
    version of the format.
    """
    try:
        segment.first_lsn = codec.decode_file_header(data).first_lsn
    except VersionError:
        raise
    except CodecError as error:
        first = next_batch(data, FILE_HEADER_BYTES)
        is_torn = is_last and (first is None or next_batch(data, first + 1) is None)
        return Damage(segment.name, 0, str(error), torn=is_torn)
    return None


def _quarantine(disk: Disk, name: str, data: bytes) -> None:
    """Keep a copy of a damaged file as it is; the file itself stays in use for what is whole in it."""
    copy = f"quarantined-{name}"
    if copy not in disk.names():
        disk.create(copy, 0)
        disk.write(copy, 0, data)
        disk.sync(copy)


def apply(recovered: Recovered, record: Record, segment: Segment) -> None:
    """Add one record to what the files say."""
    index = recovered.index
    if record.lsn >= recovered.next_lsn:
        recovered.next_lsn = record.lsn + 1
    kind = record.type_code
    payload = record.payload
    if kind == codec.MESSAGE:
        index.add(codec.decode_message(payload), segment)
    elif kind == codec.SETTLED:
        queue_id, _, message_ids, _ = codec.decode_settled(payload)
        for message_id in message_ids:
            index.settle(queue_id, message_id)
    elif kind == codec.ATTEMPTED:
        queue_id, message_id, attempts, due_ms, _, _ = codec.decode_attempted(payload)
        index.attempt(queue_id, message_id, attempts, due_ms)
    elif kind == codec.DUE:
        queue_id, message_ids, _ = codec.decode_ids(payload)
        index.fall_due(record.lsn, queue_id, message_ids)
    elif kind == codec.GROUP:
        for inner in inner_records(payload):
            apply(recovered, inner, segment)
    elif kind == codec.BATCH:
        batch = codec.decode_batch(payload)
        recovered.batch_number = max(recovered.batch_number, batch.number)
        index.message_id_max = max(index.message_id_max, batch.message_id)
        index.queue_id_max = max(index.queue_id_max, batch.queue_id)
    elif kind in _PAGE_RECORDS:
        segment.has_bindings = True
        _PAGE_RECORDS[kind](index, payload)
    elif kind in _BINDINGS:  # all others are for readers of the log, or of a later version
        _apply_binding(recovered, kind, payload, segment)


def _page_opened(index: Index, payload: bytes) -> None:
    fields = codec.decode_fields(payload)
    index.pages.open(Page(fields["stream"], fields["page"], fields["first_place"]), fields["address"])


def _page_settled(index: Index, payload: bytes) -> None:
    told = page_codec.decode_page_settled(payload)
    page = index.pages.find(told.stream, told.page)
    if page is not None:
        index.pages.settle(told.queue_id, page, told.places, told.size_bytes)


def _page_purged(index: Index, payload: bytes) -> None:
    told = page_codec.decode_page_purged(payload)
    page = index.pages.find(told.stream, told.page)
    if page is not None:
        index.pages.purge(told.queue_id, page, told.kept_places, told.kept_bytes)


def _page_attempted(index: Index, payload: bytes) -> None:
    told = page_codec.decode_page_attempted(payload)
    page = index.pages.find(told.stream, told.page)
    if page is not None:
        index.pages.attempt(told.queue_id, page, told.place, told.attempts, told.due_ms)


def _page_places(index: Index, payload: bytes) -> None:
    queue_id, stream, number, first_place, count, size_bytes, bits = page_codec.decode_places(payload)
    page = index.pages.find(stream, number)
    if page is not None:
        index.pages.restore_settled(queue_id, page, Settled(PlaceSet(first_place, bits), count, size_bytes))


_PAGE_RECORDS: Final[dict[int, Callable[[Index, bytes], None]]] = {
    codec.PAGE_OPENED: _page_opened,
    codec.PAGE_GREW: lambda index, payload: index.pages.grow(page_codec.decode_grew(payload)),
    codec.PAGE_SETTLED: _page_settled,
    codec.PAGE_PURGED: _page_purged,
    codec.PAGE_ATTEMPTED: _page_attempted,
    codec.PAGE_DROPPED: lambda index, payload: index.pages.drop(*page_codec.decode_page_dropped(payload)),
    codec.PAGE_PLACES: _page_places,
}


_BINDINGS: Final = frozenset(
    {codec.ADDRESS, codec.QUEUE, codec.QUEUE_DELETED, codec.DUPLICATE, codec.DUPLICATES_CLEARED, codec.CURSOR}
)


def _apply_binding(recovered: Recovered, kind: int, payload: bytes, segment: Segment) -> None:
    index = recovered.index
    segment.has_bindings = True
    fields = codec.decode_fields(payload)
    if kind == codec.ADDRESS:
        index.set_address(fields)
    elif kind == codec.QUEUE:
        index.set_queue(fields)
    elif kind == codec.QUEUE_DELETED:
        index.delete_queue(fields["id"])
    elif kind == codec.CURSOR:
        index.set_cursor(fields)
    elif kind == codec.DUPLICATE:
        index.add_duplicate_id(fields["address"], fields["id"], 1 << 30)
    elif kind == codec.DUPLICATES_CLEARED:
        index.duplicate_ids.pop(fields["address"], None)
