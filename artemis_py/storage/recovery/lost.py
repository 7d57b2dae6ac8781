"""Finds out which queues lost records belonged to, as far as the remaining bytes tell.

A message's record names its queues and its address, and bindings say which queues an address has: if one is damaged,
the other still helps. Otherwise the record counts as unknown.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from artemis_py.storage.disk.disk import Disk, DiskError
from artemis_py.storage.format import codec
from artemis_py.storage.format.codec import CodecError
from artemis_py.storage.format.segment_index import decode_index, index_name
from artemis_py.storage.journal.index import Index

UNKNOWN: Final = "of unknown queues"
_LOOKED_AT_BYTES: Final = 1 << 20
_OF_A_QUEUE: Final = frozenset({codec.SETTLED, codec.ATTEMPTED, codec.DUE})
"""Records that begin with the queue's number."""


class QueueNames:
    """The names of an index's queues, by number and by address: built once for all damaged places."""

    def __init__(self, index: Index) -> None:
        self.by_number = {number: str(fields.get("name")) for number, fields in index.queues.items()}
        self.by_address: dict[bytes, dict[int, str]] = {}
        for number, fields in index.queues.items():
            queues = self.by_address.setdefault(str(fields.get("address")).encode(), {})
            queues[number] = self.by_number[number]


class _Lost:
    """The findings in damaged bytes."""

    def __init__(self, names: QueueNames) -> None:
        self.messages: set[str] = set()
        """Queues of messages."""
        self.ends: set[str] = set()
        """Queues of events of messages."""
        self.count = 0
        self._names = names.by_number
        self._at = names.by_address

    def walk(self, data: bytes) -> bool:
        """Walk over consecutive records with wrong bytes; False if nothing was found."""
        before = self.count
        place = 0
        while place + codec.RECORD_HEADER_BYTES <= len(data):
            end = _end_of(data, place)
            self._note(data[place + codec.RECORD_HEADER_BYTES : end], data[place + 16], is_whole=_is_whole(data, place))
            place = end
        return self.count > before

    def _note(self, payload: bytes, type_code: int, *, is_whole: bool) -> None:
        if (type_code == codec.GROUP or _is_whole(payload, 0)) and self.walk(payload):
            self.count += 1
        elif names := self._queues_of_message(payload, is_message=type_code == codec.MESSAGE):
            self.messages |= names
            self.count += 1
        elif type_code in _OF_A_QUEUE and (name := self._names.get(int.from_bytes(payload[:4], "little"))) is not None:
            self.ends.add(name)
            self.count += 1
        elif is_whole:
            self.count += 1

    def _queues_of_message(self, payload: bytes, *, is_message: bool) -> set[str]:
        """Empty if it names no queue or is not a message."""
        with suppress(CodecError):
            readings = codec.readings_of_message(payload)
            for address, queue_ids in readings:
                queues = self._at.get(address)
                if queues is not None:  # the number is wrong: it may be any of these
                    is_sure = bool(queue_ids) and all(number in queues for number in queue_ids)
                    return {queues[number] for number in queue_ids} if is_sure else set(queues.values())
            _, said = readings[0]
            if is_message and all(number in self._names for number in said):  # the address is wrong
                return {self._names[number] for number in said}
        return set()


def whose(data: bytes, names: QueueNames, lost: int) -> str:
    """For people: the queues of the at most ``lost`` records that were in ``data``."""
    found = _Lost(names)
    if len(data) <= _LOOKED_AT_BYTES:
        found.walk(data)
    told = [f"messages of {_shown(found.messages)}"] if found.messages else []
    if found.ends:
        told.append(f"events of messages of {_shown(found.ends)}")
    if not found.count:
        told.append(UNKNOWN)
    elif lost > found.count:
        told.append(f"{lost - found.count} {UNKNOWN}")
    return "; ".join(told)


def whose_file(disk: Disk, name: str, index: Index) -> str:
    """For people: the queues with messages in a missing file, according to its index if that still exists."""
    addresses: list[str] | None = None
    with suppress(DiskError, CodecError, KeyError):
        addresses = decode_index(disk.read(index_name(name)))["addresses"]
    if addresses is None:
        return f"its messages were {UNKNOWN}"
    names = {str(fields.get("name")) for fields in index.queues.values() if fields.get("address") in addresses}
    if names:
        return f"its messages were of {_shown(names)}"
    at = f" (only of addresses: {_shown(set(addresses))})" if addresses else ""
    return f"it had no messages of existing queues{at}"


def _shown(names: set[str]) -> str:
    return ", ".join(sorted(names))


def _end_of(data: bytes, place: int) -> int:
    """Where a record ends: where it says, if it is valid, if the data ends there or if a valid record follows;
    otherwise before the next valid one.
    """
    said = place + codec.RECORD_HEADER_BYTES + codec.peek_record(data, place)[0]
    if said == len(data) or (said < len(data) and (_is_whole(data, place) or _is_whole(data, said))):
        return said
    for candidate in range(place + codec.RECORD_HEADER_BYTES, len(data) - codec.RECORD_HEADER_BYTES + 1):
        if data[candidate + 16] in codec.RECORD_NAMES and _is_whole(data, candidate):
            return candidate
    return len(data)


def _is_whole(data: bytes, place: int) -> bool:
    try:
        return codec.decode_record(data, place) is not None
    except CodecError:
        return False
