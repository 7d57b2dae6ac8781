"""The address-settings that operators make while the broker runs. They survive a restart and a reload."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, final

from artemis_py.config.settings import AddressSettings, BrokerConfig, Origin, SettingsEntry, SettingsRepository
from artemis_py.config.tables.fields import settings_of
from artemis_py.core.events import OPERATION
from artemis_py.core.host import Host
from artemis_py.errors import BrokerError, NotFoundError

KIND: Final = "address-setting"
"""What the log calls them."""
_PLACE: Final = Origin("an operator", 0)
_ATTRIBUTES: Final = frozenset(row.attribute for row in settings_of(AddressSettings).values())


@final
class SettingsChanges:
    """What operators said, by match: all that an address-setting of this match says, in the place of broker.xml's."""

    __slots__ = ("_host", "_made", "declared")

    def __init__(self, host: Host, declared: BrokerConfig, kept: Iterable[dict[str, Any]]) -> None:
        self._host = host
        self.declared = declared
        """The configuration as the files say it."""
        self._made: dict[str, dict[str, Any]] = {}
        for fields in kept:
            if fields["kind"] == KIND:
                values = fields["values"].items()
                self._made[fields["name"]] = {name: value for name, value in values if name in _ATTRIBUTES}

    @property
    def config(self) -> BrokerConfig:
        """The configuration with what operators said."""
        return self.over(self.declared)

    def over(self, config: BrokerConfig, match: str = "", values: dict[str, Any] | None = None) -> BrokerConfig:
        """The same configuration with what operators said, and with these values, by attribute, for one more match."""
        made = self._made if values is None else {**self._made, match: values}
        return _with(config, made)

    def put(self, match: str, values: dict[str, Any]) -> None:
        """A match has these values from now on."""
        self._made[match] = values
        self._host.log.configured({"kind": KIND, "name": match, "values": values})
        self._tell(match, "add")

    def remove(self, match: str) -> None:
        """What broker.xml says counts again for a match. Raises NotFoundError if nobody said anything about it, and
        BrokerError if only the file did.
        """
        if match not in self._made:
            if any(entry.match == match for entry in self.declared.address_settings.entries):
                raise BrokerError(f"the address-setting {match} is that of broker.xml; change it there, and reload")
            raise NotFoundError(f"no operator has made an address-setting for {match[:200]!r}")
        del self._made[match]
        self._host.log.configured({"kind": KIND, "name": match, "deleted": True})
        self._tell(match, "remove")

    def _tell(self, match: str, operation: str) -> None:
        told: dict[str, str | int] = {"operation": f"{operation} address-setting {match}"}
        self._host.events.note(OPERATION, match, told, kind=f"{operation} address-setting")


def _with(config: BrokerConfig, made: dict[str, dict[str, Any]]) -> BrokerConfig:
    if not made:
        return config
    entries = {entry.match: entry for entry in config.address_settings.entries}
    for match, values in made.items():
        origins = dict.fromkeys(values, _PLACE)
        entries[match] = SettingsEntry(match=match, values=values, origins=origins, origin=_PLACE)
    repository = SettingsRepository(
        tuple(entries.values()),
        config.wildcards,
        literal_match_markers=config.literal_match_markers,
        uuid_namespace=config.uuid_namespace,
    )
    return replace(config, address_settings=repository)
