"""Which addresses of the log a replay reads."""

from __future__ import annotations

from typing import Final, final

from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.wildcards import WildcardIndex, is_wildcard
from artemis_py.core.addresses.retroactive import is_internal
from artemis_py.core.addresses.routing_table import Bindings
from artemis_py.core.addresses.temporary import names_temporary
from artemis_py.errors import NotFoundError
from artemis_py.logged import AddressChoice

_KNOWN_MAX: Final = 4096


@final
class Addresses(AddressChoice):
    """An address, those that a wildcard address stands for, or those under a view. As with queues on a wildcard
    address, what is sent to temporary destinations, to wildcard addresses and to internal ones is not meant.
    """

    __slots__ = ("_index", "_known", "exact", "key", "name", "patterns")

    def __init__(self, patterns: tuple[str, ...], syntax: WildcardSyntax, name: str = "") -> None:
        self.patterns = patterns
        self.name = name or patterns[0]
        """The address that a reader needs the permission of."""
        self.key = "\0".join(sorted(patterns))
        self.exact = patterns[0] if len(patterns) == 1 and not is_wildcard(patterns[0], syntax) else ""
        self._index = WildcardIndex(syntax)
        for pattern in patterns:
            self._index.add(pattern)
        self._known: dict[str, bool] = {}

    def wants(self, address: str) -> bool:
        known = self._known.get(address)
        if known is None:
            if len(self._known) >= _KNOWN_MAX:
                self._known = {}
            known = self._known[address] = self._wants(address)
        return known

    def _wants(self, address: str) -> bool:
        if address in self.patterns:
            return True
        syntax = self._index.syntax
        if is_wildcard(address, syntax) or is_internal(address) or names_temporary(address):
            return False
        return len(self._index.matching(address)) > 0


def addresses_read(bindings: Bindings, syntax: WildcardSyntax, name: str, queue_name: str | None) -> Addresses:
    """What a replay of a destination reads: the address of a queue, those under a view, or the address itself. None of
    them need exist any more, because the log is older than they are. Raises NotFoundError for a queue of another
    address.
    """
    if queue_name is None:
        known = bindings.addresses.get(name)
        queue = bindings.queues.get(name) if known is None else known.view
    else:
        queue = bindings.queues.get(queue_name)
        if queue is not None and name and queue.address.name != name:
            raise NotFoundError(f"Queue {queue_name} is on address {queue.address.name}, not on {name}")
    address = name or queue_name or ""
    if queue is not None:
        address = queue.address.name
        if queue.view is not None:
            return Addresses(queue.view.underlying, syntax, address)
    if not address:
        raise NotFoundError("The destination has no address")
    return Addresses((address,), syntax)
