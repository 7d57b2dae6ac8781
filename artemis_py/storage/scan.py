"""Reading journal files without changing them: which files there are, and the records of one that are whole.

It imports nothing but the codec, so that a reader of copied files needs no broker.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from zlib import crc32

from artemis_py.storage.codec import (
    BATCH,
    BATCH_PAYLOAD_BYTES,
    FILE_HEADER_BYTES,
    GROUP,
    PAGE_GREW,
    RECORD_HEADER_BYTES,
    RECORD_NAMES,
    CodecError,
    Record,
    decode_batch,
    decode_record,
    peek_record,
)

_NAME: Final = re.compile(r"artemis-journal-(?P<number>\d{12})(?:-(?P<closed>\d{8}T\d{6}\.\d{3}Z))?\.log", re.ASCII)
_BATCH_LENGTH: Final = BATCH_PAYLOAD_BYTES.to_bytes(4, "little")
_LSN_MAX: Final = (1 << 64) - 1
_SECTOR_BYTES: Final = 512
"""What a disk writes wholly or not at all."""
_EMPTY: Final = bytes(_SECTOR_BYTES)
_LENGTHS_TRIED_MAX: Final = 64
"""At how many whole records behind a damaged one its checksum is tried, as if it ended there."""
_BATCHES_MISSED_MAX: Final = 8
"""How many batches in a row can be damaged before what is behind them no longer counts as proof."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in a file that is not as it was written. ``torn``: the end of a write that a crash interrupted."""

    name: str
    offset: int
    reason: str
    torn: bool
    lost: int = 0
    """How many records it may have cost at most, those inside groups counted."""
    whose: str = ""
    """Of which queues they were, as far as anything tells."""
    end: int = 0
    """Where reading went on behind it; 0: it did not."""

    @property
    def cost(self) -> str:
        """What it costs, to be put behind the reason; empty for nothing."""
        whose = f": {self.whose}" if self.whose else ""
        records = "record" if self.lost == 1 else "records"
        return f" (at most {self.lost} {records} lost{whose})" if self.lost else ""

    def __str__(self) -> str:
        what = "an incomplete write was cut off" if self.torn else "DAMAGED"
        return f"{self.name} at byte {self.offset}: {what}: {self.reason}{self.cost}"


@dataclass(frozen=True, slots=True)
class LogFile:
    """A journal file, in use or retained."""

    path: Path
    number: int
    closed_ms: int | None
    """When it was written to for the last time, as the name of a retained file tells; None in the journal directory."""


def log_file(path: Path) -> LogFile | None:
    """What a path's name says; None when it is not that of a journal file."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        return None
    closed = match["closed"]
    return LogFile(path, int(match["number"]), None if closed is None else _epoch_ms(closed))


def _epoch_ms(text: str) -> int:
    """Cheap, because of a long log there are many names; ``strptime`` takes ten times as long."""
    day, time = (int(text[:4]), int(text[4:6]), int(text[6:8])), (int(text[9:11]), int(text[11:13]), int(text[13:15]))
    return int(datetime(*day, *time, tzinfo=UTC).timestamp()) * 1000 + int(text[16:19])


def log_files(directories: Sequence[Path]) -> list[LogFile]:
    """The journal files of some directories, oldest first, each number once: a retained file goes before one that is
    still in the journal directory (a crash between copying and removing leaves both). Raises OSError.
    """
    return log_files_and_twins(directories, {})[0]


def log_files_and_twins(
    directories: Sequence[Path], known: dict[str, LogFile]
) -> tuple[list[LogFile], list[tuple[LogFile, LogFile]]]:
    """The same, and each file that is there beside one of its number that was left out. ``known`` is what an earlier
    call found, and becomes what this one does: names cost little to list, and more to make files of. Raises OSError.
    """
    found: dict[int, LogFile] = {}
    twins: list[tuple[LogFile, LogFile]] = []
    before = dict(known)
    known.clear()
    for directory in directories:
        for name in filter(is_log_name, os.listdir(directory)):
            at = f"{directory}/{name}"
            file = before.get(at) or log_file(directory / name)
            if file is None:
                continue
            known[at] = file
            other = found.get(file.number)
            if other is None or file.closed_ms is not None:
                found[file.number] = file
            if other is not None:
                twins.append((file, other) if found[file.number] is file else (other, file))
    return [found[number] for number in sorted(found)], twins


def is_log_name(name: str) -> bool:
    """May a file of this name be a journal file? It passes over what stands beside each of them."""
    return name.startswith("artemis-journal-") and name.endswith(".log")


def whole_records(name: str, data: bytes, damages: list[Damage], *, is_last: bool = True) -> Iterator[Record]:
    """The records of one file that are whole. What is not goes to ``damages``, and reading goes on at the next whole
    record if something proves that what follows was durable: another file (the file is not the last), or another batch,
    because a batch is written only when the one before is durable. Without proof it is the torn end of the last write.
    """
    offset = FILE_HEADER_BYTES
    last_lsn = 0
    batch_number = 0
    content_end = len(data.rstrip(b"\0"))
    while True:
        reason = "zeros with more data after them"
        try:
            record = decode_record(data, offset)
        except CodecError as error:
            record = None
            reason = str(error)
        if record is not None:
            yield record
            if record.type_code == BATCH:  # its own number is above those of its records
                batch_number = decode_batch(record.payload).number
            else:
                last_lsn = record.lsn
            offset = record.end
            continue
        following = behind_damage(
            Damage(name, offset, reason, torn=False),
            data,
            content_end,
            damages,
            last_lsn,
            batch_number,
            is_last=is_last,
        )
        if following is None:
            return
        offset = following


def behind_damage(
    damage: Damage,
    data: bytes,
    content_end: int,
    damages: list[Damage],
    last_lsn: int,
    batch_number: int,
    *,
    is_last: bool,
    base: int = 0,
) -> int | None:
    """Where reading goes on behind what is not a whole record; None when nothing follows. What is damaged, or the torn
    end of the last write, goes to ``damages``. ``content_end``: only zeros follow there; ``last_lsn`` and
    ``batch_number`` (0: unknown): of the last whole record but a BATCH, and of the last BATCH before it; ``base``:
    where in its file ``data`` begins.

    In the last batch nothing proves that it was durable. But a crash leaves zeros where a write did not arrive, whole
    sectors of them; so a record without such a hole, with a whole one right behind it, is damaged and not torn.
    """
    offset = damage.offset
    if offset >= content_end:
        return None
    proof = _proof(data, offset, content_end, batch_number)
    lsn_max = _LSN_MAX if proof is None else proof.lsn
    is_proved = proof is not None or not is_last
    following = _next_whole(data, offset, content_end, last_lsn, lsn_max, is_proved=is_proved)
    torn = not is_proved and (following is None or _has_hole(data, base, offset, following))
    damages.append(Damage(damage.name, offset, damage.reason, torn, end=following or content_end))
    return None if torn else following


def _proof(data: bytes, offset: int, content_end: int, batch_number: int) -> Record | None:
    """The BATCH record behind damage that shows that what is before it was durable: with a number that can come next,
    so that a body which looks like a journal proves nothing. When the damaged record says that everything is its own,
    all that follows the BATCH has to be whole, up to the end.
    """
    takes_all = _end_said(data, offset) >= content_end
    while (place := next_batch(data, offset)) is not None:
        record = decode_record(data, place)
        assert record is not None
        number = decode_batch(record.payload).number
        is_next = not batch_number or batch_number < number <= batch_number + _BATCHES_MISSED_MAX
        if is_next and not (takes_all and _whole_from(data, place) < content_end):
            return record
        offset = place + 1
    return None


def _whole_from(data: bytes, offset: int) -> int:
    """Where the whole records end that stand from ``offset`` on without a gap."""
    while (record := _record_at(data, offset)) is not None:
        offset = record.end
    return offset


def _end_said(data: bytes, offset: int) -> int:
    """Where a damaged record says that it ends; 0 when that is nowhere in the file."""
    end = offset + RECORD_HEADER_BYTES + int.from_bytes(data[offset + 4 : offset + 8], "little")
    return end if end <= len(data) else 0


def _has_hole(data: bytes, base: int, offset: int, end: int) -> bool:
    """Does a record begin with a zero, or is a whole sector in it nothing but zeros?"""
    if not data[offset]:
        return True
    start = offset + -(base + offset) % _SECTOR_BYTES
    sectors = range(start, end - _SECTOR_BYTES + 1, _SECTOR_BYTES)
    return any(data[place : place + _SECTOR_BYTES] == _EMPTY for place in sectors)


def inner_records(payload: bytes) -> Iterator[Record]:
    """The records inside a GROUP record. Raises CodecError when they are not whole although the group's checksum is
    right, which no broker writes.
    """
    offset = 0
    while (record := decode_record(payload, offset)) is not None:
        yield record
        offset = record.end


def next_batch(data: bytes, offset: int) -> int | None:
    """Where the next whole BATCH record begins, at ``offset`` or behind it."""
    while (place := data.find(_BATCH_LENGTH, offset + 4)) >= 0:
        offset = place - 4
        if offset + 16 < len(data) and data[offset + 16] == BATCH and _is_whole(data, offset, 0, _LSN_MAX):
            return offset
        offset += 1
    return None


def _next_whole(
    data: bytes, offset: int, content_end: int, last_lsn: int, lsn_max: int, *, is_proved: bool
) -> int | None:
    """Where the next whole record begins: where the damaged one says that it ends, or would end if its length were what
    is damaged in it; else, if something proves that what follows was durable, wherever one is found.
    """
    first = None
    tests = 0
    behind = _end_said(data, offset)
    said = 0
    if offset + RECORD_HEADER_BYTES < behind < content_end and _is_whole(data, behind, last_lsn, lsn_max):
        _, lsn, type_code = peek_record(data, offset)
        if type_code != GROUP:
            said = behind
        elif peek_record(data, behind)[1] > lsn:  # else it is one of those inside
            return behind
    for candidate in range(offset + 1, (said or content_end) - RECORD_HEADER_BYTES + 1):
        if data[candidate + 16] in RECORD_NAMES and _is_whole(data, candidate, last_lsn, lsn_max):
            tests += 1
            if tests <= _LENGTHS_TRIED_MAX and _is_whole_but_for_length(data, offset, candidate):
                return candidate
            first = first or candidate
            if data[candidate + 16] == BATCH or tests > _LENGTHS_TRIED_MAX:
                break
    if said:
        return said
    return None if first is None or not is_proved else _outside_groups(data, first)


def _outside_groups(data: bytes, offset: int) -> int | None:
    """The first of the whole records from ``offset`` on that is surely not the rest of a damaged GROUP: half of what
    counts together must not count. A GROUP takes its number after those inside it, so it is missing behind them; and
    none is inside another. (Before a PAGE_GREW numbers may lack: it can stand in the place of an earlier one.)
    """
    place, last_lsn = offset, 0
    batch: int | None = None
    while (record := _record_at(data, place)) is not None:
        if record.type_code == BATCH:
            if batch is not None or not last_lsn:
                return place if batch is None else batch
            batch = place
            place = record.end
            continue
        lsn = lowest_lsn(record)
        if batch is not None:
            return offset if lsn == last_lsn + 2 else batch
        if last_lsn and lsn != last_lsn + 1 and record.type_code != PAGE_GREW:
            return place
        if record.type_code == GROUP:
            return offset
        last_lsn = record.lsn
        place = record.end
    return batch


def lowest_lsn(record: Record) -> int:
    """The lowest lsn in a record: a GROUP has its own behind those inside it."""
    if record.type_code == GROUP and len(record.payload) > RECORD_HEADER_BYTES:
        return peek_record(record.payload, 0)[1]
    return record.lsn


def _record_at(data: bytes, offset: int) -> Record | None:
    """The record that begins here; None when there is no whole one."""
    try:
        return decode_record(data, offset)
    except CodecError:
        return None


def _is_whole_but_for_length(data: bytes, offset: int, end: int) -> bool:
    """Does the checksum of a record hold, if it ends here?"""
    size = end - offset - RECORD_HEADER_BYTES
    body = size.to_bytes(4, "little") + data[offset + 8 : end] if size >= 0 else b""
    return crc32(body).to_bytes(4, "little") == data[offset : offset + 4]


def _is_whole(data: bytes, offset: int, last_lsn: int, lsn_max: int) -> bool:
    """Is there a record whose checksum holds, with an lsn that can stand here?"""
    if offset + RECORD_HEADER_BYTES > len(data):
        return False
    if not last_lsn < int.from_bytes(data[offset + 8 : offset + 16], "little") <= lsn_max:
        return False
    return _record_at(data, offset) is not None
