"""The logs of a streaming query: of brokers that answer, brokers that are down, and brokers removed from the options.

Without ``skipUnavailableBrokers`` and ``keepRemovedBrokers`` all must be available. With them, the offsets of a missing
broker stay until it returns.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from artemis_py.errors import PipelineError
from artemis_py.spark.log.log import (
    AwayError,
    Known,
    Listing,
    Log,
    LogLocation,
    Mark,
    check_distinct,
    has_segment,
    is_renamed,
    keys_of,
    lost_id,
    shown,
    warn_of_new_name,
)
from artemis_py.spark.read.options import ReadOptions
from artemis_py.spark.read.plan import Found, check_files, keyed, locations, under

_PAUSE_S: Final = 5.0
"""The pause before asking an unavailable broker again, unless the time to wait for it is shorter."""
_logger = logging.getLogger(__name__)


class Brokers:
    """Logs by key (``log/log.py``). The broker behind a URL is known once it answers."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._pause_s = min(_PAUSE_S, float(options.wait_s))
        self._found: dict[str, Found] = {}
        """Those that have answered, by key, and under which name."""
        self._logs: dict[str, tuple[LogLocation, Log]] = {}
        self._known: Known = {}
        """The keys of the checkpoint."""
        self._unnamed: list[tuple[LogLocation, Log, float]] = []
        """Brokers that have not answered yet, and when to ask again."""
        self._away: dict[str, float] = {}
        """Brokers that no longer answer, and when to ask again."""
        self._is_open = self._is_bound = False

    def opened(self) -> dict[str, tuple[LogLocation, Log]]:
        """The logs of brokers that have answered. Raises PipelineError if none answers, or a required one does not."""
        if not self._is_open:
            refused: AwayError | None = None
            found: list[Found] = []
            for location in locations(self._options):
                log = location.open()
                try:
                    found.append(Found(location, log, log.identity()))
                except AwayError as error:
                    refused = self._leave_out(location, log, error)
            if not found and refused is not None:
                self._unnamed.clear()
                raise refused
            self._admit_all(found)
            check_files(self._logs, self._options)
            self._is_open = True
        return self._logs

    def bind(self, known: Known, read: Mapping[str, tuple[int, Mark]]) -> dict[str, str]:
        """Let the logs go on under the keys of a checkpoint, if all of its brokers are there or may be missing.
        ``read``: up to which offset each was read, and its mark. Returns the keys of logs that had others before.
        Raises PipelineError.
        """
        self._known = known
        self.opened()
        before = list(self._found)
        if not self._is_bound:  # later offsets have the keys that are given here
            self._is_bound = True
            self._admit_all(list(self._found.values()))
            for key, one in self._found.items():
                if is_renamed(key, one.identity):
                    warn_of_new_name(key, one.identity)
        self._check_complete(read)
        return dict(zip(before, self._found, strict=True))

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

    def _check_complete(self, read: Mapping[str, tuple[int, Mark]]) -> None:
        """Raises PipelineError for a broker of the checkpoint that is missing and may not be."""
        missing = [key for key in self._known if key not in self._logs]
        if not missing or self._options.keeps_removed or self._unnamed:
            return
        key = missing[0]
        log_id = self._known[key]
        names = ", ".join(shown(one.identity.broker, one.identity.log_id) for one in self._found.values())
        problem = (
            f"the query's checkpoint is of broker {shown(key, log_id)}, but the logs are of {names}. Name its url or "
            "directories again, whatever the broker is called now"
        )
        lsn, mark = read.get(key, (0, {}))
        for other, one in self._found.items():
            is_new = log_id is not None and one.identity.log_id is not None and other not in self._known
            if is_new and has_segment(one.log.listing(max(0, lsn - 1)), lsn, mark):
                raise PipelineError(f"{problem}. {one.identity.broker} has another id, {lost_id(str(log_id))}")
        if log_id is not None and all(one.identity.log_id is not None for one in self._found.values()):
            raise PipelineError(
                f"{problem}; or continue without it with keepRemovedBrokers=true, which keeps its offsets"
            )
        raise PipelineError(
            f"{problem}. If it is one of these logs under another name, it cannot be recognised without an id: call it "
            f"{key} as before (of directories: journal='{key}=/directory'), or its rows come again"
        )

    def _admit_all(self, found: list[Found]) -> None:
        logs = keyed(found, self._known, is_complete=not self._unnamed)
        self._found = {key: one._replace(log=logs[key][1]) for key, one in zip(logs, found, strict=True)}
        self._logs = logs

    def _admit(self, location: LogLocation, log: Log) -> str:
        """One that answers for the first time; the others keep their keys. Returns its key."""
        one = Found(location, log, log.identity())
        check_distinct([(each.location, each.identity) for each in (*self._found.values(), one)])
        [key] = keys_of([one.identity], self._known, self._logs, is_complete=not self._unnamed)
        self._logs[key] = under(key, one)
        self._found[key] = one._replace(log=self._logs[key][1])
        if is_renamed(key, one.identity):
            warn_of_new_name(key, one.identity)
        return key

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
                key = self._admit(location, log)
            except AwayError:
                self._unnamed.append((location, log, time.monotonic() + self._pause_s))
                continue
            self._logs[key][1].wait_patiently()
            _logger.warning("broker %s answers now", key)
