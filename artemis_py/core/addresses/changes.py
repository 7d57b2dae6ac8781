"""What a reload changes about an address that is there."""

from __future__ import annotations

from collections.abc import Iterable

from artemis_py.core.addresses.address import Address, Divert


def narrow_routing_types(address: Address, routing_types: Iterable[str]) -> frozenset[str]:
    """The address has only these routing types from now on, and those of its queues. Returns what it has beside the
    wanted ones.
    """
    wanted = frozenset(routing_types)
    if address.routing_types == wanted:
        return frozenset()
    used = frozenset({queue.routing_type for queue in address.queues.values()})
    address.routing_types = frozenset()
    address.add_routing_types(wanted | used)
    return used - wanted


def set_diverts(address: Address, diverts: list[Divert]) -> None:
    """These are the diverts from now on."""
    address.diverts = diverts
    address.plan = None
