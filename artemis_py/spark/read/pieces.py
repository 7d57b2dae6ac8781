"""Reads pieces of the log for tasks, whole or as excerpts, and checks that they are the planned bytes, complete and
undamaged.
"""

from __future__ import annotations

import logging
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from artemis_py.errors import PipelineError
from artemis_py.spark.decode.columns import Numbers
from artemis_py.spark.decode.record_walk import Piece, Walk, walk
from artemis_py.spark.log.log import GoneError, Log
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.plan import Range
from artemis_py.spark.tables.reading import Wanted
from artemis_py.storage.format import records
from artemis_py.storage.format.address_index import NUMBERS, Part, Table, decode_table, part_bytes
from artemis_py.storage.format.records import BATCH_PAYLOAD_BYTES, RECORD_HEADER_BYTES, CodecError

if TYPE_CHECKING:
    from artemis_py.storage.format.scan import Damage

_logger = logging.getLogger(__name__)


def piece(one: Range, log: Log, options: ReadOptions) -> Walk | None:
    """The records of a part of a segment. Raises PipelineError for removed or damaged data, unless losses are allowed;
    then the result may be None.
    """
    try:
        data = log.read(one.segment, one.begin, one.end, one.name)
    except GoneError as error:
        if options.fails_on_loss:
            raise PipelineError(f"{error}; {WITH_LOSS}") from None
        _logger.warning("%s; its rows are skipped", error)
        return None
    damages: list[Damage] = []
    found = walk(Piece(f"segment {one.segment}", data, one.begin, one.time_ms, is_last=False), damages)
    check_planned(one, found)
    check_whole(one, data, damages, options)
    return found


WITH_LOSS: Final = "skip it with failOnDataLoss=false"


def check_planned(one: Range, found: Walk) -> None:
    """Check that these are the planned bytes: a piece begins with the batch named by the index. Raises PipelineError if
    another log is now in this place.
    """
    if not len(found.places) or found.places[0]:  # nothing, or damage: told elsewhere
        return
    if found.kinds[0] != records.BATCH or found.times_ms[0] != one.time_ms:
        raise PipelineError(
            f"segment {one.segment} is not the one that was planned: the log was replaced by another one or an older "
            "copy while it was read. Read it again"
        )


def check_whole(one: Range, data: bytes, damages: list[Damage], options: ReadOptions) -> None:
    """Check that all bytes are there and undamaged. Raises PipelineError, or logs it if losses are allowed."""
    problems = [str(damage) for damage in damages]
    if len(data) < one.end - one.begin:
        problems.append(f"segment {one.segment} ends at byte {one.begin + len(data)}, before {one.end}")
    for problem in problems:
        if options.fails_on_loss:
            raise PipelineError(f"{problem}; {WITH_LOSS}")
        _logger.warning("%s; the unreadable part is skipped", problem)


# ---- excerpts --------------------------------------------------------------------------------------------------------
#
# Reads only the wanted messages of a part of a segment, using the file of places next to it.
#
# The result reads like a piece of the log: records with their context, the BATCH and ORIGIN before them and the GROUP
# around them. If the file is missing, damaged or does not match the segment, or leads to damaged records, there is no
# excerpt, and the reader takes the whole part.


_BATCH_BYTES: Final = RECORD_HEADER_BYTES + BATCH_PAYLOAD_BYTES
_ORIGIN_BYTES: Final = RECORD_HEADER_BYTES + records.ORIGIN_FIELDS.size_bytes
_GAP_BYTES: Final = 64 << 10
"""Gaps up to this size between wanted parts are read, too: a separate read would cost as much."""
_READS_MAX: Final = 16
_NUMBER: Final = np.dtype("<u4")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Complete records, and their positions in the file."""

    found: Walk
    begins: Numbers
    """Where in the excerpt each chunk begins, in order."""
    offsets: Numbers
    """Where in the file."""

    def positions(self, places: Numbers) -> Numbers:
        """Offsets in the file of what stands at these places."""
        chunk = np.searchsorted(self.begins, places, "right") - 1
        moved: Numbers = places - self.begins[chunk] + self.offsets[chunk]
        return moved


def excerpt_of(log: Log, one: Range, wanted: Wanted) -> Excerpt | None:
    """The possibly wanted messages; None: read everything. Raises GoneError if the segment was removed."""
    if not one.places or not (wanted.headers or not wanted.takes_all):
        return None
    data = log.places(one.segment, one.name)
    try:
        chosen = _chosen(data, one, wanted)
    except (CodecError, ValueError, KeyError, TypeError, zlib.error):
        return None
    if chosen is None:
        return None
    chunks = _chunks(one, *chosen)
    content = _read(log, one, chunks)
    if content is None:
        return None
    sizes = chunks[:, 1] - chunks[:, 0]
    damages: list[Any] = []
    try:
        found = walk(Piece(f"segment {one.segment}", content, 0, one.time_ms, is_last=False), damages)
    except CodecError:
        return None
    if damages or (len(found.places) and int(found.ends.max()) != len(content)):
        return None
    return Excerpt(found, np.cumsum(sizes) - sizes, chunks[:, 0])


def _chosen(data: bytes, one: Range, wanted: Wanted) -> tuple[Numbers, Numbers] | None:
    """Offsets of the batches, and (begin, end, offset of the ORIGIN) of the runs that are wanted, in order; None when
    the file does not tell. Raises CodecError and others for what is damaged.
    """
    table = decode_table(data)
    if (table.of.number, table.of.first_lsn, table.of.last_lsn, table.of.size_bytes) != one.told:
        return None
    if wanted.headers:
        parts = [table.copies]
    elif table.addresses is None:
        return None
    else:
        parts = [part for address, part in table.addresses.items() if wanted.takes(address)]
        if len(parts) == len(table.addresses):
            return None
    batches = np.cumsum(_numbers(data, table.batches))
    runs = np.concatenate([np.empty((0, NUMBERS), np.int64), *(_runs(data, part) for part in parts)])
    runs = runs[(runs[:, 0] >= one.begin) & (runs[:, 0] < one.end)]
    _check(runs, batches, table)
    return batches, np.unique(runs, axis=0)


def _numbers(data: bytes, part: Part) -> Numbers:
    found = np.frombuffer(part_bytes(data, part), _NUMBER).astype(np.int64)
    if len(found) != part.count:
        raise CodecError("the file of places is damaged")
    return found


def _runs(data: bytes, part: Part) -> Numbers:
    gaps, sizes, behind = _numbers(data, part).reshape(NUMBERS, -1)
    ends = np.cumsum(gaps + sizes)
    begins = ends - sizes
    return np.stack([begins, ends, np.where(behind, begins - behind, 0)], axis=1)


def _check(runs: Numbers, batches: Numbers, table: Table) -> None:
    """Raises CodecError for what lies outside of the segment, or before its first batch."""
    if len(runs) and not (
        len(batches)
        and batches[0] >= records.FILE_HEADER_BYTES
        and (runs[:, 0] > batches[0]).all()
        and (runs[:, 1] <= table.of.size_bytes).all()
        and (runs[:, 2] >= 0).all()
    ):
        raise CodecError("the file of places does not match the segment")


def _chunks(one: Range, batches: Numbers, runs: Numbers) -> Numbers:
    """(begin, end) of what makes up the excerpt, in its order. It begins as the part does, so that a reader sees whose
    bytes these are.
    """
    found = [(one.begin, one.begin + _BATCH_BYTES)]
    of_runs = batches[np.searchsorted(batches, runs[:, 0], "right") - 1] if len(runs) else batches[:0]
    batch, told = one.begin, 0
    last_end = 0
    for (run_begin, end, origin), its_batch in zip(runs.tolist(), of_runs.tolist(), strict=True):
        begin = max(run_begin, last_end)  # another address may have told of the same group
        if its_batch != batch or (told and not origin):  # a BATCH tells that nobody is known
            found.append((its_batch, its_batch + _BATCH_BYTES))
            batch, told = its_batch, 0
        if origin and origin != told:
            found.append((origin, origin + _ORIGIN_BYTES))
            told = origin
        if begin < end:
            found.append((begin, end))
            last_end = end
    return np.array(found, np.int64)


def _read(log: Log, one: Range, chunks: Numbers) -> bytes | None:
    """The bytes of all chunks, in few reads; None when they are not there."""
    begins, ends = np.sort(chunks[:, 0]), np.sort(chunks[:, 1])
    gap = _GAP_BYTES
    cuts = np.flatnonzero(begins[1:] - np.maximum.accumulate(ends[:-1]) > gap) + 1
    while len(cuts) >= _READS_MAX:
        gap *= 2
        cuts = cuts[begins[cuts] - np.maximum.accumulate(ends)[cuts - 1] > gap]
    content: list[tuple[int, bytes]] = []
    for first, behind in zip([0, *cuts.tolist()], [*cuts.tolist(), len(begins)], strict=True):
        begin, end = int(begins[first]), int(ends[first:behind].max())
        data = log.read(one.segment, begin, end, one.name)
        if len(data) != end - begin:
            return None
        content.append((begin, data))
    starts = [begin for begin, _ in content]
    which = np.searchsorted(starts, chunks[:, 0], "right") - 1
    return b"".join(
        content[place][1][begin - starts[place] : end - starts[place]]
        for place, (begin, end) in zip(which.tolist(), chunks.tolist(), strict=True)
    )
