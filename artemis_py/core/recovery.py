"""A start: creates what broker.xml declares, and what the log remembers beside it, and puts back what survived:
messages, pages, and the ids that were seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, final

from artemis_py.config.changes import expired_because, replaced_because, stays_because
from artemis_py.config.settings import BrokerConfig, QueueConfig
from artemis_py.config.tables.declarations import NOWHERE
from artemis_py.config.tables.queue_settings import known_attributes
from artemis_py.core.addresses.address import Address
from artemis_py.core.addresses.routing_table import Bindings
from artemis_py.core.destinations.diverts import Diverts
from artemis_py.core.destinations.registry import Registry
from artemis_py.core.order.entry import Entry
from artemis_py.core.pages import Streams
from artemis_py.core.publish.duplicates import NO_ADDRESS, Commits, Duplicates
from artemis_py.core.queue.attributes import overflow_of, why_no_ring
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_reference import AutoDelete
from artemis_py.errors import Problem
from artemis_py.record_log import KeptStream, RecoveredState, Survivor
from artemis_py.terminal_output import many


@final
class Deployment:
    """One start. A queue that is declared and remembered keeps its number, and with it its messages. Its attributes are
    those of the file, except what was changed while it ran (paused, ring-size). If the file no longer declares it,
    its QUEUE record gives the attributes that were written on the queue itself. A queue with messages neither moves to
    another address nor stops being durable because the file says so: it stays, and ``kept_back`` says why. Without
    messages it is made anew.
    """

    __slots__ = ("_config", "_diverts", "_kept", "_registry", "_remembered", "kept_back")

    def __init__(self, config: BrokerConfig, registry: Registry, diverts: Diverts, kept: RecoveredState) -> None:
        self.kept_back: dict[str, Problem] = {}
        """What the file says of queues, by name, and this start did not do, with its place in the file."""
        self._config = config
        self._registry = registry
        self._diverts = diverts
        self._kept = kept
        self._remembered = {fields["name"]: fields for fields in kept.queues}
        """What the log says of queues that are not there again yet, by name."""

    def run(self) -> None:
        """Create everything: declared things first, then remembered ones, then diverts."""
        registry = self._registry
        registry.queue_id = max([registry.queue_id, *(fields["id"] for fields in self._remembered.values())])
        for address_config in self._config.addresses:
            address = registry.create_address(address_config.name, auto_created=False)
            address.origin = address_config.origin
            address.add_routing_types(address_config.routing_types)
            for queue_config in address_config.queues:
                if queue_config.name not in registry.bindings.queues:
                    self._deploy_queue(address, queue_config)
        for fields in self._kept.addresses:
            address = self._address(fields["name"], auto_created=fields["auto_created"])
            address.add_routing_types(fields["routing_types"])
            address.paused = fields.get("paused", False)
        for fields in self._remembered.values():
            self._remember_queue(fields)
        for divert in self._diverts.wanted(self._config.diverts).values():
            self._diverts.put(divert)
        registry.begin_retention()

    def _address(self, name: str, *, auto_created: bool) -> Address:
        found = self._registry.bindings.addresses.get(name)
        return found or self._registry.create_address(name, auto_created=auto_created)

    def _deploy_queue(self, address: Address, config: QueueConfig) -> None:
        registry = self._registry
        fields = self._remembered.get(config.name)
        if fields is None:
            registry.create_queue(address, config, auto_created=False, configured=True)
            return
        if fields["address"] != address.name or not config.durable:
            count = self._kept.message_count(fields["id"])
            why = stays_because(config, fields["address"], count, durable=True)
            if why is None:
                self._deploy_anew(address, config, fields)
                return
            origin = config.origin if fields["address"] != address.name else config.origin_of("durable")
            self.kept_back[config.name] = Problem("warning", origin.file, origin.line, f"queue {config.name}: {why}")
            if fields["address"] != address.name:
                return  # remembered as it is
            config = replace(config, durable=True)
        queue = registry.open_queue(fields["id"], config, address)
        queue.origin = config.origin
        queue.configured = True
        _restore_changes(queue, fields)
        registry.note_opened(queue)
        has_changed = self._resume_recovery(queue, fields)
        is_new = queue.attributes != fields.get("attributes", {}) or not fields.get("configured")
        if has_changed or is_new:
            registry.note_queue(queue)
        del self._remembered[config.name]

    def _deploy_anew(self, address: Address, config: QueueConfig, fields: dict[str, Any]) -> None:
        """Nothing is on the queue that the log remembers: another one takes its place, and stays paused if it was."""
        registry = self._registry
        registry.forget_queue(fields["id"])
        del self._remembered[config.name]
        created = registry.create_queue(address, config, auto_created=False, configured=True)
        if fields["paused"]:
            created.gate.paused = True
            registry.note_queue(created)

    def _remember_queue(self, fields: dict[str, Any]) -> None:
        registry = self._registry
        if fields["name"] in registry.bindings.queues:
            return
        is_configured = bool(fields.get("configured"))
        address = self._address(fields["address"], auto_created=not is_configured)
        config = QueueConfig(
            name=fields["name"],
            address=address.name,
            routing_type=fields["routing_type"],
            filter=fields["filter"],
            **known_attributes(fields.get("attributes", {})),
        )
        queue = registry.open_queue(fields["id"], config, address, auto_created=fields["auto_created"])
        queue.configured = is_configured
        registry.quota.queue_created(queue.id, fields.get("user"))
        _restore_changes(queue, fields)
        if "auto_delete" in fields:
            queue.auto_delete = AutoDelete(*fields["auto_delete"])
        registry.note_opened(queue)
        if self._resume_recovery(queue, fields):
            registry.note_queue(queue)

    def _resume_recovery(self, queue: Queue, fields: dict[str, Any]) -> bool:
        """Go on filling a queue from the log, or begin again where its recovery point was changed. Returns whether
        something is to be remembered.
        """
        if queue.recovery is None:
            return "recovery" in fields
        known: dict[str, Any] = fields.get("recovery", {})
        queue.recovery.resume(known, self._registry.last_lsn)
        self._registry.fill_from_past(queue)
        return queue.recovery.fields() != known


def _restore_changes(queue: Queue, fields: dict[str, Any]) -> None:
    queue.gate.paused = fields["paused"]
    queue.contents.was_used = bool(fields.get("used"))
    # Under another policy the owner's client-id would be taken for a user.
    if fields.get("owner_by") == queue.consumer_registry.exclusivity.policy:
        queue.consumer_registry.exclusivity.owner = fields.get("owner")
    ring_size: int | None = fields["ring_size"]
    if ring_size is not None and not why_no_ring(queue, ring_size):
        queue.ring_size_changed = ring_size
        queue.flow.overflow = overflow_of(queue)


# ---- what survived ---------------------------------------------------------------------------------------------------


def restore_ids(recovered: RecoveredState, bindings: Bindings, duplicates: Duplicates, commits: Commits) -> None:
    """Remember the duplicate ids that addresses have seen, and the ids of transactions."""
    for name, seen in recovered.duplicate_ids.items():
        if name == NO_ADDRESS:
            commits.take_back(seen)
        address = bindings.addresses.get(name)
        if address is not None:
            duplicates.remember(address, seen)


def restore_messages(recovered: RecoveredState, bindings: Bindings, now_ms: int) -> list[Problem]:
    """Put messages back on their queues. Returns what there is to say of messages whose queue is not there (one of the
    same name took its place, in an earlier version).
    """
    told: list[Problem] = []
    for queue_id, survivors in recovered.messages.items():
        queue = bindings.by_id.get(queue_id)
        if queue is None:
            what = f"{many(len(survivors), 'message')} in the journal, on no queue: this one is not there any more"
            told.append(Problem("warning", "", 0, f"queue number {queue_id}: {what}"))
            continue
        entries = [(_entry_of(one, queue, bindings), one.due_ms) for one in survivors]
        queue.arrivals.take_back(entries, now_ms)
    return told


def what_goes(queues: Iterable[Queue], now_ms: int) -> list[Problem]:
    """Of queues that have their messages and pages again: those that had no room for all, or for which some are too
    old.
    """
    told: list[Problem] = []
    for queue in queues:
        contents = queue.contents
        reasons: list[str] = []
        replaced, count = contents.counters.replaced, contents.message_count
        if replaced:
            reasons.append(replaced_because(queue.own, replaced, count + replaced))
        lifetime = contents.expiry.lifetime
        if count and lifetime is not None and lifetime.gives_expiry:
            expired = contents.expiry.count_outlived(now_ms)
            if expired or contents.paged.count:
                reasons.append(expired_because(queue.own, expired, contents.paged.count, count))
        place = queue.origin or NOWHERE
        told += [Problem("warning", place.file, place.line, f"queue {queue.name}: {why}") for why in reasons]
    return told


def _entry_of(survivor: Survivor, queue: Queue, bindings: Bindings) -> Entry:
    message = survivor.message
    if not message.refs:
        message.account = bindings.source_of(message, queue.reference).account
        message.account.charge(1, message.memory_bytes)
    entry = Entry(message)
    entry.attempts = entry.returned = survivor.attempts
    return entry


def restore_streams(kept: Iterable[KeptStream], number_max: int, registry: Registry, streams: Streams) -> None:
    """Give addresses their pages back, when all queues have what they had in memory. New streams get numbers above
    ``number_max``.
    """
    bindings = registry.bindings
    for one in sorted(kept, key=lambda stream: stream.number):
        address = bindings.addresses.get(one.address) or registry.create_address(one.address, auto_created=True)
        page_bytes = address.settings.page_size_bytes
        stream = address.stream = streams.open(address.name, address.account, page_bytes, one.number)
        for share in stream.restore(one, bindings.by_id):
            bindings.by_id[share.queue_id].pages.restore(stream, share)
    streams.number_max = max(streams.number_max, number_max)
