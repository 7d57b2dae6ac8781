"""What the connections of one TLS acceptor share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, final

from artemis_py import log_codes
from artemis_py.core.memory import TLS, TLS_CONNECTION_BYTES, Holdings
from artemis_py.server.failures import Complaints
from artemis_py.server.tls.context import Loaded
from artemis_py.server.tls.handshakes import Handshakes

READ_BYTES: Final = 65536
HANDSHAKE_S: Final = 10.0
"""How long a handshake may take where ``sslHandshakeTimeout`` says nothing and ``handshakeTimeout`` is 0."""
RESULTS: Final = ("ok", "failed", "plain", "late", "left", "crowded")
"""How handshakes end: complete; refused by one side; the client spoke no TLS; it took too long; it left; too many."""


@final
class TlsSite:
    """``loaded`` is replaced when the files change; open connections keep what they have. ``connect`` makes the
    protocol of a client whose handshake is complete.
    """

    def __init__(
        self,
        name: str,
        loop: asyncio.AbstractEventLoop,
        loaded: Loaded,
        connect: Callable[[], asyncio.BaseProtocol],
        handshakes: Handshakes,
        handshake_s: float,
        complaints: Complaints,
        holdings: Holdings,
    ) -> None:
        self.name = name
        self.loop = loop
        self.loaded = loaded
        self.make_protocol = connect
        self.handshakes = handshakes
        self.handshake_s = handshake_s
        """How long a handshake may take; 0: no limit."""
        self.counts = dict.fromkeys(RESULTS, 0)
        self.buffer = memoryview(bytearray(READ_BYTES))
        """What was just read from any socket, encrypted."""
        self.plain = memoryview(bytearray(READ_BYTES))
        """What was just decrypted, for protocols without a buffer of their own."""
        self.reloads = 0
        """How often changed files were loaded."""
        self.reload_failure: str | None = None
        """Why the files as they are now are not used; None if they are."""
        self.broken_count = 0
        """Connections closed after the handshake, because something else than TLS arrived."""
        self._complaints = complaints
        self._holdings = holdings

    @property
    def expires_s(self) -> float:
        """When the certificate of new connections expires, in seconds since 1970."""
        return self.loaded.expires_s

    @property
    def is_stale(self) -> bool:
        """Has a file changed that could not be used?"""
        return self.reload_failure is not None

    def ended(self, result: str, peer: str, reason: str) -> None:
        """A handshake has ended. A failure is told, a few times in ten seconds."""
        self.counts[result] += 1
        if result not in ("ok", "left"):
            line, kind = f"warning: no TLS connection: {reason}", f"{self.name} {result}"
            self._complaints.tell(line, kind, code=log_codes.TLS, acceptor=self.name, from_=peer)

    def broken(self, peer: str, reason: str) -> None:
        """A client sent something that is not what TLS expects here."""
        self.broken_count += 1
        line = f"warning: TLS connection closed: {reason}"
        self._complaints.tell(line, f"{self.name} broken", code=log_codes.TLS, acceptor=self.name, from_=peer)

    def hold(self, count: int) -> None:
        """Count memory for one connection more (1) or less (-1)."""
        self._holdings.move(TLS, count * TLS_CONNECTION_BYTES)
