"""Which queues get what is sent to an address, as far as the file tells: its own, and views."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.merging import SettingsRepository
from artemis_py.config.tables.declarations import AddressConfig, QueueConfig
from artemis_py.config.tables.views import View, view_of
from artemis_py.config.wildcards import WildcardIndex


class Readers:
    """The declared queues by what they read."""

    def __init__(
        self, addresses: Sequence[AddressConfig], settings: SettingsRepository, syntax: WildcardSyntax
    ) -> None:
        self.own = {address.name: address.queues for address in addresses}
        self._settings = settings
        self._index = WildcardIndex(syntax)
        self._views: dict[str, list[QueueConfig]] = {}
        self._targets: dict[str, tuple[QueueConfig, str]] = {}
        for queue in (queue for address in addresses for queue in address.queues):
            view = view_of(queue.underlying_address, queue.default_publish_target, queue.address)
            if view is not None:
                self._add(queue, view)

    def _add(self, queue: QueueConfig, view: View) -> None:
        for pattern in view.underlying:
            self._index.add(pattern)
            self._views.setdefault(pattern, []).append(queue)
        if view.target != queue.address:
            self._targets[queue.address] = queue, view.target

    @property
    def names(self) -> list[str]:
        """The addresses with queues, and those that views name."""
        return [*self.own, *self._views]

    def passed_on(self, name: str) -> tuple[QueueConfig, str] | None:
        """The view on whose address nothing is published, and the address to which it passes on what is sent there; "":
        it is not known to which.
        """
        return self._targets.get(name)

    def of(self, name: str) -> list[QueueConfig]:
        """The queues that get what is sent to an address."""
        views = [queue for pattern in self._index.matching(name) for queue in self._views[pattern]]
        return list({queue.name: queue for queue in (*self.own.get(name, ()), *views)}.values())

    @cached_property
    def _sources(self) -> dict[str, dict[str, None]]:
        """For each view the addresses that it names, and those that it matches and that the file names elsewhere."""
        found: dict[str, dict[str, None]] = {}
        if not self._views:
            return found
        for name in dict.fromkeys((*self.names, *(entry.match for entry in self._settings.entries))):
            for pattern in self._index.matching(name):
                for queue in self._views[pattern]:
                    found.setdefault(queue.name, {})[name] = None
        return found

    def sources_of(self, queue: QueueConfig) -> list[str]:
        """The addresses whose messages a queue gets."""
        return list(self._sources.get(queue.name, ())) or [queue.address]

    def has_neighbours(self, queue: QueueConfig) -> bool:
        """Do other queues get messages of the same addresses?"""
        return any(
            other.name != queue.name
            for name in self.sources_of(queue)
            for others in (self.own.get(name, ()), *(self._views[pattern] for pattern in self._index.matching(name)))
            for other in others
        )

    def pages_at(self, address: str) -> bool:
        """Does the file ask for paging on an address, or set the limit of one that pages? Otherwise the address pages
        only when all memory is full.
        """
        merged = self._settings.settings_for(address)
        asked_for = self._settings.decided_by(address, "address_full_policy") is not None
        return merged.address_full_policy == "PAGE" and (asked_for or merged.limits_memory)

    def pages_under(self, queue: QueueConfig) -> bool:
        """Does the file ask for paging on an address whose messages the queue gets?"""
        return any(self.pages_at(name) for name in self.sources_of(queue))
