"""The messages in a piece of the log: the positions of their fields, and which are wanted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artemis_py.message import COPIED, UNKNOWN, unescape_header
from artemis_py.spark.decode.columns import (
    Mask,
    Numbers,
    any_of,
    dtype_of,
    encoded,
    field_numbers,
    gather,
    runs,
    slices,
)
from artemis_py.spark.decode.record_walk import Walk
from artemis_py.storage.format import records
from artemis_py.storage.format.records import FLAG_LARGE, FLAG_RECALLED, MESSAGE, RECORD_HEADER_BYTES, CodecError

MESSAGE_COLUMNS: Final = dtype_of(records.MESSAGE_FIELDS)
_STATE: Final = dtype_of(records.QUEUE_STATE)
_LARGE: Final = dtype_of(records.LARGE_BODY)


def originals(found: Walk) -> Numbers:
    """The indexes of records of publications, without copies made by compaction."""
    messages, lsns = _published(found)
    kept: Numbers = messages[lsns == found.lsns[messages]]
    return kept


def recalled(found: Walk) -> Numbers:
    """The indexes of records of messages that were put on queues long after their publication."""
    messages = messages_of(found)
    fields = gather(found.data, found.places[messages] + RECORD_HEADER_BYTES, MESSAGE_COLUMNS)
    kept: Numbers = messages[(fields["flags"] & FLAG_RECALLED) > 0]
    return kept


def copies(found: Walk) -> Numbers:
    """For each copy made by compaction the lsn of its publication, and its own."""
    messages, lsns = _published(found)
    own = found.lsns[messages]
    pairs: Numbers = np.stack([lsns, own], axis=1)[lsns != own]
    return pairs


def messages_of(found: Walk) -> Numbers:
    """The indexes of all records of messages, publications and copies."""
    return found.of_kind(MESSAGE, MESSAGE_COLUMNS.itemsize)


def _published(found: Walk) -> tuple[Numbers, Numbers]:
    """The indexes of all records of messages, and the lsns of their publications."""
    messages = messages_of(found)
    fields = gather(found.data, found.places[messages] + RECORD_HEADER_BYTES, MESSAGE_COLUMNS)
    return messages, field_numbers(fields["lsn"])


def address_places(places: Numbers, fields: NDArray[Any]) -> tuple[Numbers, Numbers]:
    """Where the addresses begin and end in message records at these places."""
    begins = places + RECORD_HEADER_BYTES + MESSAGE_COLUMNS.itemsize + _STATE.itemsize * field_numbers(fields["queues"])
    return begins, begins + field_numbers(fields["address_bytes"])


@dataclass
class Published:
    """MESSAGE records of a walk, as columns."""

    found: Walk
    records: Numbers
    """Their indexes in the walk."""

    @cached_property
    def _fields(self) -> NDArray[Any]:
        return gather(self.found.data, self.found.places[self.records] + RECORD_HEADER_BYTES, MESSAGE_COLUMNS)

    def __len__(self) -> int:
        return len(self.records)

    def narrowed(self, mask: Mask) -> Published:
        """The records that a mask selects."""
        return self if mask.all() else Published(self.found, self.records[mask])

    def number(self, name: str) -> Numbers:
        """One of the fixed fields."""
        return field_numbers(self._fields[name])

    @cached_property
    def _address_places(self) -> tuple[Numbers, Numbers]:
        return address_places(self.found.places[self.records], self._fields)

    @cached_property
    def addresses(self) -> tuple[Numbers, list[str]]:
        """For each message the index of its address in the second list."""
        codes, texts = encoded(slices(self.found.data, *self._address_places))
        return codes, [text.decode() for text in texts]

    @cached_property
    def _body_begins(self) -> Numbers:
        begins = self._address_places[1] + self.number("head_bytes")
        if (begins > self.found.ends[self.records]).any():
            raise CodecError("a truncated message record")
        return begins

    @cached_property
    def heads(self) -> tuple[Numbers, pa.BinaryArray]:
        """For each message the index of its header block in the second array, which has equal blocks once."""
        blocks = slices(self.found.data, self._address_places[1], self._body_begins).dictionary_encode()
        return blocks.indices.to_numpy(zero_copy_only=False).astype(np.int64), blocks.dictionary

    @cached_property
    def provenance(self) -> Numbers:
        """Who wrote the headers that say of what each is a copy (``message.SENT`` and so on)."""
        told: Numbers = (self.number("flags") & records.PROVENANCE_MASK) >> records.PROVENANCE_SHIFT
        return told

    def copied(self, part: int = 0) -> Mask:
        """Which headers are the broker's: that part of them which ``message.COPIED`` has, with these added. In older
        logs nothing but the headers says it.
        """
        told = self.provenance - COPIED
        mask: Mask = (self.provenance == UNKNOWN) | ((told >= 0) & (told & part == part))
        return mask

    @cached_property
    def is_large(self) -> Mask:
        """Which bodies are large."""
        large: Mask = (self.number("flags") & FLAG_LARGE) > 0
        return large

    @cached_property
    def large(self) -> NDArray[Any]:
        """Of those, the number and the size."""
        return gather(self.found.data, self._body_begins[self.is_large], _LARGE)

    @cached_property
    def body_bytes(self) -> Numbers:
        """How long each body is."""
        sizes: Numbers = self.found.ends[self.records] - self._body_begins
        if self.is_large.any():
            sizes[self.is_large] = field_numbers(self.large["size_bytes"])
        return sizes

    @property
    def size_bytes(self) -> Numbers:
        """Encoded sizes: header block and body."""
        return self.number("head_bytes") + self.body_bytes

    def bodies(self) -> pa.BinaryArray:
        """The bodies; for large ones their references."""
        return slices(self.found.data, self._body_begins, self.found.ends[self.records])

    @cached_property
    def states(self) -> tuple[Numbers, NDArray[Any]]:
        """One item per message and queue: the message's index, and its state in the queue."""
        counts = self.number("queues")
        owner, place = runs(counts)
        begins = self.found.places[self.records] + RECORD_HEADER_BYTES + MESSAGE_COLUMNS.itemsize
        return owner, gather(self.found.data, begins[owner] + place * _STATE.itemsize, _STATE)


def header_values(blocks: pa.BinaryArray, names: tuple[bytes, ...]) -> list[str | None]:
    """The value of a header in each block, by the first of some names that it has; None if it is missing.

    Most blocks do not have it, so Arrow looks first.
    """
    found: list[str | None] = [None] * len(blocks)
    for place in np.flatnonzero(any_of(blocks, [name + b":" for name in names])).tolist():
        found[place] = _header(blocks[place].as_py(), names)
    return found


def _header(block: bytes, names: tuple[bytes, ...]) -> str | None:
    lines = b"\n" + block
    for name in names:
        begin = lines.find(b"\n" + name + b":")
        if begin >= 0:
            begin += len(name) + 2
            return unescaped(lines[begin : lines.index(b"\n", begin)])
    return None


def unescaped(text: bytes) -> str:
    """A header's name or value without escapes."""
    return unescape_header(text.decode())
