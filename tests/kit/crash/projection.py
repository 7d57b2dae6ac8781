"""What a list of operations adds up to, the naive way: lists that are walked from end to end, no files, no segments.

It shares no code with the journal's index, so that a mistake there is not made here again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from artemis_py.message import LargeBody, Message
from artemis_py.record_log import RecoveredState
from artemis_py.storage.disk.disk import Disk
from artemis_py.storage.format.names import body_name

Operation: TypeAlias = tuple[Any, ...]
"""The name of a method of ``RecordLog``, then what it was given, copied; ``("group", operations)`` for a group."""
Identity: TypeAlias = tuple[int, str, bytes, bytes, int, int, int]
View: TypeAlias = dict[str, Any]


def identity(message: Message, disk: Disk) -> Identity:
    """Everything about a message that must survive; its body is the very bytes, wherever they are."""
    head, body = message.head, message.body
    if isinstance(body, LargeBody):
        assert body.size_bytes, "a large body of no bytes"
        body = disk.read(body_name(body.number, durable=True), 0, body.size_bytes)
    return message.id, head.address, head.block, body, head.priority, message.expires_ms, message.timestamp_ms


@dataclass
class Item:
    """A message on one queue."""

    identity: Identity
    attempts: int = 0
    due_ms: int = 0


@dataclass
class History:
    """What has happened since the last start, whether or not anything of it is left."""

    bodies: set[bytes] = field(default_factory=set)
    message_ids: set[int] = field(default_factory=set)
    settled: set[tuple[int, int]] = field(default_factory=set)
    lost_of: dict[tuple[int, int], str] = field(default_factory=dict)
    """(queue id, message id) of what died or expired: why."""
    moved: set[Identity] = field(default_factory=set)
    """What an operator moved."""
    published: dict[bytes, int] = field(default_factory=dict)
    """The highest message id by body."""
    copied_ids: set[str] = field(default_factory=set)
    duplicate_ids_published: set[str] = field(default_factory=set)
    duplicate_ids: set[str] = field(default_factory=set)
    seen: set[tuple[str, str]] = field(default_factory=set)
    """(address, duplicate id), those from before the start too."""
    queues_made: set[str] = field(default_factory=set)
    queues_deleted: set[str] = field(default_factory=set)


@dataclass
class Projection:
    """The durable state. ``apply`` one operation after the other."""

    duplicate_ids_kept: int
    history: History = field(default_factory=History)
    queues: dict[int, dict[str, Any]] = field(default_factory=dict)
    _addresses: dict[str, dict[str, Any]] = field(default_factory=dict)
    _duplicate_ids: dict[str, list[str]] = field(default_factory=dict)
    _items: dict[int, list[Item]] = field(default_factory=dict)
    _cursors: dict[str, dict[str, Any]] = field(default_factory=dict)

    def restarted(self) -> Projection:
        """A copy of the state with an empty history. Of what it has, only items are changed in place."""
        fresh = Projection(self.duplicate_ids_kept)
        fresh.queues, fresh._addresses, fresh._cursors = {**self.queues}, {**self._addresses}, {**self._cursors}
        fresh._duplicate_ids = {name: [*ids] for name, ids in self._duplicate_ids.items()}
        fresh._items = {
            number: [Item(item.identity, item.attempts, item.due_ms) for item in items]
            for number, items in self._items.items()
        }
        fresh.history.message_ids = {item.identity[0] for items in self._items.values() for item in items}
        fresh.history.seen = {(name, one) for name, ids in self._duplicate_ids.items() for one in ids}
        return fresh

    def items(self, queue_id: int) -> list[Item]:
        """A queue's messages: ready ones in order, scheduled ones anywhere."""
        return self._items.get(queue_id, [])

    def view(self) -> View:
        """Plain values to compare with: what is on each queue that has any are ready messages as they are to be
        compared, and scheduled ones. A view may have some in pages of several addresses, among which there is no order.
        """
        found = {number: items for number in self.queues if (items := self.items(number))}
        ready = {
            number: [(one.identity, one.attempts) for one in items if not one.due_ms] for number, items in found.items()
        }
        for number, in_order in ready.items():
            if "underlying_address" in self.queues[number].get("attributes", {}):
                in_order.sort()
        late = {
            number: {one.identity: (one.attempts, one.due_ms) for one in items if one.due_ms}
            for number, items in found.items()
        }
        return {
            "addresses": self._addresses,
            "queues": self.queues,
            "cursors": {name: fields for name, fields in self._cursors.items() if not fields.get("deleted")},
            "duplicate ids": {
                name: ids[-self.duplicate_ids_kept :] for name, ids in self._duplicate_ids.items() if ids
            },
            "ready": {number: items for number, items in ready.items() if items},
            "scheduled": {number: items for number, items in late.items() if items},
        }

    # ---- operations ------------------------------------------------------------------------------

    def apply(self, operation: Operation) -> None:
        """Let one operation happen."""
        history = self.history
        match operation:
            case "group", inner:
                for one in inner:
                    self.apply(one)
            case "published", identity, queue_ids, due_ms:
                self._published(identity, queue_ids, due_ms)
            case "recalled", identity, queue_ids, due_ms, published_lsn:
                self._recalled(identity, queue_ids, due_ms, published_lsn)
            case "settled", queue_id, message_ids, reason:
                self._settled(queue_id, message_ids, reason)
            case "attempted", queue_id, message_id, attempts, due_ms:
                for item in [one for one in self.items(queue_id) if one.identity[0] == message_id]:
                    item.attempts, item.due_ms = attempts, due_ms
            case "fell_due", queue_id, message_ids:
                self._fell_due(queue_id, message_ids)
            case "address_changed", fields if fields.get("deleted"):
                self._addresses.pop(fields["name"], None)
                self._duplicate_ids.pop(fields["name"], None)
            case "address_changed", fields:
                self._addresses[fields["name"]] = fields
            case "cursor_changed", fields:
                self._cursors[fields["name"]] = fields
            case "queue_changed", fields:
                self.queues[fields["id"]] = fields
                history.queues_made.add(fields["name"])
            case "queue_deleted", queue_id:
                self._items.pop(queue_id, None)
                if queue_id in self.queues:
                    history.queues_deleted.add(self.queues.pop(queue_id)["name"])
            case "duplicate_id", address, duplicate_id:
                self._duplicate_ids.setdefault(address, []).append(duplicate_id)
                history.duplicate_ids.add(duplicate_id)
                history.seen.add((address, duplicate_id))
            case _:
                raise AssertionError(operation)

    def _published(self, identity: Identity, queue_ids: list[int], due_ms: int) -> None:
        for queue_id in queue_ids:
            self._items.setdefault(queue_id, []).append(Item(identity, 0, due_ms))
        history = self.history
        history.message_ids.add(identity[0])
        history.bodies.add(identity[3])
        history.published[identity[3]] = max(history.published.get(identity[3], 0), identity[0])
        for line in identity[2].decode().split("\n"):
            name, _, value = line.partition(":")
            if name == "_AMQ_ORIG_MESSAGE_ID":
                history.copied_ids.add(value)
            elif name == "_AMQ_DUPL_ID":
                history.duplicate_ids_published.add(value)

    def _recalled(self, identity: Identity, queue_ids: list[int], due_ms: int, published_lsn: int) -> None:
        self._published(identity, queue_ids, due_ms)
        for queue_id in queue_ids:
            fields = self.queues[queue_id]
            recovery = fields["recovery"]
            if "after" in recovery:
                after = max(recovery["after"], published_lsn)
                self.queues[queue_id] = {**fields, "recovery": {**recovery, "after": after}}

    def _settled(self, queue_id: int, message_ids: list[int], reason: str) -> None:
        if reason == "moved":
            self.history.moved |= {item.identity for item in self.items(queue_id) if item.identity[0] in message_ids}
        self._items[queue_id] = [item for item in self.items(queue_id) if item.identity[0] not in message_ids]
        for message_id in message_ids:
            self.history.settled.add((queue_id, message_id))
            if reason in ("dead", "expired", "cancelled"):
                self.history.lost_of[queue_id, message_id] = reason

    def _fell_due(self, queue_id: int, message_ids: list[int]) -> None:
        items = self.items(queue_id)
        first = [item for wanted in message_ids for item in items if item.identity[0] == wanted]
        for item in first:
            item.due_ms = 0
        self._items[queue_id] = first + [item for item in items if item.identity[0] not in message_ids]


def projection_of(
    recovered: RecoveredState,
    duplicate_ids_kept: int,
    disk: Disk,
    cursors: dict[str, dict[str, Any]],
    paged: Iterable[dict[int, list[Item]]] = (),
) -> Projection:
    """What recovery gives back; ``paged`` is what it left in pages, for each address."""
    found = Projection(duplicate_ids_kept)
    found.queues = {fields["id"]: fields for fields in recovered.queues}
    found._addresses = {fields["name"]: fields for fields in recovered.addresses}
    found._duplicate_ids, found._cursors = recovered.duplicate_ids, cursors
    for queue_id, survivors in recovered.messages.items():
        found._items[queue_id] = [Item(identity(one.message, disk), one.attempts, one.due_ms) for one in survivors]
    for of_address in paged:
        for queue_id, items in of_address.items():
            found._items.setdefault(queue_id, []).extend(items)
    strays = {number for number, items in found._items.items() if items} - found.queues.keys()
    assert not strays, f"messages come back to queues {strays}, which do not"
    assert not [fields for fields in cursors.values() if fields.get("deleted")], "deleted cursors come back"
    return found


def difference(expected: View, found: View) -> str:
    """Where two views differ, for a person."""
    lines = []
    for part, wanted in expected.items():
        for key in sorted({*wanted, *found[part]}, key=str):
            one, other = wanted.get(key), found[part].get(key)
            if one != other:
                lines.append(f"{part} of {key}: expected {_brief(one)}, found {_brief(other)}")
    return "\n".join(lines)


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_brief(one) for one in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_brief(one)}: {_brief(other)}" for one, other in value.items()) + "}"
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple):
        return f"{_brief(value[0])}x{value[1]}"
    if isinstance(value, tuple) and len(value) == 7:
        return f"#{value[0]}({value[3][:12].decode(errors='replace')})"
    return str(value)
