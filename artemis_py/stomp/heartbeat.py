"""Heart-beats: the agreed intervals, and when a beat is due or missed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from artemis_py.config.settings import AcceptorConfig
from artemis_py.stomp.frames import FrameError

_SERVER_INTERVAL_MS_MIN: Final = 500
_SERVER_INTERVAL_MS_MAX: Final = 300_000
"""A client that asks for fewer beats still gets this many: the broker detects dead clients by sending."""


@dataclass(frozen=True, slots=True)
class BeatRules:
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
    def of(acceptor: AcceptorConfig, connection_ttl_override_ms: int) -> BeatRules:
        """The rules of one acceptor; silent clients have a ttl only if the file sets one."""
        configured = (
            int(acceptor.params["connectionTtl"]) if "connectionTtl" in acceptor.params else connection_ttl_override_ms
        )
        return BeatRules(
            acceptor.int_param("connectionTtlMin"),
            acceptor.int_param("connectionTtlMax"),
            acceptor.float_param("heartBeatToConnectionTtlModifier"),
            max(configured, 0),
        )


@dataclass(frozen=True, slots=True)
class Beats:
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


def negotiate(text: str | None, rules: BeatRules) -> Beats:
    """Answer a client's heart-beat header ``cx,cy``. Raises FrameError if it is malformed."""
    if text is None:
        return Beats(ttl_ms=rules.silent_ttl_ms)
    first, comma, second = text.partition(",")
    if not comma or not _is_number(first) or not _is_number(second):
        raise FrameError(f"heart-beat must be two numbers of milliseconds separated by a comma, not {text[:40]!r}")
    client_sends_ms, client_wants_ms = int(first), int(second)
    send_ms = 0
    if client_wants_ms:
        send_ms = min(max(client_wants_ms, _SERVER_INTERVAL_MS_MIN), _SERVER_INTERVAL_MS_MAX)
    if client_sends_ms == 0:
        wanted_ms = int((rules.silent_ttl_ms or rules.default_ttl_ms) / rules.modifier)
        return Beats(send_ms, rules.silent_ttl_ms, f"{send_ms},{_clamped(wanted_ms, rules)}")
    ttl_ms = int(min(max(client_sends_ms * rules.modifier, rules.ttl_ms_min), rules.ttl_ms_max))
    wanted_ms = client_sends_ms if ttl_ms == int(client_sends_ms * rules.modifier) else int(ttl_ms / rules.modifier)
    return Beats(send_ms, ttl_ms, f"{send_ms},{wanted_ms}")


def _clamped(wanted_ms: int, rules: BeatRules) -> int:
    """The answer to a client without beats also respects the acceptor's maximum ttl."""
    return min(wanted_ms, int(rules.ttl_ms_max / rules.modifier))


def _is_number(text: str) -> bool:
    stripped = text.strip()
    return stripped.isascii() and stripped.isdigit() and len(stripped) <= 12
