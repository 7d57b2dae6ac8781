"""Ports for processes that cannot choose one themselves (``:0``), or that begin again on the same one."""

from __future__ import annotations

import socket
from typing import Final

_HELD: Final[list[socket.socket]] = []


def free_ports(count: int) -> list[int]:
    """Ports of loopback on which nobody listens, and which no other process is given before this one ends: a socket
    stays bound to each. Servers may listen there all the same, because Linux allows it to those with SO_REUSEADDR.
    """
    fresh = [socket.socket() for _ in range(count)]
    for each in fresh:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        each.bind(("127.0.0.1", 0))
    _HELD.extend(fresh)
    return [int(each.getsockname()[1]) for each in fresh]


def free_port() -> int:
    """One of these."""
    return free_ports(1)[0]
