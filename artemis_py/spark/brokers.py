"""The logs of a streaming query: of brokers that answer, of some that are down, and of some that the options had once.

Without ``skipUnavailableBrokers`` and ``keepRemovedBrokers`` all have to be there. With them the offsets of a broker
that is not there stay where they are, until it is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator
from typing import Final

from artemis_py.errors import PipelineError
from artemis_py.spark.log import AwayError, Listing, Log, Place
from artemis_py.spark.options import ReadOptions
from artemis_py.spark.plan import check_known, places

_PAUSE_S: Final = 5.0
"""So long a broker that is away is left alone, or for as long as it would be waited for, if that is shorter."""
_logger = logging.getLogger(__name__)


class Brokers:
    """Logs by the names of their brokers. Which broker a URL leads to is known when it answers."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._pause_s = min(_PAUSE_S, float(options.wait_s))
        self._logs: dict[str, tuple[Place, Log]] = {}
        self._unnamed: list[tuple[Place, Log, float]] = []
        """Those that have not answered yet, and when they are asked again."""
        self._away: dict[str, float] = {}
        """Those that do not answer any more, and when they are asked again."""
        self._is_open = False

    def opened(self) -> dict[str, tuple[Place, Log]]:
        """The logs whose brokers have answered. Raises PipelineError when none does, or one that has to."""
        if not self._is_open:
            refused: AwayError | None = None
            for place in places(self._options):
                log = place.open()
                try:
                    self._admit(place, log)
                except AwayError as error:
                    refused = self._leave_out(place, log, error)
            if not self._logs and refused is not None:
                self._unnamed.clear()
                raise refused
            check_known(self._logs, self._options)
            self._is_open = True
        return self._logs

    def listings(self, after_lsns: dict[str, int]) -> Iterator[tuple[str, Log, Listing]]:
        """What there is in each log, from the segment on in which its lsn lies (a broker without one: from its first),
        of the brokers that are there now.
        """
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
        """It does not answer: go on without it, or raise the error where that is not wanted."""
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
        """Has it answered before, and did not when it was last asked?"""
        return broker in self._away

    def away(self, known: Collection[str]) -> list[str]:
        """Who is not there: brokers by their names, and places by theirs where no name is known."""
        unnamed = [str(place) for place, _, _ in self._unnamed]
        removed = [broker for broker in known if broker not in self._logs]
        return sorted([*self._away, *(removed or unnamed)])

    def check_known(self, known: Collection[str]) -> None:
        """Are the brokers of a checkpoint there, or may they be missing? Raises PipelineError."""
        logs = self.opened()
        missing = [broker for broker in known if broker not in logs]
        if not missing or self._options.keeps_removed or self._unnamed:
            return
        raise PipelineError(
            f"the query's checkpoint is of broker {missing[0]}, but the logs are of {', '.join(logs)}. Name the "
            "broker with option broker, continue without it with keepRemovedBrokers=true, which keeps its offsets, "
            "or start with a new checkpoint"
        )

    def _admit(self, place: Place, log: Log) -> None:
        if log.broker in self._logs:
            raise PipelineError(f"two logs are of a broker named {log.broker}; give each broker its own name")
        self._logs[log.broker] = place, log

    def _leave_out(self, place: Place, log: Log, error: AwayError) -> AwayError:
        if not self._options.skips_unavailable:
            raise error
        _logger.warning("%s; the query continues without it (skipUnavailableBrokers) and asks again", error)
        log.wait_briefly()
        self._unnamed.append((place, log, time.monotonic() + self._pause_s))
        return error

    def _ask_again(self) -> None:
        """Those that have never answered."""
        for one in list(self._unnamed):
            place, log, when = one
            if time.monotonic() < when:
                continue
            self._unnamed.remove(one)
            try:
                self._admit(place, log)
            except AwayError:
                self._unnamed.append((place, log, time.monotonic() + self._pause_s))
                continue
            log.wait_patiently()
            _logger.warning("broker %s answers now", log.broker)
