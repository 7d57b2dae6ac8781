"""The index files beside segments: written when a segment is closed, gone when it goes.

They can be lost and made again, so nothing waits for them to be synced, and a disk that refuses one is no reason to
stop.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from artemis_py.storage.codec import CodecError
from artemis_py.storage.disk import Disk, DiskError
from artemis_py.storage.journal import segment_name
from artemis_py.storage.segment_index import (
    INDEX_SUFFIX,
    SegmentIndex,
    decode_index,
    encode_index,
    index_name,
    index_of,
)

_UNFINISHED: Final = ".part"


def write_index(disk: Disk, index: SegmentIndex) -> bool:
    """Write the index of a closed segment beside it; False when the disk does not take it."""
    name = index_name(segment_name(index.number))
    try:
        disk.begin(name)
        disk.write(name, 0, encode_index(index.fields()))
        disk.finish(name)
    except DiskError:
        return False
    return True


def delete_segment(disk: Disk, name: str) -> None:
    """Remove a segment and its index. Raises DiskError."""
    disk.delete(index_name(name))
    disk.delete(name)


def delete_orphans(disk: Disk) -> None:
    """Remove index files without a segment and unfinished ones, which a crash can leave. Raises DiskError."""
    names = set(disk.names())
    for name in names:
        is_orphan = name.endswith(INDEX_SUFFIX) and name.removesuffix(INDEX_SUFFIX) + ".log" not in names
        if is_orphan or name.endswith(INDEX_SUFFIX + _UNFINISHED):
            disk.delete(name)


def index_beside(path: Path) -> dict[str, Any]:
    """The index of a closed segment; when there is no file of it that is whole, one is made, for the next who asks.
    Raises OSError when the segment cannot be read (it may have moved), CodecError when it has no valid header.
    """
    beside = path.with_name(index_name(path.name))
    with suppress(OSError, CodecError):
        return decode_index(beside.read_bytes())
    fields = index_of(path.read_bytes(), path.name).fields()
    unfinished = beside.with_name(beside.name + _UNFINISHED)
    with suppress(OSError):
        unfinished.write_bytes(encode_index(fields))
        os.replace(unfinished, beside)
        if not path.exists():  # it was retired meanwhile, without its index
            beside.unlink(missing_ok=True)
    return fields
