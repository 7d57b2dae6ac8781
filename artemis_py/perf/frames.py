"""Frames rendered before the clock starts, and blocks of many of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from artemis_py.perf.target import Headers, Target
from artemis_py.stomp.client import frame

BLOCK_BYTES: Final = 64 * 1024
MARKER_BYTES_MAX: Final = 32
# Lower case without line ends: a body can never look like an ERROR frame.
ALPHABET: Final = b"abcdefghijklmnopqrstuvwxyz0123456789"
# A unique header is `<number of the block>-<place in the block>`: one replace() per block makes all its frames unique.
BLOCK_NUMBER: Final = b"########"


def body_of(size: int) -> bytes:
    """A body of ``size`` bytes (1 or more) without NUL and line end."""
    return (ALPHABET * (size // len(ALPHABET) + 1))[:size]


def marker_of(body: bytes) -> bytes:
    """The end of a frame with this body: what a counter looks for. A longer marker is found faster."""
    return body[-MARKER_BYTES_MAX:] + b"\0"


def send_headers(target: Target, destination: str, body: bytes) -> Headers:
    """The headers that each SEND of a scenario has."""
    return (("destination", destination), ("content-length", str(len(body))), *target.send_headers)


def send_frame(target: Target, destination: str, body: bytes) -> bytes:
    """A transient SEND."""
    return frame("SEND", send_headers(target, destination, body), body, target.version)


def blocks(rendered: bytes, total: int, block_bytes: int = BLOCK_BYTES) -> Iterator[memoryview]:
    """``total`` copies of one frame in blocks of about ``block_bytes``; all full blocks are the same bytes."""
    count = max(1, block_bytes // len(rendered))
    block = memoryview(rendered * min(count, max(total, 1)))
    while total >= count:
        yield block
        total -= count
    if total:
        yield block[: total * len(rendered)]


def unique_frame(target: Target, destination: str, body: bytes, place: int) -> bytes:
    """A SEND with a placeholder for the ``correlation-id``; all have the same length."""
    correlation = ("correlation-id", f"{BLOCK_NUMBER.decode()}-{place:06d}")
    return frame("SEND", (*send_headers(target, destination, body), correlation), body, target.version)


def unique_blocks(
    target: Target, destination: str, body: bytes, total: int, block_bytes: int = BLOCK_BYTES
) -> Iterator[memoryview]:
    """``total`` frames, each with a ``correlation-id`` of its own, in blocks of about ``block_bytes``."""
    length = len(unique_frame(target, destination, body, 0))
    count = min(max(1, block_bytes // length), max(total, 1))
    template = b"".join(unique_frame(target, destination, body, place) for place in range(count))
    for number, start in enumerate(range(0, total, count)):
        block = template.replace(BLOCK_NUMBER, b"%08d" % number)
        yield memoryview(block)[: min(count, total - start) * length]


def single_frames(rendered: bytes, total: int) -> Iterator[memoryview]:
    """``total`` times the same frame, each to be sent by a call of its own."""
    view = memoryview(rendered)
    return islice(iter(lambda: view, None), total)
