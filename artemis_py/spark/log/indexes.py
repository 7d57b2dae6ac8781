"""Reads the indexes of many segments. The names of numbers, which most indexes repeat unchanged, are decoded once: in a
log with thousands of segments they are most of the data.
"""

from __future__ import annotations

import gc
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from artemis_py.spark.log.log import Segment
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.format.segment_index import FORMAT, checked_text, index_fields, index_name

_NAMES: Final = b'"queues":['
_BEHIND_NAMES: Final = b'"blocks":['
"""Between these stand ``queues``, ``sessions`` and ``consumers``. Inside of a text they could not stand: there a quote
has a backslash before it.
"""
_LSN: Final = re.compile(rb'\{"lsn":\d+,')
"""Where a record stands differs in each segment, and nobody here asks for it."""
_KNOWN_MAX: Final = 4096
_SEGMENTS_MAX: Final = 50_000
"""Of so many segments it is remembered what was read: some 3 KB for each."""
_Stamp = tuple[int, int, int]


class Indexes:
    """Makes segments from the texts of indexes. Segments share equal parts, which must not be changed."""

    def __init__(self) -> None:
        self._segments: dict[str, tuple[_Stamp, Segment]] = {}
        """What was read, by the path of the index: as long as that is the same file, it says the same."""
        self._names: dict[bytes, Mapping[str, Any]] = {}
        self._addresses: dict[frozenset[str], frozenset[str]] = {}

    def beside(self, path: Path) -> Segment:
        """The index of a segment's file, from the file next to it or made from its bytes. Raises OSError, and
        CodecError if it has no valid header.
        """
        beside = f"{path.parent}/{index_name(path.name)}"
        try:
            found = os.stat(beside)
            stamp = found.st_ino, found.st_mtime_ns, found.st_size
            known = self._segments.get(beside)
            if known is not None and known[0] == stamp:
                return known[1]
            with open(beside, "rb") as file:
                fields = self._fields(checked_text(file.read()))
        except (FileNotFoundError, CodecError):
            return self.segment({**index_fields(path), "name": path.name})
        segment = self.segment({**fields, "name": path.name})
        if len(self._segments) >= _SEGMENTS_MAX:
            self._segments.clear()
        self._segments[beside] = stamp, segment
        return segment

    def segment(self, fields: Mapping[str, Any]) -> Segment:
        """A segment from the fields of an index."""
        addresses = fields["addresses"]
        if addresses is None:
            return Segment.of(fields)
        told = frozenset(addresses)
        return Segment.of({**fields, "addresses": self._addresses.setdefault(told, told)})

    def listed(self, answer: bytes) -> dict[str, Any]:
        """A broker's listing, its segments decoded like indexes. A broker puts each segment on its own line; any other
        format is decoded as a whole.
        """
        head, *lines = answer.split(b"\n{")
        if not lines or not head.endswith(b'"segments":[') or not lines[-1].endswith(b"\n]}\n"):
            found: dict[str, Any] = json.loads(answer)
            return found
        lines[-1] = lines[-1].removesuffix(b"\n]}\n")
        fields: dict[str, Any] = json.loads(head + b"]}")
        fields["segments"] = [self._decoded(b"{" + line.removesuffix(b",")) for line in lines]
        return fields

    def _fields(self, text: bytes) -> Mapping[str, Any]:
        fields = self._decoded(text)
        if fields.get("format") != FORMAT:
            raise CodecError("the index has another format")
        return fields

    def _decoded(self, text: bytes) -> dict[str, Any]:
        """Raises CodecError for what is no JSON object."""
        begin = text.find(_NAMES)
        end = text.find(_BEHIND_NAMES, begin)
        try:
            if begin < 0 or end < 0:
                return _object(text)
            names = _LSN.sub(b"{", text[begin:end])
            known = self._names.get(names)
            if known is None:
                if len(self._names) >= _KNOWN_MAX:
                    self._names.clear()
                known = self._names[names] = _object(b"{" + names.rstrip(b",") + b"}")
            return {**_object(text[:begin] + text[end:]), **known}
        except ValueError:
            raise CodecError("the index is incomplete") from None


def _object(text: bytes) -> dict[str, Any]:
    found: object = json.loads(text)
    if not isinstance(found, dict):
        raise CodecError("the index is incomplete")
    return found


INDEXES: Final = Indexes()
"""Shared in this process: Spark plans one query after the other in it, and a job asks its log several times."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause garbage collection while very many lasting objects are created: searching them again and again takes longer
    than creating them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
