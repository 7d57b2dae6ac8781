"""Destinations as clients write them: prefixes, fully qualified names, temporary names."""

from __future__ import annotations

from typing import Final

from artemis_py.config.settings import AcceptorConfig
from artemis_py.core.address import ANYCAST, MULTICAST

TEMPORARY_PREFIXES: Final = {"/temp-queue/": ANYCAST, "/temp-topic/": MULTICAST}
"""Destinations that live as long as the connection that names them, and are private to it until given away as a
reply-to.
"""


class Prefixes:
    """An acceptor's ``anycastPrefix`` and ``multicastPrefix``: a prefix is taken off and decides the routing type."""

    __slots__ = ("_prefixes",)

    def __init__(self, anycast: tuple[str, ...], multicast: tuple[str, ...]) -> None:
        pairs = [(prefix, ANYCAST) for prefix in anycast] + [(prefix, MULTICAST) for prefix in multicast]
        self._prefixes = sorted(pairs, key=lambda pair: -len(pair[0]))

    @staticmethod
    def of(acceptor: AcceptorConfig) -> Prefixes:
        """The prefixes that an acceptor's parameters set."""
        return Prefixes(acceptor.list_param("anycastPrefix"), acceptor.list_param("multicastPrefix"))

    def split(self, destination: str) -> tuple[str, str | None]:
        """The destination without its prefix, and the routing type that the prefix means (None: no prefix)."""
        for prefix, routing_type in self._prefixes:
            if destination.startswith(prefix):
                return destination[len(prefix) :], routing_type
        return destination, None


def split_qualified(name: str) -> tuple[str, str | None]:
    """``address::queue`` in its two parts; a name without ``::`` is an address."""
    address, colons, queue = name.partition("::")
    return (address, queue) if colons else (name, None)


def temporary_address(destination: str, owner: str) -> tuple[str, str] | None:
    """The address behind a connection's temporary destination and its routing type; None for any other destination."""
    for prefix, routing_type in TEMPORARY_PREFIXES.items():
        if destination.startswith(prefix):
            return f"{prefix[1:-1]}.{owner}.{destination[len(prefix) :]}", routing_type
    return None
