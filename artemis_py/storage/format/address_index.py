"""The address index: a file beside a closed segment that says where in it each address has messages.

It can be read without the segment. Each part has a checksum; if one is wrong, a reader reads the segment instead.
docs/journal-format.md ("Places") describes the bytes.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from struct import Struct
from typing import Any, Final

from artemis_py.storage.format.records import CodecError

PLACES_SUFFIX: Final = ".places"
FORMAT: Final = 1
_MAGIC: Final = b"ARTEMISP"
_HEADER: Final = Struct("<8sII")
_CHECKSUM: Final = Struct("<I")
_LEVEL: Final = 1
NUMBERS: Final = 3
"""Numbers per run: its distance from the previous run, its length, and its distance from its ORIGIN record (0:
none).
"""


@dataclass(frozen=True, slots=True)
class Places:
    """The segment that the file describes: its number, first and last lsn, and how many of its bytes are covered."""

    number: int
    first_lsn: int
    last_lsn: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Part:
    """Where a part begins in the file, its size, and its count of numbers."""

    begin: int
    size_bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class Table:
    """The beginning of the file. ``addresses`` is None if there are too many."""

    of: Places
    batches: Part
    copies: Part
    addresses: Mapping[str, Part] | None
    messages: Mapping[str, int]
    """The number of messages of each address."""


def places_name(segment_file: str) -> str:
    """The name of the file of places of a segment's file, in use or retained."""
    return segment_file.removesuffix(".log") + PLACES_SUFFIX


def encode_places(
    of: Places, batches: array[int], runs: Mapping[str, tuple[int, array[int]]] | None, copies: array[int]
) -> bytes:
    """The file. ``batches`` are offsets of BATCH records. A run is three numbers: begin, end, and the offset of the
    ORIGIN record or 0. ``runs`` has each address' runs and number of messages; copies are those made by the broker, of
    any address.
    """
    parts: list[bytes] = []
    told: dict[str, Any] = {}
    filled = 0

    def add(numbers: array[int]) -> list[int]:
        nonlocal filled
        part = zlib.compress(_little(numbers), _LEVEL)
        parts.extend((part, _CHECKSUM.pack(zlib.crc32(part))))
        begin, filled = filled, filled + len(part) + _CHECKSUM.size
        return [begin, len(part), len(numbers)]

    told["segment"], told["first_lsn"], told["last_lsn"], told["bytes"] = (
        of.number, of.first_lsn, of.last_lsn, of.size_bytes
    )  # fmt: skip
    told["batches"] = add(_gaps(batches))
    told["copies"] = add(_packed(copies))
    told["addresses"] = None
    if runs is not None:
        told["addresses"] = {address: [messages, *add(_packed(one))] for address, (messages, one) in runs.items()}
    table = zlib.compress(json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode(), _LEVEL)
    head = _HEADER.pack(_MAGIC, FORMAT, len(table)) + table
    return b"".join([head, _CHECKSUM.pack(zlib.crc32(head)), *parts])


def decode_table(data: bytes) -> Table:
    """Decode the beginning of such a file. Raises CodecError if it is incomplete or has another format."""
    if len(data) < _HEADER.size:
        raise CodecError("the file of places is truncated")
    magic, version, size_bytes = _HEADER.unpack_from(data)
    end = _HEADER.size + size_bytes
    if magic != _MAGIC or version != FORMAT or len(data) < end + _CHECKSUM.size:
        raise CodecError("the file of places has another format or is truncated")
    if _CHECKSUM.unpack_from(data, end)[0] != zlib.crc32(data[:end]):
        raise CodecError("the file of places is damaged")
    told = json.loads(zlib.decompress(data[_HEADER.size : end]))
    behind = end + _CHECKSUM.size
    addresses = told["addresses"]
    return Table(
        Places(told["segment"], told["first_lsn"], told["last_lsn"], told["bytes"]),
        _part(told["batches"], behind),
        _part(told["copies"], behind),
        None if addresses is None else {address: _part(one[1:], behind) for address, one in addresses.items()},
        {} if addresses is None else {address: one[0] for address, one in addresses.items()},
    )


def part_bytes(data: bytes, part: Part) -> bytes:
    """The numbers of a part, of 4 bytes each, little-endian. Raises CodecError if it is incomplete."""
    end = part.begin + part.size_bytes
    if len(data) < end + _CHECKSUM.size or _CHECKSUM.unpack_from(data, end)[0] != zlib.crc32(data[part.begin : end]):
        raise CodecError("the file of places is damaged or truncated")
    return zlib.decompress(data[part.begin : end])


def _part(told: list[int], behind: int) -> Part:
    return Part(behind + told[0], told[1], told[2])


def _gaps(numbers: array[int]) -> array[int]:
    """The differences between consecutive numbers: small numbers compress well."""
    gaps = array("I", numbers[:1])
    gaps.extend([after - before for before, after in pairwise(numbers)])
    return gaps


def _packed(runs: array[int]) -> array[int]:
    """First the beginnings of all runs, then their lengths, then the positions of their senders."""
    begins, ends, origins = runs[0::NUMBERS], runs[1::NUMBERS], runs[2::NUMBERS]
    packed = array("I", [begin - end for begin, end in zip(begins, array("I", [0]) + ends, strict=False)])
    packed.extend([end - begin for begin, end in zip(begins, ends, strict=True)])
    packed.extend([begin - origin if origin else 0 for begin, origin in zip(begins, origins, strict=True)])
    return packed


def _little(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = array("I", numbers)
        numbers.byteswap()
    return numbers.tobytes()
