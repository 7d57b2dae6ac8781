"""The size of a stream's batches, and how long they wait for data."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows, ReadMinRows

from artemis_py.spark.decode.columns import Numbers
from artemis_py.spark.log.log import Listing
from artemis_py.spark.read.options import ReadOptions

HELD_BYTES_MAX: Final = 16 << 20
"""Of log, and of rows, that are fetched for one batch before it is planned: they pass through the driver."""
_MS_PER_S: Final = 1000


def read_limit(options: ReadOptions) -> ReadLimit:
    """The options as Spark's read limit: Spark passes it back where it applies, and ``ReadAllAvailable`` where it does
    not (``trigger(once=True)``).
    """
    most = options.messages_max or options.offsets_max
    least = options.messages_min or options.offsets_min
    if most is not None:
        return ReadMaxRows(most)
    if options.bytes_max is not None or holds_rows(options):
        return ReadMaxBytes(_bytes_max(options) or 0)
    return ReadAllAvailable() if least is None else ReadMinRows(least)


def holds_rows(options: ReadOptions) -> bool:
    """Are rows fetched before they are planned, so that no broker stops the others?"""
    return options.skips_unavailable and len(options.urls) > 1


def _bytes_max(options: ReadOptions) -> int | None:
    """How much log one batch may have; None: any."""
    limits = [options.bytes_max, HELD_BYTES_MAX if holds_rows(options) else None]
    return min((limit for limit in limits if limit is not None), default=None)


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


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits in one log for the next batch: everything above ``begin`` up to ``top``."""

    listing: Listing
    begin: int
    top: int
    rows: Numbers
    """Offsets of the first rows in it."""
    rows_count: int
    """About how many there are."""

    @property
    def before_rows(self) -> int:
        """The last lsn before the first row. What is before it does not count, because the query does not want it."""
        return int(self.rows[0]) - 1

    @property
    def offsets(self) -> int:
        """How many there are from the first row on."""
        return self.top - self.before_rows

    @property
    def size_bytes(self) -> int:
        """About how much log that is."""
        return max(1, bytes_behind(self.listing, self.before_rows) - bytes_behind(self.listing, self.top))


class Room:
    """How much one batch may take of all logs together. What waits in a log decides which part of that it gets."""

    def __init__(self, options: ReadOptions, limit: ReadLimit) -> None:
        is_limited = not isinstance(limit, ReadAllAvailable)
        self._offsets = options.offsets_max if is_limited else None
        self._bytes = _bytes_max(options) if is_limited else None
        self.messages = options.messages_max if is_limited else None
        """The maximum number of rows; None: no limit."""

    def ends(self, waiting: Mapping[str, Waiting]) -> dict[str, int]:
        """The last lsn of the batch in each log, all of which have rows: its ``top`` or before."""
        ends = {broker: one.top for broker, one in waiting.items()}
        counts = {broker: one.rows_count for broker, one in waiting.items()}
        for broker, part in _parts(self.messages, counts):
            ends[broker] = min(ends[broker], int(waiting[broker].rows[part - 1]))
        for broker, part in _parts(self._offsets, {broker: one.offsets for broker, one in waiting.items()}):
            ends[broker] = min(ends[broker], waiting[broker].before_rows + part)
        for broker, part in _parts(self._bytes, {broker: one.size_bytes for broker, one in waiting.items()}):
            one = waiting[broker]
            ends[broker] = min(ends[broker], _lsn_at(one.listing, one.before_rows, part))
        return ends


def _parts(limit: int | None, waiting: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """What each log may give of a limit that is less than what waits in all of them: at least one, and the rest in
    proportion. Together that is the limit, unless there are more logs.
    """
    whole = sum(waiting.values())
    if limit is None or whole <= limit:
        return
    spare = max(0, limit - len(waiting))
    given = before = 0
    for broker, count in waiting.items():
        before += count - 1
        part = spare * before // max(1, whole - len(waiting)) - given
        given += part
        yield broker, 1 + part


def _lsn_at(listing: Listing, begin: int, size_bytes: int) -> int:
    """The lsn about so many bytes behind another one: within a block lsns are taken to be equally long."""
    left = float(size_bytes)
    lsn = begin
    for block_bytes, low, behind in _blocks(listing):
        if behind - 1 <= begin:
            continue
        bytes_per_lsn = max(1.0, block_bytes / max(1, behind - low))
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
    for block_bytes, low, behind in _blocks(listing):
        if behind - 1 > lsn:
            found += block_bytes * (behind - max(low, lsn + 1)) / max(1, behind - low)
    return int(found)


def _blocks(listing: Listing) -> Iterator[tuple[int, int, int]]:
    """The size of each block, its first lsn, and the first behind it. A segment that has just begun has none."""
    for segment in listing.segments:
        ends = [(offset, low) for offset, low, _ in segment.blocks[1:]] + [(segment.size_bytes, segment.last_lsn + 1)]
        for (offset, low, _), (end, behind) in zip(segment.blocks, ends, strict=False):
            yield end - offset, low, behind
