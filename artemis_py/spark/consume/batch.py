"""The batch of a stream that consumes a queue: which messages are in it. An offset tells that, so a batch that runs
again has the same messages, wherever these are by then.

An offset is ``{"<broker>": bookmark, "#queue": {…}, "#log": {…}}``: the highest bookmark that was in any batch, the
batch that ends there, and the mark of the log (``log/identity.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from artemis_py.errors import PipelineError
from artemis_py.spark.consume.bookmarks import packed, unpacked
from artemis_py.spark.log.identity import Mark
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


def batch_of(offset: Offset, queue: str, broker: str) -> Batch:
    """The batch that ends at an offset. Raises PipelineError when it is of another broker, of another queue, or of a
    query that reads the log.
    """
    told = offset.get(QUEUE)
    if told is None:
        raise PipelineError(
            f"the query's checkpoint is of a query that reads the log; start with a new checkpoint to consume {queue}"
        )
    if told["name"] != queue:
        raise PipelineError(
            f"the query's checkpoint is of queue {told['name']}, but option queue names {queue}; start with a new "
            "checkpoint"
        )
    if broker not in offset:
        known = ", ".join(name for name in offset if not name.startswith("#"))
        raise PipelineError(f"the query's checkpoint is of broker {known}, but url leads to {broker}")
    sample = told.get("sample")
    return Batch(
        queue,
        told["batch"],
        tuple(unpacked(told["bookmarks"])),
        tuple(unpacked(told.get("kept", ""))),
        offset[broker],
        None if sample is None else Sample(*sample),
    )
