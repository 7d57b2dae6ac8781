"""The page streams of all addresses, by number."""

from __future__ import annotations

from typing import final

from artemis_py.core.pages.stream import PageStream
from artemis_py.message import Account
from artemis_py.records import PageLog, RecordLog


@final
class Streams:
    """Opens and forgets the streams in which addresses keep messages that find no room in memory. ``files`` is None for
    a broker without page files: then nothing is paged.
    """

    __slots__ = ("_log", "by_number", "files", "number_max")

    def __init__(self, log: RecordLog, files: PageLog | None) -> None:
        self._log = log
        self.files = files
        self.by_number: dict[int, PageStream] = {}
        self.number_max = 0
        """The highest number that a stream has had; a number is never used again."""

    @property
    def are_possible(self) -> bool:
        """Are there files for pages?"""
        return self.files is not None

    def open(self, address: str, account: Account, page_bytes: int, number: int | None = None) -> PageStream:
        """A stream for an address that has none; ``number`` is for one that a restart brings back."""
        assert self.files is not None, "an address pages only where there are files for it"
        if number is None:
            number = self.number_max + 1
        self.number_max = max(self.number_max, number)
        stream = PageStream(number, address, account, self._log, self.files, page_bytes)
        self.by_number[number] = stream
        return stream

    def forget(self, stream: PageStream) -> None:
        """The address of the stream is gone. Queues on wildcard addresses may still read one that is active."""
        if not stream.active:
            del self.by_number[stream.number]
