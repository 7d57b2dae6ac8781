"""Until when messages of a queue wait that are put aside, and in which order they began to wait."""

from __future__ import annotations

from typing import Final, final

RUN_LENGTH: Final = 1024
"""So many messages form a run. A walk copies one run at a time, so that no step depends on how many wait."""
_NONE: Final[dict[int, int]] = {}
_NO_RUNS: Final[dict[int, dict[int, int]]] = {}
"""Most queues never need any of their own, and there are many queues."""


@final
class Dates:
    """Dates by message id, for operators who look. Nothing falls due by them (``timing/timers.py`` has what does)."""

    __slots__ = ("_newest", "_run_of", "_runs")

    def __init__(self) -> None:
        self._runs = _NO_RUNS
        """By number, the oldest first: the dates of messages that began to wait one after the other."""
        self._run_of = _NONE
        """The run of each message."""
        self._newest = 0

    def note(self, message_id: int, date_ms: int) -> None:
        """A message waits until this date (epoch ms), if nobody sets the clock."""
        if self._runs is _NO_RUNS:
            self._runs, self._run_of = {}, {}
        run = self._runs.get(self._newest)
        if run is None or len(run) >= RUN_LENGTH:
            self._newest += 1
            run = self._runs[self._newest] = {}
        run[message_id] = date_ms
        self._run_of[message_id] = self._newest

    def forget(self, message_id: int) -> None:
        """It waits no more."""
        number = self._run_of.pop(message_id, None)
        if number is not None:
            run = self._runs[number]
            del run[message_id]
            if not run:
                del self._runs[number]

    def of(self, message_id: int) -> int:
        """Until when it waits; 0: it does not."""
        number = self._run_of.get(message_id)
        return 0 if number is None else self._runs[number][message_id]

    def walk(self, first_run: int = 0) -> Walk:
        """All that wait now, from a run on, in the order in which they began to. What comes later is not among
        them.
        """
        if self._runs:
            self._newest += 1
        return Walk(self._runs, first_run)

    def __len__(self) -> int:
        return len(self._run_of)


@final
class Walk:
    """Goes through messages that wait, some at a time, while others come and go."""

    def __init__(self, runs: dict[int, dict[int, int]], first_run: int) -> None:
        self.run = 0
        """The number of the run that was copied last."""
        self._runs = runs
        self._numbers = [number for number in reversed(runs) if number >= first_run]
        self._ids: list[int] = []
        """What is left of the run that was copied last, the first at the end."""

    def take(self, count: int) -> list[int]:
        """The ids of the next ones of one run, at most ``count``. Empty: there are no more. One that has ceased to wait
        may be among them.
        """
        while not self._ids and self._numbers:
            self.run = self._numbers.pop()
            self._ids = list(reversed(self._runs.get(self.run, _NONE)))
        some = self._ids[-count:]
        del self._ids[-count:]
        some.reverse()
        return some

    def next_id(self) -> int | None:
        """The id of the next one, or None."""
        ids = self.take(1)
        return ids[0] if ids else None
