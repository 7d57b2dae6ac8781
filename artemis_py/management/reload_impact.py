"""Which messages and consumers a reload of another configuration would affect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, final

from artemis_py.config.changes import FORCE, held_back, stays_because
from artemis_py.config.settings import AddressConfig, AddressSettings, BrokerConfig, QueueConfig
from artemis_py.config.tables.queue_settings import LIFETIME, QueueSettings, parts_of
from artemis_py.core.addresses import retroactive
from artemis_py.core.addresses.address import Address
from artemis_py.core.broker import Broker
from artemis_py.core.queue.attributes import declaration_of
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.recipe import own_settings

ROWS_MAX: Final = 1000
_CHECKS_PER_STEP: Final = 32


@final
@dataclass(frozen=True, slots=True)
class Effect:
    """What would happen to an address or a queue. ``messages`` are those that it has now, or that are lost."""

    kind: str
    name: str
    messages: int
    consumers: int
    what: str
    is_deleted: bool = False

    def as_row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            "messages": self.messages,
            "consumers": self.consumers,
            "what": self.what,
        }


@final
@dataclass
class Impact:
    """What was found, at most ``ROWS_MAX`` rows."""

    rows: list[Effect] = field(default_factory=list)

    def add(self, effect: Effect) -> None:
        """Add a row, if there is room."""
        if len(self.rows) < ROWS_MAX:
            self.rows.append(effect)


def impact_of(broker: Broker, config: BrokerConfig, impact: Impact) -> Iterator[bool | None]:
    """Look at every address and queue, some in each step."""
    config = broker.settings_changes.over(config)
    declared = {address.name: address for address in config.addresses}
    queues = {queue.name: queue for address in config.addresses for queue in address.queues}
    diverted = {divert.address for divert in broker.diverts.wanted(config.diverts).values()}
    checked = 0
    for address in list(broker.addresses.values()):
        checked += 1
        if address.temporary or address.deleted or retroactive.is_internal(address.name):
            continue
        settings = config.settings_for(address.name)
        is_gone = not address.auto_created and address.name not in declared and address.name not in diverted
        is_forced = is_gone and settings.config_delete_addresses == FORCE
        if not is_forced:
            _check_address(address, settings, impact)
        for queue in list(address.queues.values()):
            checked += 1
            if is_forced or _is_deleted(queue, declared.get(address.name), settings):
                what = "deleted, with its messages; its consumers are disconnected"
                impact.add(
                    Effect("queue", queue.name, queue.message_count, queue.consumer_count, what, is_deleted=True)
                )
            else:
                _check_queue(queue, queues.get(queue.name), settings, impact)
            if checked % _CHECKS_PER_STEP == 0:
                yield None
        if checked % _CHECKS_PER_STEP == 0:
            yield None
    yield None


def _is_deleted(queue: Queue, declared: AddressConfig | None, settings: AddressSettings) -> bool:
    if not queue.configured or settings.config_delete_queues != FORCE:
        return False
    return declared is None or all(each.name != queue.name for each in declared.queues)


def _check_address(address: Address, settings: AddressSettings, impact: Impact) -> None:
    before, account = address.settings, address.account
    lowered = []
    if settings.max_size_bytes != before.max_size_bytes and 0 <= settings.max_size_bytes <= account.size_bytes:
        lowered.append(f"max-size-bytes {settings.max_size_bytes}: it has {account.size_bytes} bytes")
    if settings.max_size_messages != before.max_size_messages and (
        0 <= settings.max_size_messages <= account.message_count
    ):
        lowered.append(f"max-size-messages {settings.max_size_messages}: it has {account.message_count}")
    policy = settings.address_full_policy
    if lowered:
        does = {"PAGE": "pages", "BLOCK": "blocks senders", "DROP": "drops messages", "FAIL": "refuses messages"}
        what = f"full at once ({' and '.join(lowered)}): it {does[policy]}"
        impact.add(Effect("address", address.name, account.message_count, 0, what))


def _check_queue(queue: Queue, declared: QueueConfig | None, settings: AddressSettings, impact: Impact) -> None:
    old = queue.own
    if declared is not None:
        why = stays_because(declared, queue.address.name, queue.message_count, durable=queue.durable)
        if why is not None:
            impact.add(Effect("queue", queue.name, queue.message_count, queue.consumer_count, why))
    if declared is not None and declared.address == queue.address.name:
        config, is_declared = declared, True
    else:
        config, is_declared = declaration_of(queue), not queue.auto_created
    new = own_settings(config, settings, declared=is_declared)
    if new is old or new == old:
        return
    for what in _words(queue, old, new):
        impact.add(Effect("queue", queue.name, queue.message_count, queue.consumer_count, what))


def _words(queue: Queue, old: QueueSettings, new: QueueSettings) -> Iterator[str]:
    held = held_back(old, new)
    if held:
        names = ", ".join(sorted(name.replace("_", "-") for name in held))
        yield f"keeps what it is composed of until a restart: {names}"
    depth = queue.message_count
    if new.ring_size != old.ring_size and 0 <= new.ring_size < depth:
        yield (
            f"deeper than ring-size {new.ring_size}: it stops growing, and nothing is dropped at once; "
            f"a restart drops up to {depth - new.ring_size}"
        )
    limit = new.depth_messages_max
    if limit != old.depth_messages_max and 0 <= limit < depth:
        when = "after a restart" if held else "from the next message on"
        yield f"deeper than max-depth-messages {limit}: {new.policy} {when}"
    if depth and new.last_value_key is not None and new.last_value_key != old.last_value_key:
        yield f"with last-value-key {new.last_value_key} a restart drops all but the last message of each value"
    if depth and any(LIFETIME in parts_of(name) for name in held):
        yield "its messages have another time to live after a restart: what is too old then expires"
    if new.max_consumers != old.max_consumers and 0 <= new.max_consumers < queue.taker_count:
        yield f"has more consumers than max-consumers {new.max_consumers}: they stay, and no other comes"
