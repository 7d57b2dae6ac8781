"""Addresses that are patterns: which of them match an address."""

from __future__ import annotations

from typing import final

from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.wildcards import WildcardIndex
from artemis_py.core.addresses.address import Address


@final
class WildcardAddresses:
    """Finds wildcard addresses by the words of an address. The cost does not depend on how many addresses there are."""

    __slots__ = ("_addresses", "_index")

    def __init__(self, syntax: WildcardSyntax) -> None:
        self._index = WildcardIndex(syntax)
        self._addresses: dict[str, Address] = {}

    def add(self, address: Address) -> None:
        """A wildcard address was created."""
        self._index.add(address.name)
        self._addresses[address.name] = address

    def remove(self, address: Address) -> None:
        """A wildcard address was deleted. Raises KeyError when it is not here."""
        self._index.remove(address.name)
        del self._addresses[address.name]

    def matching(self, name: str) -> list[Address]:
        """The wildcard addresses whose queues get messages sent to this address, ordered by name."""
        addresses = self._addresses
        if not addresses or not self._index.syntax.routing_enabled:
            return []
        return [addresses[pattern] for pattern in self._index.matching(name)]
