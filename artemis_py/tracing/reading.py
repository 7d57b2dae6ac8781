"""The sources of traces: the log of a broker in directories, or of a running one over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from artemis_py.errors import ArtemisError
from artemis_py.spark.log.http import HttpLog
from artemis_py.spark.log.log import GoneError, Segment
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.reader import LogReader, entries_of
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.format.scan import log_files, whole_records
from artemis_py.storage.format.segment_index import index_fields
from artemis_py.storage.log_id import known_id
from artemis_py.tracing.source import Beginning, LogSource, Part, Spans, cuts


class DirectorySource(LogSource):
    """A log in directories. The directories are read once."""

    def __init__(self, directories: Sequence[Path]) -> None:
        super().__init__()
        self._reader = LogReader(directories, self.damages)
        self._skipped: set[int] = set()
        self._spans: dict[int, Spans] = {}
        """The numbers of messages that each file mentions, where its index says so."""

    def begin(self, after_lsn: int, from_ms: int) -> Beginning:
        del after_lsn  # of files nobody remembers how far they were read
        directories = self._reader.directories
        queues: list[Mapping[str, Any]] = []
        try:
            files = log_files(directories)
            if not files:
                raise ArtemisError(f"{' and '.join(map(str, directories))}: there are no journal files")
            is_early = True
            for file in files:
                with suppress(CodecError):  # the reader reports it
                    fields = index_fields(file.path)
                    queues += fields["queues"]
                    if fields.get("ids") is not None:
                        self._spans[file.number] = [(low, high) for low, high in fields["ids"]]
                    is_early = is_early and file is not files[-1] and (fields["last_ms"] or 0) < from_ms
                    self._skipped |= {file.number} if is_early else set()
        except OSError as error:
            raise ArtemisError(f"{error.filename}: {error.strerror}") from None
        name = self._named() or directories[0].resolve().name
        return Beginning(known_id(directories) or name, name, queues)

    def _named(self) -> str:
        """The broker's name, which each segment of a retained log begins with."""
        for file, data, is_last in self._reader.files():
            for record in whole_records(file.path.name, data, [], is_last=is_last):
                if record.type_code == records.BROKER:
                    name: str = codec.decode_fields(record.payload)["name"]
                    return name
            break
        return ""

    def parts(self) -> Iterator[Part]:
        try:
            for file, data, is_last in self._reader.files():
                if file.number not in self._skipped and self.may_be_among(self._spans.get(file.number)):
                    name = file.path.name
                    yield Part(name, entries_of(name, data, self.damages, is_last=is_last), begins_segment=True)
        except OSError as error:
            raise ArtemisError(f"{error.filename}: {error.strerror}") from None

    def close(self) -> None:
        return


class BrokerSource(LogSource):
    """The log of a running broker."""

    def __init__(self, log: HttpLog) -> None:
        super().__init__()
        self._log = log
        self._read_lsn = 0
        self._segment = 0
        self._offset = 0
        """Where in that segment the next part begins; 0: at its beginning."""

    def begin(self, after_lsn: int, from_ms: int) -> Beginning:
        listing = self._log.listing()
        skipped: list[Segment] = []
        for segment in listing.segments:
            if segment.last_lsn > after_lsn and (segment.last_ms or 0) >= from_ms:
                break
            skipped.append(segment)
        if after_lsn and listing.first_lsn > after_lsn + 1 and not skipped:
            self.lost += 1
        self._read_lsn = skipped[-1].last_lsn if skipped else 0
        queues = [fields for segment in listing.segments for fields in segment.queues]
        return Beginning(listing.log_id or self._log.broker, self._log.broker, queues)

    def parts(self) -> Iterator[Part]:
        for segment in self._log.listing(self._read_lsn).segments:
            if self._segment and segment.number > self._segment + 1:
                self.lost += 1
            if self.may_be_among(None if segment.ids is None else list(segment.ids)):
                yield from self._parts_of(segment)
            self._read_lsn = segment.last_lsn

    def _parts_of(self, segment: Segment) -> Iterator[Part]:
        if segment.number != self._segment:
            self._segment, self._offset = segment.number, 0
        for begin, end in cuts(segment.blocks, segment.size_bytes, self._offset):
            try:
                data = self._log.read(segment.number, begin, end, segment.name)
            except GoneError:
                self.lost += 1
                return
            entries = entries_of(segment.name, data, self.damages, is_last=False, begin=0)
            part = Part(segment.name, entries, begins_segment=not self._offset)
            yield part
            self._offset = end

    def close(self) -> None:
        self._log.close()
