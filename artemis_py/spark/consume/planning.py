"""The tasks of a batch: which parts of the log have its messages, and their rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from artemis_py.errors import PipelineError
from artemis_py.spark.consume.batch import Batch
from artemis_py.spark.consume.copies import Copies
from artemis_py.spark.decode.columns import Numbers
from artemis_py.spark.log.log import Listing, Log, LogLocation
from artemis_py.spark.read.batch import read_range
from artemis_py.spark.read.enough import let_readers_go
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.plan import Range, Share, shares
from artemis_py.spark.tables.reading import Names, Wanted

_logger = logging.getLogger(__name__)


class Portion(Share):
    """What one task reads of a batch: the records with the lsns that are ``wanted``, no more and no fewer."""

    def __init__(self, share: Share, lsns: Numbers) -> None:
        super().__init__(share.location, share.ranges, replace(share.wanted, lsns=lsns), share.packs)
        self.lsns = lsns


class Planner:
    """Plans the tasks of the batches of one query."""

    def __init__(self, location: LogLocation, options: ReadOptions) -> None:
        self._location = location
        self._options = options
        self._copies = Copies()

    def portions(self, log: Log, listing: Listing, batch: Batch, names: Names) -> list[InputPartition]:
        """The tasks of a batch. Raises PipelineError for messages that are not in the log any more, unless losses are
        allowed.
        """
        lsns = np.array(batch.bookmarks, np.int64)
        found, missing = self._shared(listing, lsns, Wanted(sample=batch.sample), names)
        if len(missing):
            whole = log.listing()
            copies = np.array(sorted(self._copies.find(log, whole, missing).values()), np.int64)
            more, gone = self._shared(whole, copies, Wanted(of_copies=True), names)
            found += more
            self._check_lost(batch, len(missing) - len(copies) + len(gone), listing)
        return [*found]

    def _shared(self, listing: Listing, lsns: Numbers, wanted: Wanted, names: Names) -> tuple[list[Portion], Numbers]:
        """The tasks for the records with these lsns, and those that are in no segment."""
        if not len(lsns):
            return [], lsns
        wanted = replace(wanted, lsn_min=int(lsns[0]), lsn_max=int(lsns[-1]), lsns=lsns)
        share_bytes = self._options.partition_bytes
        found = [
            Portion(share, np.concatenate([_within(lsns, one) for one in share.ranges]))
            for share in shares(self._location, listing, wanted, names, share_bytes, of_messages=not wanted.of_copies)
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
    if not isinstance(partition, Portion):  # Spark's stand-in for an empty list
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
