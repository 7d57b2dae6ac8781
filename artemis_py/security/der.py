"""DER, the bytes of which certificates and key stores are made, read as liberally as OpenSSL and Java do: lengths need
not be the shortest, and BER's indefinite lengths and divided strings are read, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

INTEGER: Final = 0x02
OID: Final = 0x06
SEQUENCE: Final = 0x30
_CONSTRUCTED: Final = 0x20
_DEPTH_MAX: Final = 32
_LENGTH_BYTES_MAX: Final = 4


class Item(NamedTuple):
    """A value: its tag (one byte), its content, and both with the length between, as they were."""

    tag: int
    content: bytes
    whole: bytes

    @property
    def items(self) -> list[Item]:
        """The values inside. Raises ValueError."""
        return list(items_in(self.content))

    @property
    def octets(self) -> bytes:
        """The bytes of an OCTET STRING, also of one in several pieces. Raises ValueError."""
        if self.tag & _CONSTRUCTED:
            return b"".join(each.octets for each in self.items)
        return self.content

    @property
    def number(self) -> int:
        """An INTEGER."""
        return int.from_bytes(self.content, "big", signed=True)

    @property
    def oid(self) -> str:
        """An OBJECT IDENTIFIER, with dots. Raises ValueError."""
        if self.tag != OID or not self.content:
            raise ValueError("an object identifier is missing")
        numbers, number = [], 0
        for byte in self.content:
            number = number << 7 | byte & 0x7F
            if not byte & 0x80:
                numbers.append(number)
                number = 0
        if not numbers:
            raise ValueError("an object identifier has no end")
        first = min(numbers[0] // 40, 2)
        return ".".join(map(str, (first, numbers[0] - first * 40, *numbers[1:])))


def read_item(data: bytes) -> Item:
    """Return the first value; anything may follow it. Raises ValueError."""
    return _read(data, 0, 0)[0]


def items_in(data: bytes) -> Iterator[Item]:
    """Return the values one after another. Raises ValueError."""
    at = 0
    while at < len(data):
        item, at = _read(data, at, 0)
        yield item


def sequence(item: Item, least: int = 1) -> list[Item]:
    """Return what is in a SEQUENCE of ``least`` values or more. Raises ValueError."""
    found = item.items if item.tag == SEQUENCE else []
    if len(found) < least:
        raise ValueError("it is not built as it should be")
    return found


def _read(data: bytes, at: int, depth: int) -> tuple[Item, int]:
    if len(data) < at + 2 or depth > _DEPTH_MAX:
        raise ValueError("it ends in the middle of a value")
    tag, length, begin = data[at], data[at + 1], at + 2
    if length == 0x80 and tag & _CONSTRUCTED:
        return _until_end(data, at, depth)
    if length & 0x80:
        count = length & 0x7F
        if not 1 <= count <= _LENGTH_BYTES_MAX:
            raise ValueError("it has a length that makes no sense")
        length = int.from_bytes(data[begin : begin + count], "big")
        begin += count
    end = begin + length
    if end > len(data):
        raise ValueError("it ends in the middle of a value")
    return Item(tag, data[begin:end], data[at:end]), end


def _until_end(data: bytes, at: int, depth: int) -> tuple[Item, int]:
    """Read a value of indefinite length: up to two zeros instead of a value."""
    inside = at + 2
    while data[inside : inside + 2] != b"\0\0":
        _, inside = _read(data, inside, depth + 1)
    return Item(data[at], data[at + 2 : inside], data[at : inside + 2]), inside + 2
