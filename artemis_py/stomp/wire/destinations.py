"""Destinations as clients write them: prefixes and fully qualified names."""

from __future__ import annotations

from artemis_py.config.settings import AcceptorConfig
from artemis_py.core.addresses.address import ANYCAST, MULTICAST


class Prefixes:
    """An acceptor's ``anycastPrefix`` and ``multicastPrefix``: a prefix is removed and decides the routing type."""

    __slots__ = ("_prefixes",)

    def __init__(self, anycast: tuple[str, ...], multicast: tuple[str, ...]) -> None:
        pairs = [(prefix, ANYCAST) for prefix in anycast] + [(prefix, MULTICAST) for prefix in multicast]
        self._prefixes = sorted(pairs, key=lambda pair: -len(pair[0]))

    @staticmethod
    def of(acceptor: AcceptorConfig) -> Prefixes:
        """The prefixes that an acceptor's parameters set."""
        return Prefixes(acceptor.list_param("anycastPrefix"), acceptor.list_param("multicastPrefix"))

    def split(self, destination: str) -> tuple[str, str | None]:
        """The destination without its prefix, and the prefix's routing type (None: no prefix)."""
        for prefix, routing_type in self._prefixes:
            if destination.startswith(prefix):
                return destination[len(prefix) :], routing_type
        return destination, None


def split_qualified(name: str) -> tuple[str, str | None]:
    """Split ``address::queue``; a name without ``::`` is an address."""
    address, colons, queue = name.partition("::")
    return (address, queue) if colons else (name, None)
