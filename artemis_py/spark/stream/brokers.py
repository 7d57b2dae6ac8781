"""The logs of a streaming query: of brokers that answer, brokers that are down, and brokers removed from the options.

Without ``skipUnavailableBrokers`` and ``keepRemovedBrokers`` all must be available. With them, the offsets of a missing
broker stay until it returns.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator
from typing import Final

from artemis_py.errors import PipelineError
from artemis_py.spark.log.log import AwayError, Listing, Log, LogLocation
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.plan import check_known, locations

_PAUSE_S: Final = 5.0
"""The pause before asking an unavailable broker again, unless the time to wait for it is shorter."""
_logger = logging.getLogger(__name__)


class Brokers:
    """Logs by broker name. The broker behind a URL is known once it answers."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._pause_s = min(_PAUSE_S, float(options.wait_s))
        self._logs: dict[str, tuple[LogLocation, Log]] = {}
        self._unnamed: list[tuple[LogLocation, Log, float]] = []
        """Brokers that have not answered yet, and when to ask again."""
        self._away: dict[str, float] = {}
        """Brokers that no longer answer, and when to ask again."""
        self._is_open = False

    def opened(self) -> dict[str, tuple[LogLocation, Log]]:
        """The logs of brokers that have answered. Raises PipelineError if none answers, or a required one does not."""
        if not self._is_open:
            refused: AwayError | None = None
            for location in locations(self._options):
                log = location.open()
                try:
                    self._admit(location, log)
                except AwayError as error:
                    refused = self._leave_out(location, log, error)
            if not self._logs and refused is not None:
                self._unnamed.clear()
                raise refused
            check_known(self._logs, self._options)
            self._is_open = True
        return self._logs

    def listings(self, after_lsns: dict[str, int]) -> Iterator[tuple[str, Log, Listing]]:
        """The listings of the available brokers, each from the segment of its lsn on (without one: from the first)."""
        self.opened()
        self._ask_again()
        for broker, (_, log) in list(self._logs.items()):
            if time.monotonic() < self._away.get(broker, 0.0):
                continue
            try:
                listing = log.listing(max(0, after_lsns.get(broker, 0) - 1))
            except AwayError as error:
                self.leave(broker, error)
                continue
            if self._away.pop(broker, None) is not None:
                log.wait_patiently()
                _logger.warning("broker %s answers again", broker)
            yield broker, log, listing

    def leave(self, broker: str, error: AwayError) -> None:
        """A broker does not answer: continue without it, or raise the error if that is not allowed."""
        if not self._options.skips_unavailable:
            raise error
        if broker not in self._away:
            _logger.warning(
                "broker %s: %s; the query continues without it (skipUnavailableBrokers); its offsets "
                "stay, and it is asked again", broker, error,
            )  # fmt: skip
        self._logs[broker][1].wait_briefly()
        self._away[broker] = time.monotonic() + self._pause_s

    def is_away(self, broker: str) -> bool:
        """Did it answer before, but not the last time?"""
        return broker in self._away

    def away(self, known: Collection[str]) -> list[str]:
        """The unavailable brokers by name, and locations if no name is known."""
        unnamed = [str(location) for location, _, _ in self._unnamed]
        removed = [broker for broker in known if broker not in self._logs]
        return sorted([*self._away, *(removed or unnamed)])

    def check_known(self, known: Collection[str]) -> None:
        """Check that the brokers of a checkpoint are there or may be missing. Raises PipelineError."""
        logs = self.opened()
        missing = [broker for broker in known if broker not in logs]
        if not missing or self._options.keeps_removed or self._unnamed:
            return
        raise PipelineError(
            f"the query's checkpoint is of broker {missing[0]}, but the logs are of {', '.join(logs)}. Name the "
            "broker with option broker, continue without it with keepRemovedBrokers=true, which keeps its offsets, "
            "or start with a new checkpoint"
        )

    def _admit(self, location: LogLocation, log: Log) -> None:
        if log.broker in self._logs:
            raise PipelineError(f"two logs are of a broker named {log.broker}; give each broker its own name")
        self._logs[log.broker] = location, log

    def _leave_out(self, location: LogLocation, log: Log, error: AwayError) -> AwayError:
        if not self._options.skips_unavailable:
            raise error
        _logger.warning("%s; the query continues without it (skipUnavailableBrokers) and asks again", error)
        log.wait_briefly()
        self._unnamed.append((location, log, time.monotonic() + self._pause_s))
        return error

    def _ask_again(self) -> None:
        """Those that have never answered."""
        for one in list(self._unnamed):
            location, log, when = one
            if time.monotonic() < when:
                continue
            self._unnamed.remove(one)
            try:
                self._admit(location, log)
            except AwayError:
                self._unnamed.append((location, log, time.monotonic() + self._pause_s))
                continue
            log.wait_patiently()
            _logger.warning("broker %s answers now", log.broker)
