"""The batch of a stream that consumes a queue: which messages are in it, and the tasks that read them. An offset names
the messages, so a batch that runs again has the same ones, wherever these are by then.

An offset is ``{"<broker>": bookmark, "#queue": {…}, "#log": {…}}``: the highest bookmark that was in any batch, the
batch that ends there, and the mark of the log (``log/log.py``).
"""

from __future__ import annotations

import base64
import binascii
import logging
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from artemis_py.errors import PipelineError
from artemis_py.spark.decode.columns import Numbers
from artemis_py.spark.decode.published import copies
from artemis_py.spark.decode.record_walk import Piece, walk
from artemis_py.spark.log.log import ID, GoneError, Identity, Listing, Log, Mark, Segment, shown
from artemis_py.spark.read.batch import read_range
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.plan import Range, Share, ranges, shares
from artemis_py.spark.tables.reading import Names, Sample, Wanted
from artemis_py.spark.workers import let_readers_go

_QUEUE: Final = "#queue"
LOG: Final = "#log"
Offset = Mapping[str, Any]
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch. ``kept`` are messages of earlier batches that were still on the queue when this one was
    planned: others had them.
    """

    queue: str
    number: int
    """How many batches of the query came before it, and one."""
    bookmarks: tuple[int, ...]
    """In order."""
    kept: tuple[int, ...]
    top: int
    """The highest bookmark of this and all earlier batches."""
    sample: Sample | None
    """None in an empty batch."""

    def offset(self, broker: str, mark: Mark) -> dict[str, Any]:
        """The offset at its end."""
        told: dict[str, Any] = {
            "name": self.queue,
            "batch": self.number,
            "messages": len(self.bookmarks),
            "bookmarks": packed(self.bookmarks),
        }
        if self.kept:
            told["kept"] = packed(self.kept)
        if self.sample is not None:
            told["sample"] = list(self.sample)
        return {broker: self.top, _QUEUE: told, LOG: {broker: dict(mark)}}


def key_of(offset: Offset, log: Identity) -> str:
    """The key of the log in an offset: the broker may have another name now. Raises PipelineError for another log."""
    [key] = [name for name in offset if not name.startswith("#")]
    known = offset.get(LOG, {}).get(key, {}).get(ID)
    if known is not None and log.log_id is not None:
        if known == log.log_id:
            return key
        what = "whatever it is called now; its messages are not on the queue of the other one"
    elif key == log.broker:
        return key
    else:
        what = f"and call it {key} as before: without an id it cannot be recognised under another name"
    raise PipelineError(
        f"the query's checkpoint is of broker {shown(key, known)}, but url leads to {shown(log.broker, log.log_id)}. "
        f"Let url and stompUrl lead to the first one, {what}"
    )


def batch_of(offset: Offset, queue: str) -> Batch:
    """The batch that ends at an offset. Raises PipelineError when it is of another queue, or of a query that reads the
    log.
    """
    told = offset.get(_QUEUE)
    if told is None:
        raise PipelineError(
            f"the query's checkpoint is of a query that reads the log. Keep it for that one, and give the query that "
            f"consumes {queue} another: it begins with all that is on the queue, whatever the first one has read"
        )
    if told["name"] != queue:
        raise PipelineError(
            f"the query's checkpoint is of queue {told['name']}, but option queue names {queue}. Keep it for that "
            "queue, whose last batch may not be acknowledged yet, and give this one another"
        )
    [top] = [lsn for name, lsn in offset.items() if not name.startswith("#")]
    sample = told.get("sample")
    return Batch(
        queue,
        told["batch"],
        tuple(unpacked(told["bookmarks"])),
        tuple(unpacked(told.get("kept", ""))),
        top,
        None if sample is None else Sample(*sample),
    )


# ---- bookmarks as texts ----------------------------------------------------------------------------------------------
#
# Sets of bookmarks as short texts, for offsets: Spark keeps a hundred of them, and shows them in each progress.
#
# A text is the first bookmark and then the distances to the next ones, ``*`` and a number for repeated ones:
# ``1204,1*3,5`` is 1204, 1205, 1206, 1207, 1212. A long one is compressed, and begins with ``z``.


_READABLE_MAX: Final = 400
_COMPRESSED: Final = "z"


def packed(bookmarks: Sequence[int]) -> str:
    """The text of bookmarks that grow."""
    if not bookmarks:
        return ""
    steps = np.diff(np.array(bookmarks, np.int64))
    starts = np.flatnonzero(np.diff(steps, prepend=-1))
    counts = np.diff(starts, append=len(steps))
    parts = [str(bookmarks[0])]
    for step, count in zip(steps[starts].tolist(), counts.tolist(), strict=True):
        parts.append(str(step) if count == 1 else f"{step}*{count}")
    text = ",".join(parts)
    if len(text) <= _READABLE_MAX:
        return text
    return _COMPRESSED + base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def listed(text: str) -> list[int]:
    """The bookmarks in a header of the broker, separated by commas."""
    return [int(part) for part in text.split(",") if part]


def unpacked(text: str) -> list[int]:
    """The bookmarks of a text. Raises PipelineError for another text."""
    if not text:
        return []
    try:
        if text.startswith(_COMPRESSED):
            text = zlib.decompress(base64.b64decode(text[1:], validate=True)).decode()
        first, *parts = text.split(",")
        pairs = [part.partition("*") for part in parts]
        steps = np.array([int(step) for step, _, _ in pairs], np.int64)
        counts = np.array([int(count or 1) for _, _, count in pairs], np.int64)
        found = np.cumsum(np.concatenate([[int(first)], np.repeat(steps, counts)]))
    except (ValueError, binascii.Error, zlib.error, UnicodeDecodeError, OverflowError):
        raise PipelineError(f"the checkpoint has bookmarks that cannot be read: {text[:80]!r}") from None
    bookmarks: list[int] = found.tolist()
    return bookmarks


# ---- tasks -----------------------------------------------------------------------------------------------------------
#
# The tasks of a batch: which parts of the log have its messages, and their rows.


class _Portion(Share):
    """What one task reads of a batch: the records with the lsns that are ``wanted``, no more and no fewer."""

    def __init__(self, share: Share, lsns: Numbers) -> None:
        super().__init__(share.location, share.ranges, replace(share.wanted, lsns=lsns), share.packs)
        self.lsns = lsns


class Planner:
    """Plans the tasks of the batches of one query."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._copies = _Copies()

    def portions(self, log: Log, listing: Listing, batch: Batch, names: Names) -> list[InputPartition]:
        """The tasks of a batch. Raises PipelineError for messages that are not in the log any more, unless losses are
        allowed.
        """
        lsns = np.array(batch.bookmarks, np.int64)
        found, missing = self._shared(log, listing, lsns, Wanted(sample=batch.sample), names)
        if len(missing):
            whole = log.listing()
            copies = np.array(sorted(self._copies.find(log, whole, missing).values()), np.int64)
            more, gone = self._shared(log, whole, copies, Wanted(of_copies=True), names)
            found += more
            self._check_lost(batch, len(missing) - len(copies) + len(gone), listing)
        return [*found]

    def _shared(
        self, log: Log, listing: Listing, lsns: Numbers, wanted: Wanted, names: Names
    ) -> tuple[list[_Portion], Numbers]:
        """The tasks for the records with these lsns, and those that are in no segment."""
        if not len(lsns):
            return [], lsns
        wanted = replace(wanted, lsn_min=int(lsns[0]), lsn_max=int(lsns[-1]), lsns=lsns)
        share_bytes = self._options.partition_bytes
        found = [
            _Portion(share, np.concatenate([_within(lsns, one) for one in share.ranges]))
            for share in shares(log.location, listing, wanted, names, share_bytes, of_messages=not wanted.of_copies)
        ]
        covered = np.concatenate([portion.lsns for portion in found]) if found else lsns[:0]
        return found, np.setdiff1d(lsns, covered, assume_unique=True)

    def _check_lost(self, batch: Batch, count: int, listing: Listing) -> None:
        if not count:
            return
        problem = (
            f"queue {batch.queue}: {count} of the {len(batch.bookmarks)} messages of a batch are not in the log any "
            f"more, which begins at {listing.first_lsn}; the first of them was published at {batch.bookmarks[0]}"
        )
        if self._options.fails_on_loss:
            raise PipelineError(
                f"{problem}. Keep more of the log (journal-retention-directory). Have an ordinary consumer take these "
                "messages, or remove them without a row with failOnDataLoss=false"
            )
        _logger.warning("%s; they are removed without a row", problem)


def _within(lsns: Numbers, one: Range) -> Numbers:
    begin, end = np.searchsorted(lsns, one.lsns)
    return lsns[begin:end]


def read_portion(partition: InputPartition, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The rows of one task. Raises PipelineError when they are not exactly those of its messages, unless losses are
    allowed.
    """
    if not isinstance(partition, _Portion):  # Spark's stand-in for an empty list
        return
    let_readers_go()
    with closing(partition.location.open()) as log:
        for one in partition.ranges:
            count = 0
            for rows in read_range(one, log, partition, options):
                count += rows.num_rows
                yield rows
            _check_count(count, _within(partition.lsns, one), one, options)


def _check_count(count: int, lsns: Sequence[int] | Numbers, one: Range, options: ReadOptions) -> None:
    if count == len(lsns):
        return
    problem = f"segment {one.segment} has {count} of {len(lsns)} messages of the batch, which begin at {lsns[0]}"
    if options.fails_on_loss:
        raise PipelineError(f"{problem}: it is not the log of the queue, or it is damaged")
    _logger.warning("%s; the others are left out", problem)


# ---- copies ----------------------------------------------------------------------------------------------------------
#
# Finds messages that are older than the log: retention has removed their publication, but they are on the queue still.
# The journal has them as copies, which compaction makes (docs/journal-format.md, "MESSAGE").


_NONE: Final = np.empty((0, 2), np.int64)


class _Copies:
    """The copies in a log. A closed segment is read once; what is in the current one is read again each time."""

    def __init__(self) -> None:
        self._known: dict[int, Numbers] = {}
        """For each closed segment the lsns of publications and of their copies."""

    def find(self, log: Log, listing: Listing, bookmarks: Numbers) -> dict[int, int]:
        """The lsn of the last copy of each message, by its bookmark, as far as there is one."""
        found: dict[int, int] = {}
        for segment in reversed(listing.segments):
            if len(found) == len(bookmarks):
                break
            is_closed = segment is not listing.segments[-1]
            pairs = self._known.get(segment.number) if is_closed else None
            if pairs is None:
                pairs = _copies_in(log, segment)
            if is_closed:
                self._known[segment.number] = pairs
            for publication, copy in pairs[np.isin(pairs[:, 0], bookmarks)][::-1].tolist():
                found.setdefault(publication, copy)
        self._forget(listing)
        return found

    def _forget(self, listing: Listing) -> None:
        numbers = {segment.number for segment in listing.segments}
        self._known = {number: pairs for number, pairs in self._known.items() if number in numbers}


def _copies_in(log: Log, segment: Segment) -> Numbers:
    pairs = [_NONE]
    damages: list[Any] = []
    for one in ranges(segment, Wanted()):
        try:
            data = log.read(one.segment, one.begin, one.end, one.name)
        except GoneError:  # retention is faster; what it takes has no copy that is needed
            return _NONE
        found = walk(Piece(f"segment {one.segment}", data, one.begin, one.time_ms, is_last=False), damages)
        pairs.append(copies(found))
    return np.concatenate(pairs)
