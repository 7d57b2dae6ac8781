"""When a change of an address-setting, or of an attribute of a queue, takes effect in a running broker."""

from __future__ import annotations

from typing import Final

from artemis_py.config.changes.change import NOTHING, NOW, RESTART, WHEN_IDLE
from artemis_py.config.changes.queue_effects import GROUPING, NEWCOMERS
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.entities import QUEUE_DEFAULTS, QueueConfig
from artemis_py.config.tables.fields import HONOURED, settings_of

_QUEUE_ROWS: Final = {row.attribute: row for row in settings_of(QueueConfig).values()}
_ADDRESS_ROWS: Final = {row.attribute: row for row in settings_of(AddressSettings).values()}
QUEUE_ATTRIBUTES: Final[dict[str, str]] = {
    **{setting: attribute for attribute, setting in QUEUE_DEFAULTS.items()},
    "default_purge_on_no_consumers": "purge_on_no_consumers",
}
"""For each address-setting that is the default of an attribute of queues, that attribute."""

FOR_NEWCOMERS: Final = "for consumers that attach from now on"
_NOTES: Final = {
    "page_size_bytes": "for pages that begin from now on",
    "enable_ingress_timestamp": FOR_NEWCOMERS,
    "default_queue_routing_type": "for queues created from now on",
    "default_address_routing_type": "for addresses created from now on",
    "expiry_delay": "for messages that come from now on",
    "no_expiry": "for messages that come from now on",
    "min_expiry_delay": "for messages that come from now on",
    "max_expiry_delay": "for messages that come from now on",
}


def of_queue_attribute(attribute: str, held: frozenset[str]) -> tuple[str, str]:
    """The effect of a changed attribute, and a note about it. ``held``: those that need a restart on this queue."""
    row = _QUEUE_ROWS.get(attribute)
    if row is not None and row.treatment != HONOURED:
        return NOTHING, row.reason
    if attribute in held:
        return RESTART, "the queue is composed of it"
    if attribute in GROUPING:
        return (
            WHEN_IDLE,
            "while consumers hold messages of groups, their rule stays until the queue is empty and has no consumers",
        )
    return NOW, FOR_NEWCOMERS if attribute in NEWCOMERS else ""


def of_address_setting(setting: str, held: frozenset[str]) -> tuple[str, str]:
    """The effect of a changed address-setting on what is there, and a note. ``held``: see above."""
    row = _ADDRESS_ROWS[setting]
    if row.treatment != HONOURED:
        return NOTHING, row.reason
    attribute = QUEUE_ATTRIBUTES.get(setting)
    if attribute is None or attribute in ("dead_letter_address", "max_delivery_attempts"):
        return NOW, _NOTES.get(setting, "")
    effect, note = of_queue_attribute(attribute, held)
    if effect == RESTART:
        note = "a queue is composed of it: those that are there have it after a restart, new ones at once"
    return effect, note
