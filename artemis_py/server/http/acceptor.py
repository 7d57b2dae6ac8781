"""What the connections of one HTTP acceptor share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from artemis_py.server.failures import Faults
from artemis_py.server.http.authentication import Authentication
from artemis_py.server.http.connection_limit import ConnectionLimit
from artemis_py.server.http.disconnects import DisconnectWatch
from artemis_py.server.http.file_sender import FileSender
from artemis_py.server.http.hosts import Hosts
from artemis_py.server.http.requests import HttpLimits
from artemis_py.server.http.routing import Routes


@final
@dataclass(slots=True)
class HttpAcceptor:
    """The routes, the limits, the connections, and the sender of files. ``now_ms`` is a steady clock in milliseconds;
    ``call_soon`` runs a function in the next round of the event loop.
    """

    routes: Routes
    limits: HttpLimits
    hosts: Hosts
    connection_limit: ConnectionLimit
    files: FileSender
    faults: Faults
    now_ms: Callable[[], int]
    call_soon: Callable[[Callable[[], None]], object]
    authentication: Authentication | None = None
    """Who may use what; None: everybody everything."""
    name: str = ""
    """The name of the acceptor."""
    disconnects: DisconnectWatch | None = None
    """Where nothing watches, a client that leaves while it waits is noticed when it is answered."""
    is_stopping: bool = False
