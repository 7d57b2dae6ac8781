"""Table ``addresses``: the addresses with a message or a queue in a log. The indexes of its segments list them; only
segments with too many addresses for an index are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from artemis_py.spark.decode.published import Published, originals
from artemis_py.spark.decode.walk import Piece, walk
from artemis_py.spark.log.log import LogLocation, Segment
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.plan import Range, asked, bounded, can_answer, opened, ranges, settled_listing
from artemis_py.spark.read.subscription import warn_of_unknown
from artemis_py.spark.tables.reading import Wanted
from artemis_py.spark.tables.schema import arrow_schema

_TABLE: Final = "addresses"


class Told(InputPartition):
    """The addresses from the indexes of one broker's log, and the segments to read."""

    def __init__(self, broker: str, location: LogLocation, addresses: frozenset[str], untold: list[Range]) -> None:
        super().__init__(None)
        self.broker = broker
        self.location = location
        self.addresses = addresses
        self.untold = untold


class AddressReader(DataSourceReader):
    """One task for each broker."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """The tasks, with the addresses from the indexes. Raises PipelineError."""
        options = self._options
        logs = opened(options)
        found: list[InputPartition] = []
        listings = []
        for broker, (location, log) in logs.items():
            wanted = bounded(asked(options), options, broker, list(logs))
            listing = settled_listing(log, wanted, options)
            listings.append(listing)
            segments = [one for one in listing.segments if can_answer(one, wanted, of_messages=False)]
            untold = [part for one in segments if one.addresses is None for part in ranges(one, wanted)]
            found.append(Told(broker, location, _told(segments), untold))
        warn_of_unknown(options, listings)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The addresses of one broker, sorted."""
        if not isinstance(partition, Told):
            return
        addresses = set(partition.addresses)
        if partition.untold:
            with closing(partition.location.open()) as log:
                for part in partition.untold:
                    data = log.read(part.segment, part.begin, part.end)
                    piece = walk(Piece(f"segment {part.segment}", data, part.begin, part.time_ms, is_last=False), [])
                    addresses.update(Published(piece, originals(piece)).addresses[1])
        wanted: Wanted = asked(self._options)
        rows = [
            {"broker": partition.broker, "address": address} for address in sorted(addresses) if wanted.takes(address)
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema(_TABLE, self._options.columns))


def _told(segments: list[Segment]) -> frozenset[str]:
    found = {address for one in segments for address in one.addresses or ()}
    return frozenset(found | {queue["address"] for one in segments for queue in one.queues if not queue.get("deleted")})
