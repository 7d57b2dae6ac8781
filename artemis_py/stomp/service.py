"""What all STOMP connections of one acceptor share."""

from __future__ import annotations

from typing import Final

from artemis_py.config.settings import AcceptorConfig
from artemis_py.core.broker import Broker
from artemis_py.stomp.destinations import Prefixes
from artemis_py.stomp.dialect import Dialect
from artemis_py.stomp.frames import VERSIONS, Limits
from artemis_py.stomp.heartbeat import BeatRules
from artemis_py.version import VERSION

TURN_BYTES_MAX: Final = 131072
"""How much one consumer may be sent in one turn."""


class Traffic:
    """Frames counted by command, in both directions; plain ints that a scrape reads."""

    __slots__ = ("frames_in", "frames_out", "sessions_open", "sessions_total")

    def __init__(self) -> None:
        self.frames_in: dict[str, int] = {}
        self.frames_out: dict[str, int] = {}
        self.sessions_open = 0
        self.sessions_total = 0

    def came(self, command: str, count: int = 1) -> None:
        """Count frames received."""
        self.frames_in[command] = self.frames_in.get(command, 0) + count

    def went(self, command: str, count: int = 1) -> None:
        """Count frames sent."""
        self.frames_out[command] = self.frames_out.get(command, 0) + count


class StompService:
    """One acceptor's STOMP: its parameters read once, its dialects with their memories, its counters."""

    def __init__(self, broker: Broker, acceptor: AcceptorConfig, traffic: Traffic) -> None:
        self.broker = broker
        self.traffic = traffic
        self.limits = Limits.of(acceptor)
        self.prefixes = Prefixes.of(acceptor)
        self.dialects = {version: Dialect(version, acceptor) for version in VERSIONS}
        self.connect_dialect = Dialect("1.2", acceptor)
        self.beat_rules = BeatRules.of(acceptor, broker.config.connection_ttl_override)
        self.window_bytes = acceptor.int_param("stompConsumerWindowSize")
        self.enable_message_id = acceptor.bool_param("stompEnableMessageId")
        self.server_header = None if acceptor.bool_param("disableStompServerHeader") else f"artemis_py/{VERSION}"
