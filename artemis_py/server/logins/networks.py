"""Which addresses count as one peer, and how many connections without a login a peer may have."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final, final

_IPV6_HOST_BITS: Final = 64
"""Anybody with one IPv6 address usually has all of this many bits."""


def network_of(address: str) -> str:
    """The peer that an IP address belongs to: an IPv4 address, or the /64 of an IPv6 address. Any other text is its own
    peer.
    """
    if ":" not in address:
        return address
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return f"{IPv6Address(int(found) >> _IPV6_HOST_BITS << _IPV6_HOST_BITS)}/64"


@final
class ConnectionsBeforeLogin:
    """Connections that have not logged in, by peer: at most ``each_max`` of each; -1: any number."""

    __slots__ = ("_counts", "each_max")

    def __init__(self, each_max: int) -> None:
        self.each_max = each_max
        self._counts: dict[str, int] = {}

    @property
    def why_full(self) -> str:
        """The error for a client that is one too many."""
        return (
            f"{self.each_max} connections from your address have not logged in yet, which is the limit "
            "(maxConnectionsBeforeLogin of the acceptor); try again later"
        )

    def add(self, network: str) -> bool:
        """Count one more; False if there are too many."""
        count = self._counts.get(network, 0)
        if 0 <= self.each_max <= count:
            return False
        self._counts[network] = count + 1
        return True

    def forget(self, network: str) -> None:
        """One has logged in or is gone."""
        count = self._counts[network] - 1
        if count:
            self._counts[network] = count
        else:
            del self._counts[network]
