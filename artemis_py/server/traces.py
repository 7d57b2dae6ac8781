"""Tells the lives of messages to operators, from the log: in threads, a few at a time, and not for long.

A thread that reads for its time without coming to the end of the log is not lost: its reading is kept for a minute, for
whoever asks to go on from there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Final, final

from artemis_py.errors import ArtemisError, BrokerError, LimitError, NotFoundError
from artemis_py.management.managed import Life
from artemis_py.server.log_view import LogView, Segments

if TYPE_CHECKING:
    from artemis_py.server.trace_source import OwnLog
    from artemis_py.tracing.lives import Lives, Moment

RUNNING_MAX: Final = 2
"""So many are read at the same time."""
KEPT_MAX: Final = 4
"""So many wait to go on. Each has a block of a few MiB in memory."""
KEPT_S: Final = 60.0
MOMENTS_MAX: Final = 1_000
"""So many moments are returned at once."""
_WORK_S: Final = 0.0005
_REST_S: Final = 0.0003
"""After so much work a thread gives the interpreter to the turns: else they could wait 5 ms for it."""
_LOOK: Final = 0b1111
"""How often it looks at the clock: after 16 records."""


@final
class _Reading:
    """The life of one message, as far as it was read."""

    def __init__(self, source: OwnLog, lives: Lives, moments: Iterator[Sequence[Moment]]) -> None:
        self.source = source
        self._lives = lives
        self._moments = moments

    def read(self, seconds: float, is_stopping: Callable[[], bool]) -> Life:
        """Go on for so long. In another thread. Raises BrokerError."""
        told: list[Moment] = []
        try:
            is_whole = self._read_on(told, time.monotonic() + seconds, is_stopping)
        except (ArtemisError, OSError) as error:
            raise BrokerError(f"the log cannot be read: {error}") from None
        if is_whole:
            told += self._lives.still_there()
        source = self.source
        lost = source.lost + len(source.damages)
        rows = [moment.fields() for moment in told]
        return Life(rows, is_whole, source.read_lsn, source.began_ms, source.read_bytes, lost, self._lives.left_out)

    def _read_on(self, told: list[Moment], until_s: float, is_stopping: Callable[[], bool]) -> bool:
        """Was that all?"""
        worked_s, place = time.monotonic(), 0
        for moments in self._moments:
            told += moments
            place += 1
            if len(told) >= MOMENTS_MAX:
                return False
            if place & _LOOK:
                continue
            now_s = time.monotonic()
            if now_s >= until_s or is_stopping():
                return False
            if now_s - worked_s >= _WORK_S:
                time.sleep(_REST_S)
                worked_s = time.monotonic()
        return True


@final
class Traces:
    """``name_of`` knows the names of the queues that are there, by number; threads ask it, too."""

    def __init__(self, loop: asyncio.AbstractEventLoop, view: LogView, name_of: Callable[[int], str]) -> None:
        self._loop = loop
        self._view = view
        self._name_of = name_of
        self._running = 0
        self._kept: dict[tuple[int, int], _Reading] = {}

    def read_life(self, message: int, after_lsn: int, seconds: float) -> asyncio.Future[Life]:
        """The life of a message, after an lsn up to which it was read before (0: from the beginning), as far as it can
        be read in so many seconds. Raises LimitError and NotFoundError; the future may have a BrokerError.
        """
        if self._running >= RUNNING_MAX:
            raise LimitError(f"the lives of {RUNNING_MAX} messages are being read already; ask again in a moment")
        kept = None
        if after_lsn:
            kept = self._kept.pop((message, after_lsn), None)
            if kept is None:
                raise NotFoundError(
                    f"the life of message {message} after lsn {after_lsn} is no longer there; ask without after to"
                    " have it from the beginning"
                )
        self._running += 1
        reading = asyncio.ensure_future(self._tell(message, kept, seconds))
        reading.add_done_callback(self._over)
        return reading

    async def _tell(self, message: int, kept: _Reading | None, seconds: float) -> Life:
        is_over = Event()

        def is_stopping() -> bool:
            return is_over.is_set() or self._view.is_stopping

        read = partial(_read, message, kept, is_stopping, self._view.segments(), self._name_of, seconds)
        try:
            reading, life = await self._loop.run_in_executor(None, read)
        finally:
            is_over.set()  # whoever asked may have left
        if not life.is_whole:
            self._keep((message, life.read_lsn), reading)
        return life

    def _keep(self, key: tuple[int, int], reading: _Reading) -> None:
        if len(self._kept) >= KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = reading
        self._loop.call_later(KEPT_S, self._forget, key, reading)

    def _forget(self, key: tuple[int, int], reading: _Reading) -> None:
        if self._kept.get(key) is reading:
            del self._kept[key]

    def _over(self, reading: asyncio.Future[Life]) -> None:
        self._running -= 1
        if not reading.cancelled():
            reading.exception()  # whoever asked may have left


def _read(
    message: int,
    kept: _Reading | None,
    is_stopping: Callable[[], bool],
    segments: Callable[[], Segments],
    name_of: Callable[[int], str],
    seconds: float,
) -> tuple[_Reading, Life]:
    """What a thread does. Raises BrokerError."""
    reading = kept or _begun(message, segments(), name_of)
    return reading, reading.read(seconds, is_stopping)


def _begun(message: int, segments: Segments, name_of: Callable[[int], str]) -> _Reading:
    """Imports what only this needs, so that a broker that nobody asks starts without it."""
    from artemis_py.server.trace_source import OwnLog
    from artemis_py.tracing.lives import Lives, follow

    source, lives = OwnLog(segments), Lives({message}, name_of=name_of)
    return _Reading(source, lives, follow(source, lives))
