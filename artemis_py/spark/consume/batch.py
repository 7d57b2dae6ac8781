"""The batch of a stream that consumes a queue: which messages are in it. An offset tells that, so a batch that runs
again has the same messages, wherever these are by then.

An offset is ``{"<broker>": bookmark, "#queue": {…}, "#log": {…}}``: the highest bookmark that was in any batch, the
batch that ends there, and the mark of the log (``log/log.py``).
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from artemis_py.errors import PipelineError
from artemis_py.spark.log.log import ID, Identity, Mark, shown
from artemis_py.spark.tables.reading import Sample

QUEUE: Final = "#queue"
LOG: Final = "#log"
Offset = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch. ``kept`` are messages of earlier batches that were still on the queue when this one was
    planned: others had them.
    """

    queue: str
    number: int
    """How many batches of the query came before it, and one."""
    bookmarks: tuple[int, ...]
    """In order."""
    kept: tuple[int, ...]
    top: int
    """The highest bookmark of this and all earlier batches."""
    sample: Sample | None
    """None in an empty batch."""

    def offset(self, broker: str, mark: Mark) -> dict[str, Any]:
        """The offset at its end."""
        told: dict[str, Any] = {
            "name": self.queue,
            "batch": self.number,
            "messages": len(self.bookmarks),
            "bookmarks": packed(self.bookmarks),
        }
        if self.kept:
            told["kept"] = packed(self.kept)
        if self.sample is not None:
            told["sample"] = list(self.sample)
        return {broker: self.top, QUEUE: told, LOG: {broker: dict(mark)}}


def key_of(offset: Offset, log: Identity) -> str:
    """The key of the log in an offset: the broker may have another name now. Raises PipelineError for another log."""
    [key] = [name for name in offset if not name.startswith("#")]
    known = offset.get(LOG, {}).get(key, {}).get(ID)
    if known is not None and log.log_id is not None:
        if known == log.log_id:
            return key
        what = "whatever it is called now; its messages are not on the queue of the other one"
    elif key == log.broker:
        return key
    else:
        what = f"and call it {key} as before: without an id it cannot be recognised under another name"
    raise PipelineError(
        f"the query's checkpoint is of broker {shown(key, known)}, but url leads to {shown(log.broker, log.log_id)}. "
        f"Let url and stompUrl lead to the first one, {what}"
    )


def batch_of(offset: Offset, queue: str) -> Batch:
    """The batch that ends at an offset. Raises PipelineError when it is of another queue, or of a query that reads the
    log.
    """
    told = offset.get(QUEUE)
    if told is None:
        raise PipelineError(
            f"the query's checkpoint is of a query that reads the log. Keep it for that one, and give the query that "
            f"consumes {queue} another: it begins with all that is on the queue, whatever the first one has read"
        )
    if told["name"] != queue:
        raise PipelineError(
            f"the query's checkpoint is of queue {told['name']}, but option queue names {queue}. Keep it for that "
            "queue, whose last batch may not be acknowledged yet, and give this one another"
        )
    [top] = [lsn for name, lsn in offset.items() if not name.startswith("#")]
    sample = told.get("sample")
    return Batch(
        queue,
        told["batch"],
        tuple(unpacked(told["bookmarks"])),
        tuple(unpacked(told.get("kept", ""))),
        top,
        None if sample is None else Sample(*sample),
    )


# ---- bookmarks as texts ----------------------------------------------------------------------------------------------
#
# Sets of bookmarks as short texts, for offsets: Spark keeps a hundred of them, and shows them in each progress.
#
# A text is the first bookmark and then the distances to the next ones, ``*`` and a number for repeated ones:
# ``1204,1*3,5`` is 1204, 1205, 1206, 1207, 1212. A long one is compressed, and begins with ``z``.


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
