"""Where dead and expired messages go."""

from __future__ import annotations

from typing import final

from artemis_py.config.merging import SettingsRepository

_ATTRIBUTES = ("dead_letter_address", "expiry_address")


@final
class Graves:
    """The addresses that address-settings, or queues by themselves, name for dead and expired messages. One that a
    queue has named counts until a restart, because messages of that queue may still be there.
    """

    __slots__ = ("_of_queues", "_of_settings")

    def __init__(self) -> None:
        self._of_settings: frozenset[str] = frozenset()
        self._of_queues: set[str] = set()

    def use(self, settings: SettingsRepository) -> None:
        """These settings count from now on."""
        named = [entry.values.get(attribute) for entry in settings.entries for attribute in _ATTRIBUTES]
        self._of_settings = frozenset(filter(None, named))

    def note(self, name: str | None) -> None:
        """A queue sends its dead messages to this address; None or empty: to none of its own."""
        if name:
            self._of_queues.add(name)

    def __contains__(self, name: str) -> bool:
        return name in self._of_settings or name in self._of_queues
