"""Warns of subscriptions without any match: a misspelt name looks like an address without messages."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from artemis_py.config.problems import nearest
from artemis_py.spark.log.log import Listing
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.plan import asked
from artemis_py.spark.tables.reading import Wanted

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
