"""What the checks of queues look at: each declared queue, and what each address-setting makes of the queues that it
creates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from artemis_py.config.checks.readers import Readers
from artemis_py.config.merging import SettingsEntry, SettingsRepository
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.entities import QUEUE_DEFAULTS, AddressConfig, Origin, QueueConfig
from artemis_py.config.tables.queue_settings import QueueSettings, queue_settings


class Case(NamedTuple):
    """A queue with what its checks need to know about its surroundings."""

    subject: str
    address: str
    """The address, or the match of an address-setting."""
    is_default: bool
    """Is it an address-setting?"""
    written: Mapping[str, Any]
    """What is written there, by the attribute of the queue."""
    place: Callable[[str], Origin]
    """Where an attribute is written."""
    own: QueueSettings
    settings: AddressSettings
    pages: bool
    """Does the file ask for paging on the address, or on one under a view?"""
    has_neighbours: bool
    """Do other queues get the same messages?"""

    def name(self, attribute: str) -> str:
        """The attribute as it is written there."""
        return (QUEUE_DEFAULTS[attribute] if self.is_default else attribute).replace("_", "-")


def cases(
    addresses: Sequence[AddressConfig],
    entries: Sequence[SettingsEntry],
    settings: SettingsRepository,
    readers: Readers,
) -> Iterator[Case]:
    """The queues of these addresses, and these address-settings."""
    for address in addresses:
        for queue in address.queues:
            merged = settings.settings_for(queue.address)
            yield Case(
                subject=f"queue {queue.name!r}",
                address=queue.address,
                is_default=False,
                written={attribute: getattr(queue, attribute) for attribute, _ in queue.origins},
                place=queue.origin_of,
                own=queue_settings(queue, merged),
                settings=merged,
                pages=readers.pages_under(queue),
                has_neighbours=readers.has_neighbours(queue),
            )
    for entry in entries:
        merged = settings.settings_for(entry.match)
        nobody = QueueConfig(name="", address=entry.match, routing_type="ANYCAST")
        yield Case(
            subject=f"each queue of {entry.match!r}",
            address=entry.match,
            is_default=True,
            written={name: entry.values[other] for name, other in QUEUE_DEFAULTS.items() if other in entry.values},
            place=lambda attribute, entry=entry: entry.origins.get(QUEUE_DEFAULTS[attribute], entry.origin),  # type: ignore[misc]
            own=queue_settings(nobody, merged, declared=False),
            settings=merged,
            pages=readers.pages_at(entry.match),
            has_neighbours=False,
        )
