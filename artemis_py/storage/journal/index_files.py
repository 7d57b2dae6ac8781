"""The files next to segments, index and places: written when a segment is closed, removed with it.

They can be recreated, so nothing waits for their sync, and a disk that refuses one does not stop the broker.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from artemis_py.storage.disk.disk import Disk, DiskError
from artemis_py.storage.disk.permissions import begin_private
from artemis_py.storage.format.address_index import PLACES_SUFFIX, places_name
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.format.segment_index import (
    FORMAT,
    INDEX_SUFFIX,
    SegmentIndex,
    decode_index,
    encode_index,
    index_name,
    index_of,
    sealed_text,
)

SUFFIXES: Final = (INDEX_SUFFIX, PLACES_SUFFIX)
_UNFINISHED: Final = ".part"
_UNFINISHED_SURVEY: Final = ".survey.part"
"""Differs from ``_UNFINISHED``, because another thread may call ``index_beside`` at the same time."""
_BEGINNING: Final = b'{"format":%d,' % FORMAT


def write_index(disk: Disk, index: SegmentIndex) -> bool:
    """Write the index of a closed segment next to it; False if the disk refuses it or has no spare room."""
    if not disk.has_room:
        return False
    name = index_name(segment_name(index.number))
    try:
        disk.begin(name)
        disk.write(name, 0, encode_index(index.fields()))
        disk.finish(name)
    except DiskError:
        return False
    return True


def delete_segment(disk: Disk, name: str) -> None:
    """Remove a segment and its sidecar files. Raises DiskError."""
    disk.delete(index_name(name))
    disk.delete(places_name(name))
    disk.delete(name)


def delete_orphans(disk: Disk) -> None:
    """Remove sidecar files without a segment, and unfinished ones, which a crash can leave. Raises DiskError."""
    names = set(disk.names())
    for name in names:
        segment = beside_segment(name)
        is_unfinished = name.endswith(_UNFINISHED) and any(f"{suffix}." in name for suffix in SUFFIXES)
        if is_unfinished or (segment is not None and segment not in names):
            disk.delete(name)


def beside_segment(name: str) -> str | None:
    """The name of the segment of a sidecar file; None for other files."""
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix) + ".log"
    return None


def write_survey(path: Path, fields: dict[str, Any], places: bytes) -> None:
    """Write the survey of a closed segment (``retention/survey.py``) next to it: the file of its places, then its index
    again with these fields. Raises OSError, and CodecError if the index is incomplete.
    """
    beside = path.with_name(index_name(path.name))
    known = decode_index(beside.read_bytes())
    _replace(path.with_name(places_name(path.name)), places, _UNFINISHED_SURVEY)
    _replace(beside, encode_index({**known, **fields, "places": len(places)}), _UNFINISHED_SURVEY)


def _replace(path: Path, data: bytes, suffix: str) -> None:
    unfinished = path.with_name(path.name + suffix)
    try:
        begin_private(unfinished)
        unfinished.write_bytes(data)
        os.replace(unfinished, path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def index_text(path: Path) -> bytes | None:
    """The JSON object in the index of a closed segment; None if no index is provably complete: then ``index_beside``
    makes one, if the segment exists.
    """
    try:
        text = sealed_text(path.with_name(index_name(path.name)).read_bytes())
    except OSError:
        return None
    return text if text is not None and text.startswith(_BEGINNING) else None


def index_beside(path: Path) -> dict[str, Any]:
    """The index of a closed segment; without a valid index file, one is written for later calls. Raises OSError if the
    segment cannot be read (it may have moved), CodecError if it has no valid header.
    """
    beside = path.with_name(index_name(path.name))
    with suppress(OSError, CodecError):
        return decode_index(beside.read_bytes())
    fields = index_of(path.read_bytes(), path.name).fields()
    with suppress(OSError):
        _replace(beside, encode_index(fields), _UNFINISHED)
        if not path.exists():  # it was retired meanwhile, without this index
            beside.unlink(missing_ok=True)
    return fields
