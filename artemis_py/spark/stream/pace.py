"""The size of a stream's batches, and how long they wait for data."""

from __future__ import annotations

import time
from typing import Final

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows, ReadMinRows

from artemis_py.spark.decode.columns import Numbers
from artemis_py.spark.log.log import Listing
from artemis_py.spark.read.options import ReadOptions

_MS_PER_S: Final = 1000


def read_limit(options: ReadOptions) -> ReadLimit:
    """The options as Spark's read limit: Spark passes it back where it applies, and ``ReadAllAvailable`` where it does
    not (``trigger(once=True)``).
    """
    most = options.messages_max or options.offsets_max
    least = options.messages_min or options.offsets_min
    if most is not None:
        return ReadMaxRows(most)
    if options.bytes_max is not None:
        return ReadMaxBytes(options.bytes_max)
    return ReadAllAvailable() if least is None else ReadMinRows(least)


class Patience:
    """Decides whether there is enough for a batch: it waits for ``minOffsetsPerTrigger`` and ``minMessagesPerTrigger``,
    but no longer than ``maxTriggerDelay`` after its first row was seen.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._since: float | None = None

    @property
    def messages_min(self) -> int:
        """How many messages must be counted at most."""
        return self._options.messages_min or 1

    def is_enough(self, offsets: int, messages: int) -> bool:
        """The arguments are the sums over all brokers since the last batch; ``messages`` counts no further than
        needed.
        """
        if not messages:
            self._since = None
            return False
        now = time.monotonic()
        if self._since is None:
            self._since = now
        options = self._options
        has_enough = offsets >= (options.offsets_min or 0) and messages >= (options.messages_min or 0)
        if not has_enough and (now - self._since) * _MS_PER_S < options.delay_max_ms:
            return False
        self._since = None
        return True


class Room:
    """How much of each log one batch may take; the brokers share it evenly."""

    def __init__(self, options: ReadOptions, limit: ReadLimit, brokers: int) -> None:
        is_limited = not isinstance(limit, ReadAllAvailable)
        self._offsets = _share(options.offsets_max, brokers) if is_limited else None
        self._bytes = _share(options.bytes_max, brokers) if is_limited else None
        self.messages = _share(options.messages_max, brokers) if is_limited else None
        """The maximum number of rows of one log; None: no limit."""

    def end_of(self, listing: Listing, rows: Numbers, top: int) -> int:
        """The last lsn of a batch that ends at ``top`` or before. Records before its first row do not count, because
        the query does not want them.
        """
        begin = int(rows[0]) - 1
        if self.messages is not None and len(rows) >= self.messages:
            top = min(top, int(rows[self.messages - 1]))
        if self._offsets is not None:
            top = min(top, begin + self._offsets)
        return top if self._bytes is None else min(top, _lsn_at(listing, begin, self._bytes))


def _share(whole: int | None, parts: int) -> int | None:
    return None if whole is None else max(1, whole // max(1, parts))


def _lsn_at(listing: Listing, begin: int, size_bytes: int) -> int:
    """The lsn about so many bytes behind another one: within a block lsns are taken to be equally long."""
    left = float(size_bytes)
    lsn = begin
    for segment in listing.segments:
        ends = [(offset, low) for offset, low, _ in segment.blocks[1:]] + [(segment.size_bytes, segment.last_lsn + 1)]
        for (offset, low, _), (end, behind) in zip(segment.blocks, ends, strict=True):
            if behind - 1 <= begin:
                continue
            bytes_per_lsn = max(1.0, (end - offset) / max(1, behind - low))
            first = max(low, begin + 1)
            taken = (behind - first) * bytes_per_lsn
            if taken >= left:
                return max(begin + 1, first - 1 + int(left / bytes_per_lsn))
            left -= taken
            lsn = behind - 1
    return lsn


def bytes_behind(listing: Listing, lsn: int) -> int:
    """Approximate bytes of the log after an lsn, assuming equally long records within a block."""
    found = 0.0
    for segment in listing.segments:
        ends = [(offset, low) for offset, low, _ in segment.blocks[1:]] + [(segment.size_bytes, segment.last_lsn + 1)]
        for (offset, low, _), (end, behind) in zip(segment.blocks, ends, strict=True):
            if behind - 1 > lsn:
                found += (end - offset) * (behind - max(low, lsn + 1)) / max(1, behind - low)
    return int(found)
