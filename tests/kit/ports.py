"""Ports for processes that cannot choose one themselves (``:0``), or that begin again on the same one."""

from __future__ import annotations

import socket
from typing import Final

_HELD: Final[list[socket.socket]] = []


def free_port() -> int:
    """A port of loopback on which nobody listens, and which no other process is given before this one ends: a socket
    stays bound to it. Servers may listen there all the same, because Linux allows it to those with SO_REUSEADDR.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    _HELD.append(held)
    return int(held.getsockname()[1])
