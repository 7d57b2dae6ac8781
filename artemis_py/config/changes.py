"""The differences between two configurations, each with the place in the new file, when it takes effect in a running
broker, and what it does to the messages of a queue at a start.

A queue is composed once (``core/queue/recipe.py``). An attribute that would change its composition is held back, with
all others for the same part, until a restart composes the queue anew; so is one that the queue may not have with what
is held back. Everything else is changed in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Final, final

from artemis_py.config.secrets_in_text import MASK, names_a_secret
from artemis_py.config.security_settings import PERMISSIONS
from artemis_py.config.settings import AddressConfig, BrokerConfig, CoreSettings, DivertConfig, SettingsEntry
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.bridges import BridgeConfig
from artemis_py.config.tables.declarations import NOWHERE, QUEUE_DEFAULTS, Origin, QueueConfig
from artemis_py.config.tables.fields import HONOURED, Setting, settings_of, show
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
    queue_settings,
)
from artemis_py.terminal_output import many

# ---- when a change takes effect --------------------------------------------------------------------------------------

NOW: Final = "now"
WHEN_IDLE: Final = "when idle"
"""Once the queue is empty and has no consumers; at once if it has no message groups."""
RESTART: Final = "restart"
NOTHING: Final = "none"
"""The broker does not use what was changed, or the rules say that what is there stays."""

_PAIRS_MAX: Final = 1024

_CONFLICTS: Final = tuple(conflict for conflict in CONFLICTS if not conflict.written)
"""The others say what has no effect, so a queue may come to it."""

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
        f"reload creates it on address {config.address}, as it is declared"
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


# ---- the differences -------------------------------------------------------------------------------------------------

ADDED: Final = "added"
REMOVED: Final = "removed"
CHANGED: Final = "changed"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """``part`` is the kind of element and ``name`` its name or match; ``setting`` is empty where the whole element is
    meant. ``old`` and ``new`` are shown as in the file; None: not set. ``effect`` is one of the words of
    :mod:`artemis_py.config.changes`.
    """

    part: str
    name: str
    action: str
    effect: str
    setting: str = ""
    old: str | None = None
    new: str | None = None
    note: str = ""
    origin: Origin = NOWHERE

    @property
    def what(self) -> str:
        """The element, and the setting if one is meant."""
        named = f"{self.part} {self.name}" if self.name else self.part
        return f"{named}: {self.setting}" if self.setting else named

    def __str__(self) -> str:
        values = f" {self.old or 'not set'} → {self.new or 'not set'}" if self.setting else f" {self.action}"
        return f"{self.what}{values} ({self.origin}){f'; {self.note}' if self.note else ''}"

    def as_row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "part": self.part,
            "name": self.name,
            "setting": self.setting,
            "action": self.action,
            "old": self.old,
            "new": self.new,
            "effect": self.effect,
            "note": self.note,
            "file": self.origin.file,
            "line": self.origin.line,
        }


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """The differences, in the order of the parts: core, then what is declared, then acceptors and logins."""

    changes: tuple[Change, ...] = ()

    def those(self, effects: Iterable[str]) -> tuple[Change, ...]:
        """The changes with one of these effects."""
        wanted = frozenset(effects)
        return tuple(change for change in self.changes if change.effect in wanted)

    @property
    def need_restart(self) -> tuple[Change, ...]:
        """What only a restart brings into effect."""
        return self.those((RESTART,))


_ADDRESS_ROWS: Final = {row.attribute: row for row in settings_of(AddressSettings).values()}
_QUEUE_ROWS: Final = {row.attribute: row for row in settings_of(QueueConfig).values()}
_NAMES_MAX: Final = 3
_READ_ONCE: Final = "read at the start only"


def plan_of(old: BrokerConfig, new: BrokerConfig) -> Plan:
    """The differences. ``old`` is what a running broker has in force; ``new`` is compared with it."""
    held = _held_by_queue(old, new)
    changes = [
        *_core(old, new),
        *_read_once(old, new),
        *_security(old, new),
        *_address_settings(old, new, held),
        *_diverts(old, new),
        *_addresses(old, new, held),
        *_bridges(old, new),
        *_acceptors(old, new),
        *_logins(old, new),
    ]
    return Plan(tuple(changes))


# ---- core ------------------------------------------------------------------------------------------


def _core(old: BrokerConfig, new: BrokerConfig) -> Iterator[Change]:
    for row in settings_of(CoreSettings).values():
        values = getattr(old, row.attribute), getattr(new, row.attribute)
        if values[0] == values[1]:
            continue
        origin = new.origins.get(row.attribute) or old.origins.get(row.attribute) or NOWHERE
        effect, note = (RESTART, _READ_ONCE) if row.treatment == HONOURED else (NOTHING, row.reason)
        yield _changed("core", "", row, values, effect, note, origin)


def _read_once(old: BrokerConfig, new: BrokerConfig) -> Iterator[Change]:
    """Structures that a running broker does not exchange, as in Artemis."""
    pairs = (
        ("wildcard-addresses", old.wildcards, new.wildcards),
        ("journal-retention-directory", old.journal_retention, new.journal_retention),
        ("resource-limit-settings", old.user_limits, new.user_limits),
        ("ha-policy", old.shared_store, new.shared_store),
        ("jolokia-access.xml", old.web_access, new.web_access),
    )
    for part, before, after in pairs:
        if without_places(before) != without_places(after):
            yield Change(
                part=part, name="", action=CHANGED, effect=RESTART, note=_READ_ONCE, origin=Origin(new.file, 0)
            )


# ---- security --------------------------------------------------------------------------------------


def _security(old: BrokerConfig, new: BrokerConfig) -> Iterator[Change]:
    before = {each.match: each for each in old.security.settings}
    after = {each.match: each for each in new.security.settings}
    for match, setting in after.items():
        known = before.get(match)
        if known is None:
            yield Change(part="security-setting", name=match, action=ADDED, effect=NOW, origin=setting.origin)
            continue
        for permission in PERMISSIONS:
            roles = known.roles.get(permission, ()), setting.roles.get(permission, ())
            if set(roles[0]) != set(roles[1]):
                shown = [", ".join(each) or None for each in roles]
                yield Change(
                    part="security-setting", name=match, action=CHANGED, effect=NOW, setting=permission,
                    old=shown[0], new=shown[1], origin=setting.origin,
                )  # fmt: skip
    for match, setting in before.items():
        if match not in after:
            yield Change(part="security-setting", name=match, action=REMOVED, effect=NOW, origin=setting.origin)


# ---- address-settings ------------------------------------------------------------------------------


def _address_settings(old: BrokerConfig, new: BrokerConfig, held: Mapping[str, frozenset[str]]) -> Iterator[Change]:
    before = {each.match: each for each in old.address_settings.entries}
    after = {each.match: each for each in new.address_settings.entries}
    nothing = SettingsEntry(match="")
    for match in (*after, *(each for each in before if each not in after)):
        was, is_now = before.get(match, nothing), after.get(match, nothing)
        action = ADDED if match not in before else REMOVED if match not in after else CHANGED
        of_any = _held_of_sample(match, old, new) if was.values != is_now.values else frozenset()
        for name in dict.fromkeys((*is_now.values, *was.values)):
            values = was.values.get(name), is_now.values.get(name)
            if values[0] == values[1] and (name in was.values) == (name in is_now.values):
                continue
            row = _ADDRESS_ROWS[name]
            effect, note = of_address_setting(name, of_any)
            if effect == NOW:
                note = _with_queues(row.attribute, held, note)
            origin = is_now.origins.get(name) or was.origins.get(name) or NOWHERE
            change = _changed("address-setting", match, row, values, effect, note, origin)
            yield replace(change, action=action)


def _held_of_sample(match: str, old: BrokerConfig, new: BrokerConfig) -> frozenset[str]:
    """What a queue that nobody declared would need a restart for, on an address that the match is for."""
    syntax = new.wildcards
    name = match.replace(syntax.any_words, "x").replace(syntax.single_word, "x")
    config = QueueConfig(name=name, address=name, routing_type="ANYCAST")
    pair = [queue_settings(config, each.settings_for(name), declared=False) for each in (old, new)]
    return held_back(*pair)


def _with_queues(setting: str, held: Mapping[str, frozenset[str]], note: str) -> str:
    """Name the declared queues for which the setting still needs a restart."""
    attribute = QUEUE_ATTRIBUTES.get(setting)
    names = [name for name, attributes in held.items() if attribute in attributes]
    if not names:
        return note
    rest = "" if len(names) <= _NAMES_MAX else f" and {len(names) - _NAMES_MAX} more"
    return f"{note}; " * bool(note) + f"a restart is needed for queue {', '.join(names[:_NAMES_MAX])}{rest}"


# ---- addresses, queues, diverts --------------------------------------------------------------------


def _held_by_queue(old: BrokerConfig, new: BrokerConfig) -> dict[str, frozenset[str]]:
    """For each declared queue that is in both: the attributes that need a restart."""
    before = {queue.name: queue for address in old.addresses for queue in address.queues}
    found: dict[str, frozenset[str]] = {}
    for address in new.addresses:
        for queue in address.queues:
            known = before.get(queue.name)
            if known is not None and known.address == queue.address and not _is_alike(known, queue, old, new):
                pair = (
                    queue_settings(known, old.settings_for(known.address)),
                    queue_settings(queue, new.settings_for(queue.address)),
                )
                if pair[0] != pair[1] and (held := held_back(*pair)):
                    found[queue.name] = held
    return found


def _is_alike(known: QueueConfig, queue: QueueConfig, old: BrokerConfig, new: BrokerConfig) -> bool:
    """Is the queue written as it was, on an address with the same settings? Most are, and there may be very many."""
    if any(getattr(known, name) != getattr(queue, name) for name in _QUEUE_ROWS):
        return False
    return old.settings_for(known.address) == new.settings_for(queue.address)


def _addresses(old: BrokerConfig, new: BrokerConfig, held: Mapping[str, frozenset[str]]) -> Iterator[Change]:
    before = {address.name: address for address in old.addresses}
    after = {address.name: address for address in new.addresses}
    queues_before = {queue.name: queue for address in old.addresses for queue in address.queues}
    for name, address in after.items():
        known = before.get(name)
        if known is None:
            yield Change(part="address", name=name, action=ADDED, effect=NOW, origin=address.origin)
        elif set(known.routing_types) != set(address.routing_types):
            yield Change(
                part="address", name=name, action=CHANGED, effect=NOW, setting="routing types",
                old=", ".join(known.routing_types) or None, new=", ".join(address.routing_types) or None,
                note="a type of which the address has queues stays", origin=address.origin,
            )  # fmt: skip
        for queue in address.queues:
            yield from _queue(queue, queues_before.get(queue.name), old, new, held.get(queue.name, frozenset()))
    yield from _removed(before.values(), after, new)


def _queue(
    queue: QueueConfig, known: QueueConfig | None, old: BrokerConfig, new: BrokerConfig, held: frozenset[str]
) -> Iterator[Change]:
    if known is None:
        yield Change(part="queue", name=queue.name, action=ADDED, effect=NOW, origin=queue.origin)
        return
    if known.address != queue.address:
        forced = is_forced(new, known.address)
        effect, note = RESTART, "a queue does not move: with messages it stays, without any a restart creates it anew"
        if forced is not None:
            effect, note = NOW, f"{forced} is FORCE: deleted, with its messages, and made anew on the other address"
        yield Change(
            part="queue", name=queue.name, action=CHANGED, effect=effect, setting="address", old=known.address,
            new=queue.address, origin=queue.origin, note=note,
        )  # fmt: skip
        return
    if known.routing_type != queue.routing_type:
        yield Change(
            part="queue", name=queue.name, action=CHANGED, effect=NOW, setting="routing type", old=known.routing_type,
            new=queue.routing_type, origin=queue.origin,
        )  # fmt: skip
    differing = [name for name in _QUEUE_ROWS if getattr(known, name) != getattr(queue, name)]
    if not differing:
        return
    pair = (
        queue_settings(known, old.settings_for(known.address)),
        queue_settings(queue, new.settings_for(queue.address)),
    )
    for attribute in differing:
        row = _QUEUE_ROWS[attribute]
        values = getattr(pair[0], attribute), getattr(pair[1], attribute)
        if values[0] != values[1]:
            effect, note = of_queue_attribute(attribute, held)
            if attribute == "durable" and not queue.durable:
                note = "with messages it stays durable, without any a restart creates it anew"
            yield _changed("queue", queue.name, row, values, effect, note, queue.origin_of(attribute))


def _removed(
    before: Iterable[AddressConfig], after: Mapping[str, AddressConfig], new: BrokerConfig
) -> Iterator[Change]:
    kept = {queue.name for address in after.values() for queue in address.queues}
    diverted = {divert.address for divert in new.diverts}
    for address in before:
        settings = new.settings_for(address.name)
        is_gone = address.name not in after
        if is_gone:
            effect, note = _deletion("config-delete-addresses", settings.config_delete_addresses)
            if effect == NOW and address.name in diverted:
                effect, note = NOTHING, "stays: a divert begins there"
            yield Change(
                part="address", name=address.name, action=REMOVED, effect=effect, note=note, origin=address.origin
            )
            if effect == NOW:
                note = "deleted with its address, with its messages; its consumers are disconnected"
        for queue in address.queues:
            if queue.name in kept:
                continue
            of_queue, about = _deletion("config-delete-queues", settings.config_delete_queues)
            if is_gone and effect == NOW:
                of_queue, about = effect, note
            yield Change(
                part="queue", name=queue.name, action=REMOVED, effect=of_queue, note=about, origin=queue.origin
            )


def _deletion(setting: str, value: str) -> tuple[str, str]:
    if value == FORCE:
        return NOW, f"{setting} is FORCE: deleted, with its messages; its consumers are disconnected"
    return NOTHING, f"stays: {setting} is OFF"


def _diverts(old: BrokerConfig, new: BrokerConfig) -> Iterator[Change]:
    before = {divert.name: divert for divert in old.diverts}
    after = {divert.name: divert for divert in new.diverts}
    for name, divert in after.items():
        known = before.get(name)
        if known is None:
            yield Change(part="divert", name=name, action=ADDED, effect=NOW, origin=divert.origin)
            continue
        yield from divert_changes(known, divert)
    for name, divert in before.items():
        if name in after:
            continue
        if new.settings_for(divert.address).config_delete_diverts == FORCE:
            effect, note = NOW, "config-delete-diverts is FORCE"
        else:
            effect, note = RESTART, "stays until then: config-delete-diverts is OFF"
        yield Change(part="divert", name=name, action=REMOVED, effect=effect, note=note, origin=divert.origin)


def divert_changes(old: DivertConfig, new: DivertConfig, note: str = "") -> Iterator[Change]:
    """What is otherwise in another declaration of the same divert."""
    for row in settings_of(DivertConfig).values():
        values = getattr(old, row.attribute), getattr(new, row.attribute)
        if values[0] != values[1]:
            yield _changed("divert", new.name, row, values, NOW, note, new.origin)


# ---- bridges ---------------------------------------------------------------------------------------

_CONNECTS_ANEW: Final = "it connects anew"


def _bridges(old: BrokerConfig, new: BrokerConfig) -> Iterator[Change]:
    before = {bridge.name: bridge for bridge in old.bridges}
    after = {bridge.name: bridge for bridge in new.bridges}
    for name, bridge in after.items():
        known = before.get(name)
        if known is None:
            yield Change(part="bridge", name=name, action=ADDED, effect=NOW, origin=bridge.origin)
            continue
        for row in settings_of(BridgeConfig).values():
            values = getattr(known, row.attribute), getattr(bridge, row.attribute)
            if values[0] != values[1]:
                effect, note = (NOW, _CONNECTS_ANEW) if row.treatment == HONOURED else (NOTHING, row.reason)
                yield _changed("bridge", name, row, values, effect, note, bridge.origin)
        if without_places(known.connectors) != without_places(bridge.connectors):
            yield Change(
                part="bridge", name=name, action=CHANGED, effect=NOW, setting="static-connectors", old=known.places,
                new=bridge.places, note=_CONNECTS_ANEW, origin=bridge.origin,
            )  # fmt: skip
    for name, bridge in before.items():
        if name not in after:
            note = "what is not confirmed goes back to its queue"
            yield Change(part="bridge", name=name, action=REMOVED, effect=NOW, note=note, origin=bridge.origin)


# ---- acceptors and logins --------------------------------------------------------------------------


def _acceptors(old: BrokerConfig, new: BrokerConfig) -> Iterator[Change]:
    before = {each.name: each for each in old.acceptors}
    after = {each.name: each for each in new.acceptors}
    for name, acceptor in after.items():
        known = before.get(name)
        note = "" if acceptor.is_opened else "it is not opened"
        if known is None:
            yield Change(part="acceptor", name=name, action=ADDED, effect=NOW, note=note, origin=acceptor.origin)
            continue
        pairs: dict[str, tuple[Any, Any]] = {
            "place": (known.place, acceptor.place),
            "protocols": (known.protocols, acceptor.protocols),
            **{
                param: (known.params.get(param), acceptor.params.get(param))
                for param in dict.fromkeys((*known.params, *acceptor.params))
            },
        }
        for setting, values in pairs.items():
            if values[0] != values[1]:
                shown = [
                    None if value is None else MASK if names_a_secret(setting) else show(value) for value in values
                ]
                yield Change(
                    part="acceptor", name=name, action=CHANGED, effect=NOW, setting=setting, old=shown[0],
                    new=shown[1], note="its connections are closed", origin=acceptor.origin,
                )  # fmt: skip
    for name, acceptor in before.items():
        if name not in after:
            note = "its connections are closed"
            yield Change(part="acceptor", name=name, action=REMOVED, effect=NOW, note=note, origin=acceptor.origin)


def _logins(old: BrokerConfig, new: BrokerConfig) -> Iterator[Change]:
    if without_places((old.logins, old.users_file)) != without_places((new.logins, new.users_file)):
        origin = new.users_file.origin if new.users_file is not None else Origin(new.file, 0)
        note = "for logins from now on; who has logged in stays"
        yield Change(part="users", name="", action=CHANGED, effect=NOW, note=note, origin=origin)


# ---- rows ------------------------------------------------------------------------------------------


def _changed(
    part: str, name: str, row: Setting, values: tuple[Any, Any], effect: str, note: str, origin: Origin
) -> Change:
    is_secret = names_a_secret(row.name)
    shown = [None if value is None else MASK if is_secret else show(value) for value in values]
    return Change(
        part=part, name=name, action=CHANGED, effect=effect, setting=row.name, old=shown[0], new=shown[1], note=note,
        origin=origin,
    )  # fmt: skip


def without_places(value: Any) -> Any:
    """The same settings without their places in files, to compare them."""
    if isinstance(value, tuple):
        return tuple(without_places(each) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    names = [field.name for field in fields(value)]
    if "origin" in names:
        value = replace(value, origin=NOWHERE)
    return replace(value, **{name: without_places(getattr(value, name)) for name in names})
