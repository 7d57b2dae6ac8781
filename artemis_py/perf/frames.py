"""Frames rendered before the clock starts, and blocks of many of them.

No two messages have the same body: a broker that notices equal ones would be measured at what nobody sends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from artemis_py.perf.target import Headers, Target
from artemis_py.stomp.client import frame

BLOCK_BYTES: Final = 64 * 1024
MARKER_BYTES_MAX: Final = 32
# Lower case without line ends: a body can never look like an ERROR frame.
ALPHABET: Final = b"abcdefghijklmnopqrstuvwxyz0123456789"
# What differs is `<number of the block>-<place in the block>`: one replace() per block makes all its frames unique.
BLOCK_NUMBER: Final = b"########"
NUMBER_BYTES: Final = len(BLOCK_NUMBER) + len("-000000")


def body_of(size: int) -> bytes:
    """A body of ``size`` bytes (1 or more) without NUL and line end."""
    return (ALPHABET * (size // len(ALPHABET) + 1))[:size]


def numbered(body: bytes, place: int) -> bytes:
    """The body with a placeholder for a number at its beginning. One of 15 bytes or fewer has no room, and stays as it
    is.
    """
    return body if len(body) <= NUMBER_BYTES else b"%b-%06d%b" % (BLOCK_NUMBER, place, body[NUMBER_BYTES:])


def end_of(body: bytes) -> bytes:
    """The end that all numbered bodies share."""
    return (body[NUMBER_BYTES:] or body)[-MARKER_BYTES_MAX:]


def marker_of(body: bytes) -> bytes:
    """The end of a frame with this body: what a counter looks for. A longer marker is found faster."""
    return end_of(body) + b"\0"


def send_headers(target: Target, destination: str, body: bytes) -> Headers:
    """The headers that each SEND of a scenario has."""
    return (("destination", destination), ("content-length", str(len(body))), *target.send_headers)


def send_frame(target: Target, destination: str, body: bytes) -> bytes:
    """A transient SEND."""
    return frame("SEND", send_headers(target, destination, body), body, target.version)


def unique_frame(target: Target, destination: str, body: bytes, place: int) -> bytes:
    """A SEND with a placeholder for the ``correlation-id``; all have the same length."""
    correlation = ("correlation-id", f"{BLOCK_NUMBER.decode()}-{place:06d}")
    return frame("SEND", (*send_headers(target, destination, body), correlation), body, target.version)


def blocks(rendered: Callable[[int], bytes], total: int, block_bytes: int = BLOCK_BYTES) -> Iterator[memoryview]:
    """``total`` frames in blocks of about ``block_bytes``; with 1, each for itself.

    ``rendered(place)`` is the frame at a place of a block, with ``BLOCK_NUMBER`` where the number of the block goes;
    all have the same length.
    """
    length = len(rendered(0))
    count = min(max(1, block_bytes // length), max(total, 1))
    template = b"".join(rendered(place) for place in range(count))
    for number, start in enumerate(range(0, total, count)):
        block = template.replace(BLOCK_NUMBER, b"%08d" % number)
        yield memoryview(block)[: min(count, total - start) * length]
