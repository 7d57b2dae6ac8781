"""Turns bytes into columns without Python work per value: numpy gathers fields, Arrow copies texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artemis_py.storage.format.records import Layout

Numbers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_US_PER_MS: Final = 1000


_CODES: Final = {"B": "u1", "H": "<u2", "I": "<u4", "Q": "<u8", "q": "<i8"}


def dtype_of(layout: Layout) -> np.dtype[Any]:
    """The fields of a record as numpy reads them."""
    return np.dtype([(field.name, _CODES[field.code]) for field in layout.fields])


def gather(data: bytes, places: Numbers, fields: np.dtype[Any]) -> NDArray[Any]:
    """The fields of a type at each place, which need not be aligned; ``data`` must contain all their bytes."""
    count = len(data) - fields.itemsize + 1
    if count <= 0:
        return np.empty(0, fields)
    found: NDArray[Any] = np.ndarray((count,), fields, data, strides=(1,))[places]
    return found


def field_numbers(found: NDArray[Any]) -> Numbers:
    """One gathered field as signed 64-bit numbers."""
    return found.astype(np.int64)


def slices(data: bytes, begins: Numbers, ends: Numbers) -> pa.BinaryArray:
    """``data[begin:end]`` for each pair; the pairs are in order and do not overlap.

    Arrow sees the data as values and gaps in turn, without a copy, and takes every other one.
    """
    count = len(begins)
    if not count:
        return pa.array([], pa.binary())
    offsets = np.empty(2 * count, np.int32)
    offsets[0::2] = begins
    offsets[1::2] = ends
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    both = pa.BinaryArray.from_buffers(pa.binary(), 2 * count - 1, buffers)
    return both.take(pa.array(np.arange(0, 2 * count, 2)))


def encoded(values: pa.Array) -> tuple[Numbers, list[Any]]:
    """For each value its index in the list of distinct values, and that list."""
    found = values.dictionary_encode()
    return found.indices.to_numpy(zero_copy_only=False).astype(np.int64), found.dictionary.to_pylist()


def looked_up(codes: Numbers, values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """``values[code]`` for each code."""
    return pa.array(values, kind).take(pa.array(codes))


def by_number(numbers: Numbers, names: dict[int, Any], kind: pa.DataType, missing: Any = None) -> pa.Array:
    """``names[number]`` for each number; for others ``missing``, which may be a function of the number."""
    unique, codes = np.unique(numbers, return_inverse=True)
    other = missing if callable(missing) else lambda _: missing
    values = [names[number] if number in names else other(number) for number in unique.tolist()]
    return looked_up(codes, values, kind)


def times(values_ms: Numbers, absent: Mask | None = None) -> pa.Array:
    """Epoch milliseconds as timestamps; null where ``absent``."""
    return pa.array(values_ms * _US_PER_MS, mask=absent).cast(pa.timestamp("us")).cast(TIMESTAMP)


def numbers(values: Numbers, kind: pa.DataType, absent: Mask | None = None) -> pa.Array:
    """A column of whole numbers; null where ``absent``."""
    return pa.array(values, pa.int64(), mask=absent).cast(kind)


def constant(value: Any, count: int, kind: pa.DataType) -> pa.Array:
    """The same value in every row."""
    return pa.nulls(count, kind) if value is None else pa.repeat(pa.scalar(value, kind), count)


def runs(counts: Numbers) -> tuple[Numbers, Numbers]:
    """For consecutive lists of these lengths: the list of each item and its index there."""
    owner = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) - first[owner]


def lists(counts: Numbers, items: pa.Array, kind: pa.ListType) -> pa.ListArray:
    """Lists of these lengths from consecutive items."""
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), items, type=kind)


def any_of(values: pa.Array, patterns: Sequence[bytes]) -> Mask:
    """Which of these bytes contain one of the patterns."""
    found = np.zeros(len(values), np.bool_)
    for pattern in patterns:
        found |= pc.match_substring(values, pattern).to_numpy(zero_copy_only=False)
    return found
