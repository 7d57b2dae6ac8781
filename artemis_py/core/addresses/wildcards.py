"""Addresses that are patterns: which of them match an address, and whether anything about them has changed."""

from __future__ import annotations

from typing import final

from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.wildcards import WildcardIndex
from artemis_py.core.addresses.address import Address


@final
class WildcardAddresses:
    """Finds wildcard addresses by the words of an address. The cost does not depend on how many addresses there are.

    Whoever derives something from them remembers the counts here, and looks again when they have grown. So a queue on a
    wildcard address comes and goes at the same cost, however many addresses match it.
    """

    __slots__ = ("_addresses", "_index", "anycast_losses", "changes")

    def __init__(self, syntax: WildcardSyntax) -> None:
        self._index = WildcardIndex(syntax)
        self._addresses: dict[str, Address] = {}
        self.changes = 0
        """Grows with every wildcard address, and every queue on one, that comes or goes."""
        self.anycast_losses = 0
        """Grows with every anycast queue on a wildcard address that goes: an address may have lost the only queue that
        took its messages.
        """

    def add(self, address: Address) -> None:
        """A wildcard address was created."""
        self._index.add(address.name)
        self._addresses[address.name] = address
        self.changes += 1

    def remove(self, address: Address) -> None:
        """A wildcard address was deleted. Raises KeyError when it is not here."""
        self._index.remove(address.name)
        del self._addresses[address.name]
        self.changes += 1

    def matching(self, name: str) -> list[Address]:
        """The wildcard addresses whose queues get messages sent to this address, ordered by name."""
        addresses = self._addresses
        if not addresses or not self._index.syntax.routing_enabled:
            return []
        return [addresses[pattern] for pattern in self._index.matching(name)]
