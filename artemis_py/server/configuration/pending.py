"""What the file says of queues and diverts and only a restart brings into force: of those that are there, as they are.

A comparison of two files does not tell it. A queue may have been deleted and made again meanwhile, may have stayed as
it was at the start, or may be what the file says already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from artemis_py.config.changes.change import ADDED, CHANGED, NOW, REMOVED, RESTART, Change, Plan
from artemis_py.config.changes.effects import QUEUE_ATTRIBUTES, held_back
from artemis_py.config.changes.plan import divert_changes
from artemis_py.config.settings import AddressSettings, BrokerConfig, QueueConfig
from artemis_py.config.tables.fields import settings_of, show
from artemis_py.config.tables.queue_settings import QueueSettings
from artemis_py.core.broker import Broker
from artemis_py.core.queue.attributes import declaration_of
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.recipe import own_settings

_QUEUE: Final = "queue"
_SETTING: Final = "address-setting"
_DIVERT: Final = "divert"
_ADDRESS: Final = "address"
_OF_QUEUE: Final = {row.attribute: row.name for row in settings_of(QueueConfig).values()}
_OF_ADDRESS: Final = {row.name: row.attribute for row in settings_of(AddressSettings).values()}
_BACK: Final = "it was deleted while the broker ran, and comes back"
_OPERATED: Final = "an operator changed it while the broker ran, and the file counts again"
_LEFT: Final = "stays until then: config-delete-diverts is OFF"
_MOVES_NOT: Final = "a queue does not move: with messages it stays, without any a restart makes it anew"


def as_running(plan: Plan, broker: Broker, config: BrokerConfig) -> Plan:
    """The same changes, as far as things are as the file said before: queues that are already what they are to be need
    no restart, and what an operator has deleted comes back, or is changed back. ``config`` is the new one.
    """
    declared = _declared(config)
    changes = [
        replace(change, effect=NOW, note="")
        if change.part == _QUEUE
        and change.effect == RESTART
        and change.setting not in _held_settings(broker.queues.get(change.name), declared.get(change.name))
        else change
        for change in plan.changes
    ]
    told = {(change.part, change.name) for change in changes}
    back = [(_ADDRESS, each.name, each.origin) for each in config.addresses if each.name not in broker.addresses]
    back += [(_QUEUE, name, each.origin) for name, each in declared.items() if name not in broker.queues]
    diverts = broker.diverts.in_force
    back += [(_DIVERT, each.name, each.origin) for each in config.diverts if each.name not in diverts]
    changes += [
        Change(part=part, name=name, action=ADDED, effect=NOW, note=_BACK, origin=origin)
        for part, name, origin in back
        if (part, name) not in told
    ]
    decided = {(change.part, change.name, change.setting) for change in changes}
    for each in config.diverts:
        for change in divert_changes(diverts.get(each.name, each), each, _OPERATED):
            if not decided & {(_DIVERT, each.name, ""), (_DIVERT, each.name, change.setting)}:
                changes.append(change)
    return Plan(tuple(changes))


def still_pending(
    changes: Sequence[Change], broker: Broker, config: BrokerConfig, held: set[str], left_diverts: Iterable[str]
) -> tuple[Change, ...]:
    """What waits for a restart. ``changes`` are those of the file since the start. ``held`` names the queues that may
    be otherwise than ``config`` says; those that are not are taken out. ``left_diverts`` are there undeclared.
    """
    declared = _declared(config)
    waiting: dict[str, frozenset[str]] = {}
    for name in sorted(held):
        found = _held(broker.queues.get(name), declared.get(name))
        if found:
            waiting[name] = found
    held.intersection_update(waiting)
    attributes = frozenset(attribute for found in waiting.values() for attribute in found)
    left = dict.fromkeys(left_diverts)
    rows: list[Change] = []
    by_setting: set[str] = set()
    by_file: set[str] = set()
    for change in changes:
        if change.part == _DIVERT:
            if change.name in left:
                del left[change.name]
                rows.append(change)
        elif change.part == _SETTING:
            attribute = QUEUE_ATTRIBUTES.get(_OF_ADDRESS[change.setting])
            if attribute in attributes:
                by_setting.add(attribute)
                rows.append(change)
        elif change.part != _QUEUE:
            rows.append(change)
        elif change.setting in {_OF_QUEUE.get(each, each) for each in waiting.get(change.name, ())}:
            by_file.add(change.name)
            rows.append(change)
    rows += [Change(part=_DIVERT, name=name, action=REMOVED, effect=RESTART, note=_LEFT) for name in left]
    for name, found in waiting.items():
        if name not in by_file:
            rows += _rows(broker.queues[name], declared.get(name), found, by_setting)
    return tuple(rows)


def after(plan: Plan, pending: Sequence[Change]) -> list[Change]:
    """What would wait for a restart if ``plan`` were carried out, where ``pending`` waits already."""
    decided = {(change.part, change.name, change.setting) for change in plan.changes}
    earlier = [each for each in pending if (each.part, each.name, each.setting) not in decided]
    return [*plan.need_restart, *earlier]


def _declared(config: BrokerConfig) -> dict[str, QueueConfig]:
    return {queue.name: queue for address in config.addresses for queue in address.queues}


def _wanted(queue: Queue, declared: QueueConfig | None) -> QueueSettings:
    is_declared = declared is not None or not queue.auto_created
    return own_settings(declared or declaration_of(queue), queue.address.settings, declared=is_declared)


def _held(queue: Queue | None, declared: QueueConfig | None) -> frozenset[str]:
    """The attributes of a queue that are not what they are to be, and need a restart."""
    if queue is None:
        return frozenset()
    if declared is not None and declared.address != queue.address.name:
        return frozenset((_ADDRESS,))
    return held_back(queue.own, _wanted(queue, declared))


def _held_settings(queue: Queue | None, declared: QueueConfig | None) -> set[str]:
    return {_OF_QUEUE.get(attribute, attribute) for attribute in _held(queue, declared)}


def _rows(queue: Queue, declared: QueueConfig | None, held: frozenset[str], by_setting: set[str]) -> Iterator[Change]:
    """What waits of one queue, but for attributes of which the row of an address-setting tells it."""
    if declared is None:
        return
    if _ADDRESS in held:
        yield Change(
            part=_QUEUE, name=queue.name, action=CHANGED, effect=RESTART, setting=_ADDRESS, old=queue.address.name,
            new=declared.address, note=_MOVES_NOT, origin=declared.origin,
        )  # fmt: skip
        return
    wanted = _wanted(queue, declared)
    for attribute in sorted(held):
        if attribute in by_setting and getattr(declared, attribute) is None:
            continue
        old, new = getattr(queue.own, attribute), getattr(wanted, attribute)
        yield Change(
            part=_QUEUE, name=queue.name, action=CHANGED, effect=RESTART, setting=_OF_QUEUE[attribute],
            old=None if old is None else show(old), new=None if new is None else show(new),
            note="the queue is composed of it", origin=declared.origin_of(attribute),
        )  # fmt: skip
