"""Heart-beats: the agreed intervals, and when a beat is due or missed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, final

from artemis_py.config.settings import AcceptorConfig
from artemis_py.core.clock import Clock
from artemis_py.stomp.wire.frames import FrameError

_SERVER_INTERVAL_MS_MIN: Final = 500
_SERVER_INTERVAL_MS_MAX: Final = 300_000
"""A client that asks for fewer beats still gets this many: the broker detects dead clients by sending."""
_LOOK_MS: Final = 60_000
"""How often to look whether a login has ended that ends at a date: somebody may set the clock."""


@dataclass(frozen=True, slots=True)
class HeartbeatRules:
    """An acceptor's parameters for silent clients (Artemis manual, "STOMP heart-beats and connection-ttl"). Times in
    ms.
    """

    ttl_ms_min: int
    ttl_ms_max: int
    modifier: float
    silent_ttl_ms: int
    """For clients that announce no heart-beats; 0: they may be silent for ever (by STOMP 1.2, a server must not expect
    beats then).
    """
    default_ttl_ms: int = 60000

    @staticmethod
    def of(acceptor: AcceptorConfig, connection_ttl_override_ms: int) -> HeartbeatRules:
        """The rules of one acceptor; silent clients have a ttl only if the file sets one."""
        configured = (
            int(acceptor.params["connectionTtl"]) if "connectionTtl" in acceptor.params else connection_ttl_override_ms
        )
        return HeartbeatRules(
            acceptor.int_param("connectionTtlMin"),
            acceptor.int_param("connectionTtlMax"),
            acceptor.float_param("heartBeatToConnectionTtlModifier"),
            max(configured, 0),
        )


@dataclass(frozen=True, slots=True)
class HeartbeatIntervals:
    """The agreement of a connection. ``send_ms``: the broker sends something at least this often (0: not required).
    ``ttl_ms``: how long the client may be silent (0: for ever). ``header``: the value in CONNECTED, None if the client
    sent none.
    """

    send_ms: int = 0
    ttl_ms: int = 0
    header: str | None = None

    @property
    def every_ms(self) -> int:
        """How often the broker actually sends: early, and also while messages flow, because clients are strict."""
        return self.send_ms * 3 // 4


_NO_BEATS: Final = HeartbeatIntervals()
"""One for all connections without beats."""


@final
class Heartbeat:
    """When a client was last heard, when the next heart-beat goes out, and when the client's login ends. All of it in
    steady time (``core/clock.py``).
    """

    __slots__ = ("_clock", "_ends_ms", "_last_beat_ms", "_last_in_ms", "beats", "ping_ms", "pings")

    def __init__(self, clock: Clock, now_ms: int) -> None:
        self.beats = _NO_BEATS
        self.ping_ms = 0
        """How often a client that wants no heart-beats still gets one, for a protocol below that sends something else
        instead; 0: never.
        """
        self.pings = False
        """Is it such a client?"""
        self._ends_ms = 0
        """The date at which the login ends; 0: never."""
        self._clock = clock
        self._last_in_ms = self._last_beat_ms = clock.steady_ms(now_ms)

    def begin(self, beats: HeartbeatIntervals, now_ms: int, ends_ms: int = 0) -> None:
        """The session is open, and this was agreed on. Its login ends at the date ``ends_ms``; 0: never."""
        self.pings = self.ping_ms > 0 and not beats.send_ms
        self.beats = replace(beats, send_ms=self.ping_ms * 4 // 3) if self.pings else beats
        self._ends_ms = ends_ms
        self._last_beat_ms = self._clock.steady_ms(now_ms)

    def note_alive(self, now_ms: int) -> None:
        """The client has said something, or what it says cannot be heard now."""
        self._last_in_ms = now_ms - self._clock.shift_ms

    @property
    def last_in_ms(self) -> int:
        """The date at which the client was last heard."""
        return self._clock.date_ms(self._last_in_ms)

    def next_ms(self, now_ms: int, *, hears: bool) -> int | None:
        """The steady time at which there is something to do, or None. ``hears``: is the client's socket read?"""
        due_ms: int | None = None
        if self.beats.send_ms:
            due_ms = self._last_beat_ms + self.beats.every_ms
        if self.beats.ttl_ms and hears:
            dead_ms = self._last_in_ms + self.beats.ttl_ms
            due_ms = dead_ms if due_ms is None else min(due_ms, dead_ms)
        if self._ends_ms:
            end_ms = self._clock.steady_ms(min(self._ends_ms, now_ms + _LOOK_MS))
            due_ms = end_ms if due_ms is None else min(due_ms, end_ms)
        return due_ms

    def has_ended(self, now_ms: int) -> bool:
        """Has the client's login ended?"""
        return 0 < self._ends_ms <= now_ms

    def why_over(self, now_ms: int, *, hears: bool) -> str:
        """Why the session must end: its login has ended, or the client has been silent for longer than agreed on;
        empty if it may go on. ``hears``: is the client's socket read?
        """
        if self.has_ended(now_ms):
            return "Your login has ended because its token expired; connect again with a new one"
        silent_ms = self._clock.steady_ms(now_ms) - self._last_in_ms
        if hears and 0 < self.beats.ttl_ms <= silent_ms:
            return f"Nothing received for {silent_ms} ms; the agreed limit is {self.beats.ttl_ms} ms"
        return ""

    def take_beat(self, now_ms: int) -> bool:
        """Is a heart-beat due? Then the next one is due later."""
        steady_ms = self._clock.steady_ms(now_ms)
        if not self.beats.send_ms or steady_ms < self._last_beat_ms + self.beats.every_ms:
            return False
        self._last_beat_ms = steady_ms
        return True


def negotiate(text: str | None, rules: HeartbeatRules) -> HeartbeatIntervals:
    """Answer a client's heart-beat header ``cx,cy``. Raises FrameError if it is malformed."""
    if text is None:
        return HeartbeatIntervals(ttl_ms=rules.silent_ttl_ms) if rules.silent_ttl_ms else _NO_BEATS
    first, comma, second = text.partition(",")
    if not comma or not _is_number(first) or not _is_number(second):
        raise FrameError(f"heart-beat must be two numbers of milliseconds separated by a comma, not {text[:40]!r}")
    client_sends_ms, client_wants_ms = int(first), int(second)
    send_ms = 0
    if client_wants_ms:
        send_ms = min(max(client_wants_ms, _SERVER_INTERVAL_MS_MIN), _SERVER_INTERVAL_MS_MAX)
    if client_sends_ms == 0:
        wanted_ms = int((rules.silent_ttl_ms or rules.default_ttl_ms) / rules.modifier)
        return HeartbeatIntervals(send_ms, rules.silent_ttl_ms, f"{send_ms},{_clamped(wanted_ms, rules)}")
    ttl_ms = int(min(max(client_sends_ms * rules.modifier, rules.ttl_ms_min), rules.ttl_ms_max))
    wanted_ms = client_sends_ms if ttl_ms == int(client_sends_ms * rules.modifier) else int(ttl_ms / rules.modifier)
    return HeartbeatIntervals(send_ms, ttl_ms, f"{send_ms},{wanted_ms}")


def _clamped(wanted_ms: int, rules: HeartbeatRules) -> int:
    """The answer to a client without beats also respects the acceptor's maximum ttl."""
    return min(wanted_ms, int(rules.ttl_ms_max / rules.modifier))


def _is_number(text: str) -> bool:
    stripped = text.strip(" ")
    return stripped.isascii() and stripped.isdigit() and len(stripped) <= 12
