"""How fast a replay goes: as fast as its client reads, so many messages or bytes in a second, or a multiple of the
speed at which the messages were published. All of it in steady time.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Final, final

from artemis_py.errors import BrokerError
from artemis_py.units import parse_bytes, parse_ms

GAP_MS_MAX: Final = 10_000
"""``rate-max-gap`` by default: a pause of the publishers that is longer is cut to this."""
_BURST_MS: Final = 100.0
"""What a replay missed because it had to wait for its client or its turn is made up for at most this time."""
_TIMES: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)X", re.ASCII | re.IGNORECASE)
_COUNT: Final = re.compile(r"\d{1,12}", re.ASCII)
_RATE_MIN: Final = 0.001
_SHOWN_MAX: Final = 40


class Pace(ABC):
    """Says when the next message may go. This is asked once for each message, in order; then ``went`` is called."""

    __slots__ = ()

    @abstractmethod
    def due_ms(self, time_ms: int, steady_ms: int) -> float:
        """When a message may go that was published at ``time_ms``. ``steady_ms`` is the time now."""

    @abstractmethod
    def went(self, size_bytes: int, time_ms: int, steady_ms: int) -> None:
        """That message has gone, with so many bytes."""

    @abstractmethod
    def resume(self, paused_ms: int) -> None:
        """The replay has been paused for so long."""


@final
class Unpaced(Pace):
    """As fast as the client reads."""

    __slots__ = ()

    def due_ms(self, time_ms: int, steady_ms: int) -> float:
        return 0.0

    def went(self, size_bytes: int, time_ms: int, steady_ms: int) -> None:
        return

    def resume(self, paused_ms: int) -> None:
        return


@final
class PerSecond(Pace):
    """So many messages, or so many bytes of header blocks and bodies, in a second."""

    __slots__ = ("_counts_bytes", "_ms_each", "_next_ms")

    def __init__(self, per_second: float, *, counts_bytes: bool) -> None:
        self._ms_each = 1000.0 / per_second
        self._counts_bytes = counts_bytes
        self._next_ms = 0.0

    def due_ms(self, time_ms: int, steady_ms: int) -> float:
        return self._next_ms

    def went(self, size_bytes: int, time_ms: int, steady_ms: int) -> None:
        cost_ms = self._ms_each * size_bytes if self._counts_bytes else self._ms_each
        begun_ms = max(self._next_ms, steady_ms - _BURST_MS) if self._next_ms else float(steady_ms)
        self._next_ms = begun_ms + cost_ms

    def resume(self, paused_ms: int) -> None:
        return


@final
class Original(Pace):
    """``times`` as fast as the messages were published. No pause is longer than ``gap_ms_max`` of the original."""

    __slots__ = ("_gap_ms_max", "_last_ms", "_next_ms", "_times")

    def __init__(self, times: float, gap_ms_max: int) -> None:
        self._times = times
        self._gap_ms_max = gap_ms_max
        self._last_ms = -1
        """When the message before was published; -1: there is none."""
        self._next_ms = 0.0
        """When that message was due."""

    def due_ms(self, time_ms: int, steady_ms: int) -> float:
        if self._last_ms < 0:
            return 0.0
        gap_ms = min(max(time_ms - self._last_ms, 0), self._gap_ms_max)
        return self._next_ms + gap_ms / self._times

    def went(self, size_bytes: int, time_ms: int, steady_ms: int) -> None:
        is_first = self._last_ms < 0
        self._next_ms = float(steady_ms) if is_first else max(self.due_ms(time_ms, steady_ms), steady_ms - _BURST_MS)
        self._last_ms = max(self._last_ms, time_ms)

    def resume(self, paused_ms: int) -> None:
        self._next_ms += paused_ms


def pace_of(rate: str | None, gap: str | None) -> Pace:
    """The pace that the headers ``rate`` and ``rate-max-gap`` ask for. Raises BrokerError."""
    gap_ms_max = GAP_MS_MAX if gap is None else _gap_ms(gap)
    if rate is None:
        if gap is not None:
            raise BrokerError("rate-max-gap needs rate, with a multiple of the original speed such as 2X")
        return Unpaced()
    text = rate.strip()
    times = _TIMES.fullmatch(text)
    if times is not None:
        return Original(_checked(float(times[1]), rate), gap_ms_max)
    if gap is not None:
        raise BrokerError("rate-max-gap belongs to a multiple of the original speed such as rate:2X")
    if _COUNT.fullmatch(text):
        return PerSecond(_checked(float(text), rate), counts_bytes=False)
    try:
        size_bytes = parse_bytes(text)
    except ValueError:
        size_bytes = 0
    return PerSecond(_checked(float(size_bytes), rate), counts_bytes=True)


def _checked(per_second: float, rate: str) -> float:
    if per_second < _RATE_MIN:
        raise BrokerError(
            f"rate must be a number of messages in a second (1000), of bytes (500KB, 2MB), or a multiple of the "
            f"original speed (2X, 0.5X), not {rate[:_SHOWN_MAX]!r}"
        )
    return per_second


def _gap_ms(text: str) -> int:
    try:
        gap_ms = parse_ms(text)
    except ValueError:
        gap_ms = -1
    if gap_ms < 0:
        raise BrokerError(f"rate-max-gap must be a period such as 10s or 500ms, not {text[:_SHOWN_MAX]!r}")
    return gap_ms
