"""A broker's log as the pipeline sees it: segments with their indexes, bytes of them, large bodies, cursors.

There are two kinds: directories (``directory_log``) and a running broker (``http_log``). Planning happens in one
process and reading in others, so what is sent to those is a ``Place``, which each opens for itself.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artemis_py.errors import PipelineError

_logger = logging.getLogger(__name__)


class GoneError(PipelineError):
    """What was to be read is not in the log any more: retention has removed it."""


class AwayError(PipelineError):
    """A broker does not answer."""


@dataclass(frozen=True, slots=True)
class Segment:
    """What the index of a segment says (docs/journal-format.md, "Indexes")."""

    number: int
    first_lsn: int
    last_lsn: int
    first_ms: int | None
    last_ms: int | None
    oldest_ms: int | None
    newest_ms: int | None
    """Timestamps of messages published in it; None when there are none, or an older index does not tell."""
    size_bytes: int
    messages: int
    addresses: frozenset[str] | None
    """Where messages were published to; None when there are too many to tell."""
    queues: Sequence[Mapping[str, Any]]
    sessions: Sequence[Mapping[str, Any]]
    consumers: Sequence[Mapping[str, Any]]
    blocks: Sequence[tuple[int, int, int]]
    """Offset, lowest lsn and time of parts that can be read on their own."""
    name: str = ""
    """Of its file when the index was read; it may have moved since."""
    ids: Sequence[tuple[int, int]] | None = None
    """Spans that have the numbers of all messages of which it speaks; None when nothing tells."""
    counts: Mapping[str, Sequence[int]] | None = None
    """By queue what came and went, in the order of ``storage.survey``; None when nothing tells."""
    copies: int | None = None
    """How many of its messages may be copies that the broker made; None when nothing tells."""
    places_bytes: int = 0
    """How large the file is that tells where the messages of each address stand; 0: there is none."""

    def may_have(self, message: int) -> bool:
        """Can it speak of a message?"""
        return self.ids is None or any(low <= message <= high for low, high in self.ids)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Segment:
        """From the JSON of an index."""
        addresses = fields["addresses"]
        return cls(
            number=fields["segment"],
            first_lsn=fields["first_lsn"],
            last_lsn=fields["last_lsn"],
            first_ms=fields["first_ms"],
            last_ms=fields["last_ms"],
            oldest_ms=fields.get("oldest_ms"),
            newest_ms=fields.get("newest_ms"),
            size_bytes=fields["bytes"],
            messages=fields["messages"],
            addresses=None if addresses is None else frozenset(addresses),  # the same one where it is one already
            queues=fields["queues"],
            sessions=fields["sessions"],
            consumers=fields["consumers"],
            blocks=[(offset, lsn, time_ms) for offset, lsn, time_ms in fields["blocks"]],
            name=fields.get("name", ""),
            ids=fields.get("ids"),
            counts=fields.get("counts"),
            copies=fields.get("copies"),
            places_bytes=fields.get("places", 0),
        )


@dataclass(frozen=True, slots=True)
class Listing:
    """What of a log there is now. ``first_lsn``: nothing below it is there; ``end_lsn``: all up to it is, and stays
    as it is. ``segments`` are in order. ``log_id``: which log it is, None when nothing tells.
    """

    first_lsn: int
    end_lsn: int
    segments: Sequence[Segment]
    log_id: str | None = None


class Log(ABC):
    """One broker's log. Every method may raise PipelineError, which says what to do."""

    broker: str

    @abstractmethod
    def listing(self, after_lsn: int = 0) -> Listing:
        """The segments that hold something above ``after_lsn``."""

    @abstractmethod
    def read(self, segment: int, begin: int, end: int, name: str = "") -> bytes:
        """Bytes of a segment, whose file may still have this name. Raises GoneError when it is there no more."""

    @abstractmethod
    def places(self, segment: int, name: str = "") -> bytes:
        """The file that tells where in a segment the messages of each address stand; empty when it is not there."""

    @abstractmethod
    def body(self, number: int, size_bytes: int) -> bytes:
        """A large body of this size. Raises GoneError when it is there no more, or not whole."""

    @abstractmethod
    def set_cursor(self, name: str, lsn: int, ttl_s: int) -> None:
        """Tell the broker that everything up to ``lsn`` is not needed any more under this name."""

    @abstractmethod
    def close(self) -> None:
        """Let go of connections. What is asked for afterwards opens them again."""

    @abstractmethod
    def wait_briefly(self) -> None:
        """From now on ask once, and do not wait: a broker that is known to be away may be back."""

    @abstractmethod
    def wait_patiently(self) -> None:
        """From now on wait again for as long as the options say."""


def unreadable(name: str, problem: str, *, fails_on_loss: bool) -> None:
    """A segment of which not even the header can be read. Raises PipelineError, or says so where losses are allowed."""
    if fails_on_loss:
        raise PipelineError(f"{name}: {problem}; move it away, or skip it with failOnDataLoss=false")
    _logger.warning("%s: %s; it is skipped", name, problem)


class Place(ABC):
    """Where a log is; small and picklable."""

    @abstractmethod
    def open(self) -> Log:
        """The log there. Nothing is read yet."""
