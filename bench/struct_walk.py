"""A yardstick: the least that a data source in Python can do with a log, its records cut by ``struct`` into one column.

No checksum is looked at, no field is decoded. What is slower than this pays for that; what is as fast has nothing left
to gain in Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from artemis_py.storage.format.records import FILE_HEADER_BYTES, HEADER, MESSAGE, RECORD_HEADER_BYTES
from bench.pipeline_log import BODY_BYTES

_HEADER = HEADER.struct
_SCHEMA = pa.schema([pa.field("offset", pa.int64()), pa.field("value", pa.binary())])


class StructWalk(DataSource):
    """``format("struct_walk")`` with option ``path``: one task for each group of three segments."""

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(…)``."""
        return "struct_walk"

    def schema(self) -> str:
        """Offset and body."""
        return "offset long, value binary"

    def reader(self, schema: object) -> DataSourceReader:
        """The only reader there is."""
        return _Reader(self.options["path"])


class _Files(InputPartition):
    def __init__(self, paths: list[Path]) -> None:
        super().__init__(None)
        self.paths = paths


class _Reader(DataSourceReader):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def partitions(self) -> list[InputPartition]:
        """The files, three at a time."""
        paths = sorted(Path(self._folder).glob("*.log"))
        return [_Files(paths[begin : begin + 3]) for begin in range(0, len(paths), 3)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A batch for each file."""
        assert isinstance(partition, _Files)
        for path in partition.paths:
            yield _rows(path.read_bytes())


def _rows(data: bytes) -> pa.RecordBatch:
    offsets: list[int] = []
    bodies: list[bytes] = []
    place = FILE_HEADER_BYTES
    while place + RECORD_HEADER_BYTES <= len(data):
        _, length, lsn, kind = _HEADER.unpack_from(data, place)
        place += RECORD_HEADER_BYTES + length
        if kind == MESSAGE:
            offsets.append(lsn)
            bodies.append(data[place - BODY_BYTES : place])
    return pa.RecordBatch.from_arrays([pa.array(offsets, pa.int64()), pa.array(bodies, pa.binary())], schema=_SCHEMA)
