"""TLS as the server sees it. What it needs is imported when the first acceptor speaks TLS, and not before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, final

from artemis_py.config.settings import AcceptorConfig, BrokerConfig
from artemis_py.core.memory import Holdings
from artemis_py.server.failures import Complaints
from artemis_py.server.stats import ServerStats

if TYPE_CHECKING:
    from artemis_py.server.tls.acceptors import TlsAcceptors

Connect = Callable[[], asyncio.BaseProtocol]


@final
class Encryption:
    """The TLS of all acceptors; nothing while none has any."""

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        complaints: Complaints,
        holdings: Holdings,
        stats: ServerStats,
    ) -> None:
        self._config = config
        self._loop = loop
        self._complaints = complaints
        self._holdings = holdings
        self._stats = stats
        self._tls: TlsAcceptors | None = None

    def load(self, acceptor: AcceptorConfig) -> None:
        """Read an acceptor's keys before its port is opened, if it speaks TLS. Raises StoreError."""
        if not acceptor.is_tls:
            return
        if self._tls is None:
            from artemis_py.server.tls.acceptors import TlsAcceptors

            self._tls = TlsAcceptors(self._config, self._loop, self._complaints, self._holdings)
            self._stats.tls_sites = self._tls.sites
        self._tls.load(acceptor)

    def around(self, acceptor: AcceptorConfig, connect: Connect) -> Connect:
        """Return what makes the protocols of an acceptor's sockets; ``connect`` makes those of its clients."""
        if self._tls is None or not acceptor.is_tls:
            return connect
        return self._tls.serve(acceptor, connect)

    def drop(self, acceptor: AcceptorConfig) -> None:
        """An acceptor is closed."""
        if self._tls is not None and acceptor.is_tls:
            self._tls.drop(acceptor.name)

    def watch(self) -> None:
        """Look at files that may change from now on."""
        if self._tls is not None:
            self._tls.watch()

    def warnings(self) -> list[str]:
        """What an operator must see to, although the broker is ready."""
        return [] if self._tls is None else self._tls.warnings()

    @property
    def handshakes_under_way(self) -> int:
        """How many connections have not completed their handshake."""
        return 0 if self._tls is None else self._tls.handshakes_under_way

    def end_oldest_handshake(self) -> bool:
        """Descriptors are short: close a connection whose handshake is under way; False if there is none."""
        return self._tls is not None and self._tls.end_oldest_handshake()

    def stop(self) -> None:
        """Close connections whose handshake is under way."""
        if self._tls is not None:
            self._tls.stop()
