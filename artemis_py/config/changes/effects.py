"""When a change of an address-setting, or of an attribute of a queue, takes effect in a running broker, and what it
does to the messages of a queue at a start.

A queue is composed once (``core/queue/recipe.py``). An attribute that would change its composition is held back, with
all others for the same part, until a restart composes the queue anew; so is one that the queue may not have with what
is held back. Everything else is changed in place.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.declarations import QUEUE_DEFAULTS, QueueConfig
from artemis_py.config.tables.fields import HONOURED, settings_of
from artemis_py.config.tables.queue_conflicts import CONFLICTS
from artemis_py.config.tables.queue_settings import (
    COMPOSED,
    COMPOSED_OF_IT,
    GROUPS,
    NAMES,
    Part,
    QueueSettings,
    is_for_newcomers,
    parts_of,
)
from artemis_py.terminal_output import many

NOW: Final = "now"
WHEN_IDLE: Final = "when idle"
"""Once the queue is empty and has no consumers; at once if it has no message groups."""
RESTART: Final = "restart"
NOTHING: Final = "none"
"""The broker does not use what was changed, or the rules say that what is there stays."""

_PAIRS_MAX: Final = 1024

_CONFLICTS: Final = tuple(conflict for conflict in CONFLICTS if not conflict.written)
"""The others say what has no effect, so a queue may come to it."""

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
        is_composed = any(part in COMPOSED for part in parts_of(attribute))
        return RESTART, "the queue is composed of it" if is_composed else "not with what waits for a restart, too"
    if parts_of(attribute) == (GROUPS,):
        return (
            WHEN_IDLE,
            "while consumers hold messages of groups, their rule stays until the queue is empty and has no consumers",
        )
    return NOW, FOR_NEWCOMERS if is_for_newcomers(attribute) else ""


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


# ---- a queue that runs -----------------------------------------------------------------------------


@lru_cache(maxsize=_PAIRS_MAX)
def changed(old: QueueSettings, new: QueueSettings) -> frozenset[str]:
    """The attributes that differ."""
    return frozenset(name for name in NAMES if getattr(old, name) != getattr(new, name))


@lru_cache(maxsize=_PAIRS_MAX)
def held_back(old: QueueSettings, new: QueueSettings) -> frozenset[str]:
    """The attributes that differ and need a restart. Without these, the composition of ``new`` is that of ``old``."""
    differing = changed(old, new)
    held: frozenset[str] = frozenset()
    while True:
        reached = replace(new, **{name: getattr(old, name) for name in held})
        remade = [part for part in COMPOSED if _decides(part, old, reached)]
        more = {name for name in differing for part in parts_of(name) if part in remade}
        more |= {
            name
            for conflict in _CONFLICTS
            if conflict.applies(reached) and not conflict.applies(new)
            for name in differing.intersection(conflict.attributes)
        }
        if more <= held:
            return held
        held |= more


def why_held_back(attribute: str, old: QueueSettings, new: QueueSettings) -> str:
    """Why an attribute of ``held_back`` stays as it is, as the rest of a sentence with because."""
    for part in parts_of(attribute):
        if _decides(part, old, new):
            return part.why
    tried = replace(in_force(old, new), **{attribute: getattr(new, attribute)})
    return why_in_conflict(attribute, tried) or COMPOSED_OF_IT


def why_in_conflict(attribute: str, own: QueueSettings) -> str:
    """Why a queue with these settings may not have one of them, in the same form; empty: it may."""
    for conflict in _CONFLICTS:
        if attribute in conflict.attributes and conflict.applies(own):
            return f"with it the queue {conflict.told(own)}"
    return ""


@lru_cache(maxsize=_PAIRS_MAX)
def in_force(old: QueueSettings, new: QueueSettings) -> QueueSettings:
    """What counts after a running queue was changed from ``old`` to ``new`` as far as it can be."""
    return replace(new, **{name: getattr(old, name) for name in held_back(old, new)})


def _decides(part: Part, old: QueueSettings, new: QueueSettings) -> bool:
    """Does the part have to be made anew?"""
    return any(getattr(old, name) != getattr(new, name) for name in part.decides)


# ---- queues that the journal has, where the file says something else of them ---------------------
#
# A start and a reload decide by it, and ``check`` and ``diff`` tell it beforehand. Nothing durable goes because a file
# was changed: only ``config-delete-queues`` and ``config-delete-addresses`` delete messages, a ring or a last-value
# queue replaces those for which it has no room, and what is too old for its queue expires.

FORCE: Final = "FORCE"


def stays_because(config: QueueConfig, address: str, messages: int, *, durable: bool) -> str | None:
    """Why a queue with so many messages, which is on ``address``, does not become what ``config`` declares; None if a
    start makes it so. ``durable``: is it durable now?
    """
    moves = address != config.address
    if not messages or not (moves or (durable and not config.durable)):
        return None
    stays = f"stays on address {address}" if moves else "stays durable"
    why = "a queue does not move" if moves else "a queue that is not durable loses its messages at each restart"
    return (
        f"it {stays}, with its {many(messages, 'message')}: {why}. Consume them, or move them elsewhere (artemis-py "
        f"queue move {config.name} TARGET); then delete the queue (artemis-py queue delete {config.name}), and a "
        f"reload makes it on address {config.address}, as it is declared"
    )


def replaced_because(own: QueueSettings, replaced: int, messages: int) -> str:
    """What a start says of messages of a queue for which it had no room. ``messages``: how many it had before."""
    if own.last_value_key is not None:
        why = f"of those with the same {own.last_value_key} only the last one counts"
    elif own.policy == "RING" and own.limits_depth:
        why = "overflow-policy is RING, and they are more than max-depth-messages or max-depth-bytes"
    else:
        why = "they are more than its ring-size"
    gives = "gives" if replaced == 1 else "give"
    return f"{replaced:,} of its {many(messages, 'message')} {gives} way at the start: {why}"


def expired_because(own: QueueSettings, expired: int, in_pages: int, messages: int) -> str:
    """What a start says of messages that are too old for their queue. ``in_pages``: how many were not checked.
    ``messages``: how many there are in all.
    """
    times = (("max-message-ttl", own.max_message_ttl), ("expiration", own.expiration))
    limits = " and ".join(f"{name} {time_ms} ms" for name, time_ms in times if time_ms > 0)
    told = []
    if expired:
        expire = "is too old and expires" if expired == 1 else "are too old and expire"
        told.append(f"{expired:,} of its {many(messages, 'message')} {expire} after the start")
    if in_pages:
        told.append(f"{many(in_pages, 'message')} in pages, not looked at yet, will expire if too old")
    return f"{'; '.join(told)}: it has {limits}"


def is_forced(config: BrokerConfig, address: str) -> str | None:
    """The setting with which a queue on this address is deleted with its messages, if it was declared there before and
    the file does not declare it there any more; None if it stays.
    """
    settings = config.settings_for(address)
    if settings.config_delete_queues == FORCE:
        return "config-delete-queues"
    if settings.config_delete_addresses != FORCE or any(each.address == address for each in config.diverts):
        return None
    is_declared = any(each.name == address for each in config.addresses)
    return None if is_declared else "config-delete-addresses"
