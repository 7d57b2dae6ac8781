"""Reads journal files without changing them: which files exist, and the valid records in each.

It imports only the codec, so that a reader of copied files needs no broker.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from artemis_py.storage.format.codec import decode_batch
from artemis_py.storage.format.records import (
    BATCH,
    BATCH_PAYLOAD_BYTES,
    CHECKED_AT,
    FILE_HEADER_BYTES,
    GROUP,
    LSN_AT,
    PAGE_GREW,
    RECORD_HEADER_BYTES,
    RECORD_NAMES,
    TYPE_AT,
    CodecError,
    Record,
    decode_record,
    encode_record,
    end_said,
    is_whole,
    read_header,
    read_records,
)

_NAME: Final = re.compile(r"artemis-journal-(?P<number>\d{12})(?:-(?P<closed>\d{8}T\d{6}\.\d{3}Z))?\.log", re.ASCII)
_BATCH_LENGTH: Final = encode_record(BATCH, 0, bytes(BATCH_PAYLOAD_BYTES))[CHECKED_AT:LSN_AT]
_LSN_MAX: Final = (1 << 64) - 1
_SECTOR_BYTES: Final = 512
"""A disk writes a sector completely or not at all."""
_EMPTY: Final = bytes(_SECTOR_BYTES)
_LENGTHS_TRIED_MAX: Final = 64
"""At how many valid records after a damaged one to try its checksum as if it ended there."""
_BATCHES_MISSED_MAX: Final = 8
"""How many consecutive batches may be damaged before later ones no longer count as proof."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged place in a file. ``torn``: the end of a write that a crash interrupted."""

    name: str
    offset: int
    reason: str
    torn: bool
    lost: int = 0
    """How many records were lost at most, including those inside groups."""
    whose: str = ""
    """Their queues, as far as known."""
    end: int = 0
    """Where reading continued after it; 0: it did not."""

    @property
    def cost(self) -> str:
        """The loss, to be appended to the reason; empty if there is none."""
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
    """The time of the last write, from the name of a retained file; None in the journal directory."""


def log_file(path: Path) -> LogFile | None:
    """Parse the name of a path; None if it is not that of a journal file."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        return None
    closed = match["closed"]
    return LogFile(path, int(match["number"]), None if closed is None else _epoch_ms(closed))


def _epoch_ms(text: str) -> int:
    """Fast, because a long log has many names; ``strptime`` takes ten times as long."""
    day, time = (int(text[:4]), int(text[4:6]), int(text[6:8])), (int(text[9:11]), int(text[11:13]), int(text[13:15]))
    return int(datetime(*day, *time, tzinfo=UTC).timestamp()) * 1000 + int(text[16:19])


def log_files(directories: Sequence[Path]) -> list[LogFile]:
    """The journal files of some directories, oldest first, each number once: a retained file is preferred to one still
    in the journal directory (a crash between copying and removing leaves both). Raises OSError.
    """
    return log_files_and_twins(directories, {})[0]


def log_files_and_twins(
    directories: Sequence[Path], known: dict[str, LogFile]
) -> tuple[list[LogFile], list[tuple[LogFile, LogFile]]]:
    """The same, and each chosen file that has a second file of its number, with that file. ``known`` is the result of
    an earlier call and is updated: listing names is cheap, parsing them is not. Raises OSError.
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
    """May a file of this name be a journal file? Sidecar files are not."""
    return name.startswith("artemis-journal-") and name.endswith(".log")


def whole_records(
    name: str, data: bytes, damages: list[Damage], *, is_last: bool = True, begin: int = FILE_HEADER_BYTES
) -> Iterator[Record]:
    """The valid records of one file, from ``begin`` on (0: ``data`` is a later part of a file). Damage goes to
    ``damages``, and reading continues at the next valid record if something proves that it was durable: another file
    (the file is not the last), or another batch, because a batch is written only when the previous one is durable.
    Without proof, the damage is the torn end of the last write.
    """
    return read_records(data, begin, _NextRecord(name, data, damages, begin, is_last=is_last).following)


class _NextRecord:
    """Finds where the next valid record begins. What was read before is looked at only when there is damage."""

    def __init__(self, name: str, data: bytes, damages: list[Damage], begin: int, *, is_last: bool) -> None:
        self._name = name
        self._data = data
        self._damages = damages
        self._is_last = is_last
        self._content_end = -1
        self._seen = begin
        """Up to here, these are known:"""
        self._last_lsn = 0
        self._batch_number = 0

    def following(self, offset: int, reason: str) -> int:
        """Where reading continues after no valid record was found at ``offset``; -1 if nothing follows."""
        data = self._data
        if self._content_end < 0:
            self._content_end = len(data.rstrip(b"\0"))
        while self._seen < offset:
            _, length, lsn, type_code = read_header(data, self._seen)
            end = self._seen + RECORD_HEADER_BYTES + length
            if type_code == BATCH:  # its own lsn is above those of its records
                self._batch_number = decode_batch(data[self._seen + RECORD_HEADER_BYTES : end]).number
            else:
                self._last_lsn = lsn
            self._seen = end
        following = behind_damage(
            Damage(self._name, offset, reason or "zeros with more data after them", torn=False),
            data,
            self._content_end,
            self._damages,
            self._last_lsn,
            self._batch_number,
            is_last=self._is_last,
        )
        if following is None:
            return -1
        self._seen = following
        return following


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
    """Where reading continues after an invalid record; None if nothing follows. The damage, or the torn end of the last
    write, goes to ``damages``. ``content_end``: only zeros follow. ``last_lsn`` and ``batch_number`` (0: unknown):
    those of the last valid record other than a BATCH, and of the last BATCH before it. ``base``: where ``data`` begins
    in its file.

    Nothing proves that the last batch was durable. But where a write did not arrive, a crash leaves whole sectors of
    zeros; so a record without such a hole, directly followed by a valid one, is damaged and not torn.
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
    """The BATCH record after damage which proves that the data before it was durable. It must have a plausible next
    number, so that a body that looks like a journal proves nothing. If the damaged record claims everything up to the
    end, everything after the BATCH must be valid.
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
    """Where the consecutive valid records from ``offset`` on end."""
    while (record := _record_at(data, offset)) is not None:
        offset = record.end
    return offset


def _end_said(data: bytes, offset: int) -> int:
    """Where a damaged record claims to end; 0 if that is outside the file."""
    if offset + RECORD_HEADER_BYTES > len(data):
        return 0
    end = end_said(data, offset)
    return end if end <= len(data) else 0


def _has_hole(data: bytes, base: int, offset: int, end: int) -> bool:
    """Does a record begin with a zero, or contain a sector of only zeros?"""
    if not data[offset]:
        return True
    start = offset + -(base + offset) % _SECTOR_BYTES
    sectors = range(start, end - _SECTOR_BYTES + 1, _SECTOR_BYTES)
    return any(data[place : place + _SECTOR_BYTES] == _EMPTY for place in sectors)


def next_batch(data: bytes, offset: int) -> int | None:
    """Where the next valid BATCH record begins, from ``offset`` on."""
    while (place := data.find(_BATCH_LENGTH, offset + CHECKED_AT)) >= 0:
        offset = place - CHECKED_AT
        if offset + TYPE_AT < len(data) and data[offset + TYPE_AT] == BATCH and _is_whole(data, offset, 0, _LSN_MAX):
            return offset
        offset += 1
    return None


def _next_whole(
    data: bytes, offset: int, content_end: int, last_lsn: int, lsn_max: int, *, is_proved: bool
) -> int | None:
    """Where the next valid record begins: where the damaged one claims to end, or would end if only its length is
    damaged; otherwise, if something proves that the following data was durable, wherever one is found.
    """
    first = None
    tests = 0
    behind = _end_said(data, offset)
    said = 0
    if offset + RECORD_HEADER_BYTES < behind and _is_whole(data, behind, last_lsn, lsn_max):
        _, _, lsn, type_code = read_header(data, offset)
        if type_code != GROUP:
            said = behind
        elif read_header(data, behind)[2] > lsn:  # otherwise it is one of those inside
            return behind
    for candidate in range(offset + 1, (said or content_end) - RECORD_HEADER_BYTES + 1):
        if data[candidate + TYPE_AT] in RECORD_NAMES and _is_whole(data, candidate, last_lsn, lsn_max):
            tests += 1
            if tests <= _LENGTHS_TRIED_MAX and _is_whole_but_for_length(data, offset, candidate):
                return candidate
            first = first or candidate
            if data[candidate + TYPE_AT] == BATCH or tests > _LENGTHS_TRIED_MAX:
                break
    if said:
        return said
    return None if first is None or not is_proved else _outside_groups(data, first)


def _outside_groups(data: bytes, offset: int) -> int | None:
    """The first valid record from ``offset`` on that cannot be part of a damaged GROUP, which counts as a whole or not
    at all; None if there is none. A GROUP takes its lsn after its inner records: behind them one lsn is missing. Groups
    are not nested. (An lsn may also be missing before a PAGE_GREW, which can replace an earlier one.)
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
    """The lowest lsn in a record: a GROUP's own lsn follows those inside it."""
    if record.type_code == GROUP and len(record.payload) >= RECORD_HEADER_BYTES:
        return read_header(record.payload, 0)[2]
    return record.lsn


def _record_at(data: bytes, offset: int) -> Record | None:
    """The valid record that begins here, or None."""
    try:
        return decode_record(data, offset)
    except CodecError:
        return None


def _is_whole_but_for_length(data: bytes, offset: int, end: int) -> bool:
    """Is the checksum of a record right if it ends here?"""
    checksum, _, lsn, type_code = read_header(data, offset)
    if end < offset + RECORD_HEADER_BYTES:  # zeros before a record are none, and nothing is inside of them
        return not checksum
    return read_header(encode_record(type_code, lsn, data[offset + RECORD_HEADER_BYTES : end]), 0)[0] == checksum


def _is_whole(data: bytes, offset: int, last_lsn: int, lsn_max: int) -> bool:
    """Is there a record with a right checksum and a plausible lsn?"""
    if offset + RECORD_HEADER_BYTES > len(data):
        return False
    return last_lsn < read_header(data, offset)[2] <= lsn_max and is_whole(data, offset)
