"""Table ``addresses``: the addresses with a message or a queue in a log. The indexes of its segments list them; only
segments with too many addresses for an index, or with the end of what is asked for, are read. Warnings of addresses
that no log has.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from artemis_py.config.problems import nearest
from artemis_py.spark.decode.published import Published, originals
from artemis_py.spark.decode.record_walk import Walk
from artemis_py.spark.log.log import Listing, LogLocation, Segment
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.pieces import piece
from artemis_py.spark.read.plan import Range, asked, bounded, can_answer, opened, ranges, settled_listing
from artemis_py.spark.tables.reading import Wanted
from artemis_py.spark.tables.schema import arrow_schema
from artemis_py.storage.format import codec, records

_TABLE: Final = "addresses"


class Told(InputPartition):
    """The addresses from the indexes of one broker's log, and the segments to read."""

    def __init__(
        self, broker: str, location: LogLocation, addresses: frozenset[str], untold: list[Range], wanted: Wanted
    ) -> None:
        super().__init__(None)
        self.broker = broker
        self.location = location
        self.addresses = addresses
        self.untold = untold
        self.wanted = wanted


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
        for broker, (_, log) in logs.items():
            wanted = bounded(asked(options), options, broker, list(logs))
            listing = settled_listing(log, wanted, options)
            listings.append(listing)
            segments = [one for one in listing.segments if can_answer(one, wanted, of_messages=False)]
            told = [one for one in segments if _tells_all(one, wanted)]
            untold = [part for one in segments if not _tells_all(one, wanted) for part in ranges(one, wanted)]
            found.append(Told(broker, log.location, _told(told), untold, wanted))
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
                    found = piece(part, log, self._options)
                    if found is not None:
                        addresses.update(_addresses_in(found, partition.wanted))
        takes = partition.wanted.takes
        rows = [{"broker": partition.broker, "address": address} for address in sorted(addresses) if takes(address)]
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema(_TABLE, self._options.columns))


def _tells_all(segment: Segment, wanted: Wanted) -> bool:
    """Does an index list the addresses, and only those before the end?"""
    if segment.addresses is None or segment.last_ms is None:
        return False
    is_in_time = wanted.time_ms_max is None or segment.last_ms <= wanted.time_ms_max
    return is_in_time and (wanted.lsn_max is None or segment.last_lsn <= wanted.lsn_max)


def _addresses_in(found: Walk, wanted: Wanted) -> set[str]:
    """Of the messages and the queues before the end."""
    is_wanted = wanted.records(found)
    messages = originals(found)
    addresses = set(Published(found, messages[is_wanted[messages]]).addresses[1])
    queues = np.flatnonzero(is_wanted & (found.kinds == records.QUEUE)).tolist()
    return addresses | {codec.decode_fields(found.payload(number))["address"] for number in queues}


def _told(segments: list[Segment]) -> frozenset[str]:
    found = {address for one in segments for address in one.addresses or ()}
    return frozenset(found | {queue["address"] for one in segments for queue in one.queues if not queue.get("deleted")})


# ---- addresses that no log has ---------------------------------------------------------------------------------------
#
# Warns of subscriptions without any match: a misspelt name looks like an address without messages.


_logger = logging.getLogger(__name__)


def warn_of_unknown(options: ReadOptions, listings: Sequence[Listing]) -> None:
    """Log the subscribed addresses that no log has. They may be created later, so it is no error."""
    for problem in unknown(options, listings):
        _logger.warning("%s", problem)


def unknown(options: ReadOptions, listings: Sequence[Listing]) -> list[str]:
    """A sentence for each address, and for the pattern, without a message or queue in any log; none if the indexes do
    not list all addresses, or the logs are empty.
    """
    segments = [segment for listing in listings for segment in listing.segments]
    if not options.subscribes or not segments or any(segment.addresses is None for segment in segments):
        return []
    known = {address for segment in segments for address in segment.addresses or ()}
    known |= {queue["address"] for segment in segments for queue in segment.queues}
    found: list[str] = []
    for address in options.addresses:
        if address not in known:
            meant = nearest(address, known)
            hint = "" if meant is None else f": did you mean {meant!r}?"
            found.append(f"no log has the address {address!r}{hint}")
    if options.pattern is not None:
        matching: Wanted = asked(options)
        if not any(matching.takes(address) for address in known - set(options.addresses)):
            found.append(f"no log has an address that matches the pattern {options.pattern!r}")
    return found
