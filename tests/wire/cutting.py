"""How a client's bytes reach the broker: whole, one by one, or in two parts divided at some place."""

from __future__ import annotations

from collections.abc import Callable

LONG_BYTES = 1500
"""A write longer than this is not cut at each of its bytes, only at those near its two ends."""
_END_BYTES = 300
_MIDDLE_STEP_BYTES = 1021

Cutting = Callable[[bytes], list[bytes]]
"""Divides one write into what arrives together: parts, in order, which joined are the write."""


def whole(data: bytes) -> list[bytes]:
    """Everything at once."""
    return [data]


def byte_by_byte(data: bytes) -> list[bytes]:
    """Each byte alone."""
    if len(data) <= LONG_BYTES:
        return [data[index : index + 1] for index in range(len(data))]
    starts = [
        *range(_END_BYTES),
        *range(_END_BYTES, len(data) - _END_BYTES, _MIDDLE_STEP_BYTES),
        *range(len(data) - _END_BYTES, len(data)),
    ]
    return [data[start:end] for start, end in zip(starts, [*starts[1:], len(data)], strict=True)]


def divided(size: int, data: bytes) -> list[bytes]:
    """Two parts, the first of them ``size`` bytes long; what is not longer stays whole."""
    return [part for part in (data[:size], data[size:]) if part]


def places(longest_bytes: int, splits: str) -> list[int]:
    """Where to divide writes of at most this length in two: everywhere (``all``, near the ends of long ones), or at a
    few places.
    """
    if splits == "all":
        everywhere = range(1, longest_bytes)
        if longest_bytes <= LONG_BYTES:
            return list(everywhere)
        return [*everywhere[:_END_BYTES], *everywhere[_END_BYTES:-_END_BYTES:4099], *everywhere[-_END_BYTES:]]
    step = max(longest_bytes // 7, 1)
    return list(range(1 + step // 3, longest_bytes, step))
