"""Sets of bookmarks as short texts, for offsets: Spark keeps a hundred of them, and shows them in each progress.

A text is the first bookmark and then the distances to the next ones, ``*`` and a number for repeated ones:
``1204,1*3,5`` is 1204, 1205, 1206, 1207, 1212. A long one is compressed, and begins with ``z``.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np

from artemis_py.errors import PipelineError

_READABLE_MAX: Final = 400
_COMPRESSED: Final = "z"


def packed(bookmarks: Sequence[int]) -> str:
    """The text of bookmarks that grow."""
    if not bookmarks:
        return ""
    steps = np.diff(np.array(bookmarks, np.int64))
    starts = np.flatnonzero(np.diff(steps, prepend=-1))
    counts = np.diff(starts, append=len(steps))
    parts = [str(bookmarks[0])]
    for step, count in zip(steps[starts].tolist(), counts.tolist(), strict=True):
        parts.append(str(step) if count == 1 else f"{step}*{count}")
    text = ",".join(parts)
    if len(text) <= _READABLE_MAX:
        return text
    return _COMPRESSED + base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def listed(text: str) -> list[int]:
    """The bookmarks in a header of the broker, separated by commas."""
    return [int(part) for part in text.split(",") if part]


def unpacked(text: str) -> list[int]:
    """The bookmarks of a text. Raises PipelineError for another text."""
    if not text:
        return []
    try:
        if text.startswith(_COMPRESSED):
            text = zlib.decompress(base64.b64decode(text[1:], validate=True)).decode()
        first, *parts = text.split(",")
        pairs = [part.partition("*") for part in parts]
        steps = np.array([int(step) for step, _, _ in pairs], np.int64)
        counts = np.array([int(count or 1) for _, _, count in pairs], np.int64)
        found = np.cumsum(np.concatenate([[int(first)], np.repeat(steps, counts)]))
    except (ValueError, binascii.Error, zlib.error, UnicodeDecodeError, OverflowError):
        raise PipelineError(f"the checkpoint has bookmarks that cannot be read: {text[:80]!r}") from None
    bookmarks: list[int] = found.tolist()
    return bookmarks
