"""The pipeline's view of a broker's log: segments with their indexes, their bytes, large bodies, cursors.

There are two kinds: directories (``directory``) and a running broker (``http``). One process plans and others
read, so these get a ``LogLocation``, which each opens itself.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from artemis_py.errors import PipelineError
from artemis_py.storage.format.records import FILE_HEADER_BYTES

_logger = logging.getLogger(__name__)


class GoneError(PipelineError):
    """The requested data is no longer in the log: retention removed it."""


class AwayError(PipelineError):
    """A broker does not answer."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The content of a segment's index (docs/journal-format.md, "Indexes")."""

    number: int
    first_lsn: int
    last_lsn: int
    first_ms: int | None
    last_ms: int | None
    oldest_ms: int | None
    newest_ms: int | None
    """The newest timestamp of a published message; None if there is none, or the index is too old."""
    size_bytes: int
    messages: int
    addresses: frozenset[str] | None
    """The addresses of published messages; None if there are too many."""
    queues: Sequence[Mapping[str, Any]]
    sessions: Sequence[Mapping[str, Any]]
    consumers: Sequence[Mapping[str, Any]]
    blocks: Sequence[tuple[int, int, int]]
    """Offset, lowest lsn and time of independently readable parts."""
    name: str = ""
    """The name of its file when the index was read; it may have moved since."""
    ids: Sequence[tuple[int, int]] | None = None
    """Spans with the numbers of all messages that it mentions; None if unknown."""
    counts: Mapping[str, Sequence[int]] | None = None
    """Counts per queue, in the order of ``storage.retention.survey``; None if unknown."""
    copies: int | None = None
    """How many of its messages may be copies made by the broker; None if unknown."""
    places_bytes: int = 0
    """The size of the file of places; 0: there is none."""

    def may_have(self, message: int) -> bool:
        """May it mention a message?"""
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
    """The current extent of a log. Nothing below ``first_lsn`` is left; everything up to ``end_lsn`` is there and
    final. ``segments`` are in order. ``log_id`` is None if unknown.
    """

    first_lsn: int
    end_lsn: int
    segments: Sequence[Segment]
    log_id: str | None = None
    now_ms: int | None = None
    """The broker's date; None if it was not asked."""


class Log(ABC):
    """One broker's log. Every method may raise PipelineError with advice."""

    broker: str
    """The key by which a query knows the log (``identity``); of a log that is not yet part of one, the broker's name.
    """

    @property
    @abstractmethod
    def location(self) -> LogLocation:
        """Where tasks find it now."""

    @abstractmethod
    def identity(self) -> Identity:
        """What the log says about itself: its broker's name now, and its id."""

    @abstractmethod
    def listing(self, after_lsn: int = 0) -> Listing:
        """The segments with records above ``after_lsn``."""

    @abstractmethod
    def read(self, segment: int, begin: int, end: int, name: str = "") -> bytes:
        """Bytes of a segment, whose file may still have this name. Raises GoneError if it was removed."""

    @abstractmethod
    def places(self, segment: int, name: str = "") -> bytes:
        """The file of places of a segment; empty if there is none."""

    @abstractmethod
    def body(self, number: int, size_bytes: int) -> bytes:
        """A large body of this size. Raises GoneError if it was removed or is incomplete."""

    @abstractmethod
    def set_cursor(self, name: str, lsn: int, ttl_s: int) -> None:
        """Tell the broker that this cursor no longer needs anything up to ``lsn``."""

    @abstractmethod
    def close(self) -> None:
        """Close connections. Later calls open them again."""

    @abstractmethod
    def wait_briefly(self) -> None:
        """From now on ask once, without waiting: a broker known to be away may be back."""

    @abstractmethod
    def wait_patiently(self) -> None:
        """From now on wait again as long as the options say."""


def unreadable(name: str, problem: str, *, fails_on_loss: bool) -> None:
    """Report a segment with an unreadable header. Raises PipelineError, or logs it if losses are allowed."""
    if fails_on_loss:
        raise PipelineError(f"{name}: {problem}; move it away, or skip it with failOnDataLoss=false")
    _logger.warning("%s: %s; it is skipped", name, problem)


class LogLocation(ABC):
    """Where a log is; small and picklable."""

    @abstractmethod
    def open(self) -> Log:
        """The log there. Nothing is read yet."""

    @abstractmethod
    def known_as(self, key: str) -> LogLocation:
        """The same log, under a query's key for it."""


# ---- marks -----------------------------------------------------------------------------------------------------------
#
# Checks that a log is the one that a query has read. An lsn is not enough: a log that was replaced, or restored from
# an older copy and continued, has the same numbers for different records.
#
# A broker begins a new segment at every start and never continues an old one. So two logs with a common origin agree up
# to the end of a common segment, and then differ in the time when their next segment begins. An offset therefore comes
# with a *mark*: the id of the log, and the number and begin time of the offset's segment.


ID: Final = "id"
SEGMENT: Final = "segment"
BEGUN: Final = "begunMs"
Mark = Mapping[str, Any]


def mark_of(listing: Listing, lsn: int, before: Mark | None = None) -> Mark:
    """The mark of an lsn; ``before`` if the listing lacks the segment."""
    begun = _begun(listing, lsn)
    if begun is None:
        return before or {ID: listing.log_id}
    return {ID: listing.log_id, SEGMENT: begun[0], BEGUN: begun[1]}


def check_same_log(broker: str, listing: Listing, lsn: int, mark: Mark | None) -> None:
    """Check that the log contains what was read up to ``lsn``. Raises PipelineError for another log or an older copy,
    even if losses are allowed: it is unknown which of its rows were read.
    """
    what = difference(listing, lsn, mark)
    if what is not None:
        raise _other(broker, what)


def difference(listing: Listing, lsn: int, mark: Mark | None) -> str | None:
    """Why the log is not the one that was read up to ``lsn``; None if it is."""
    if lsn > listing.end_lsn:
        return f"it ends at offset {listing.end_lsn}, but offset {lsn} was already read"
    if mark is None:
        return None
    known, found = mark.get(ID), listing.log_id
    if known is not None and found is not None and known != found:
        what = f"its id is {found} and was {known}"
        return f"{what}, {lost_id(known)}" if has_segment(listing, lsn, mark) else what
    begun = _begun(listing, lsn)
    if begun is not None and SEGMENT in mark and begun != (mark[SEGMENT], mark[BEGUN]):
        return (
            f"its offset {lsn} is in segment {begun[0]}, begun at {begun[1]} ms, but was in segment {mark[SEGMENT]}, "
            f"begun at {mark[BEGUN]} ms"
        )
    return None


def has_segment(listing: Listing, lsn: int, mark: Mark) -> bool:
    """Is an lsn in the segment of its mark? Then this is the log of the mark, or a copy of it, whatever its id says."""
    return _begun(listing, lsn) == (mark.get(SEGMENT), mark.get(BEGUN))


def lost_id(known: str) -> str:
    """What to do about a log that has another id and the segment of a mark."""
    return (
        "but the segment is the same one. If the file log-id was lost, as when files were copied without it, stop the "
        f"broker and write {known} into the files log-id of its journal and its retained log"
    )


def _begun(listing: Listing, lsn: int) -> tuple[int, int] | None:
    """The number and begin time of an lsn's segment; None where it is not there, or its time cannot be read."""
    for segment in listing.segments:
        begun_ms = _begun_ms(segment)
        if segment.first_lsn <= lsn <= segment.last_lsn and begun_ms is not None:
            return segment.number, begun_ms
    return None


def _begun_ms(segment: Segment) -> int | None:
    """The time of its first batch; None where that cannot be read."""
    if not segment.blocks or segment.blocks[0][0] != FILE_HEADER_BYTES:
        return None
    return segment.blocks[0][2]


def _other(broker: str, what: str) -> PipelineError:
    return PipelineError(
        f"the log of broker {broker} is not the one that this query has read, or an older copy of it: {what}. Offsets "
        "mean something else in it, so read it with a new checkpoint, from the time of the change on "
        "(startingTimestamp). If this query reads other brokers, do that in a query of its own, because their rows "
        "would come again; this one goes on without the url or directories of that log with keepRemovedBrokers=true"
    )


# ---- keys ------------------------------------------------------------------------------------------------------------
#
# Which log is which. A log is known by its id; the name of its broker is a label, which may change, and which two
# brokers may share. A query, and its checkpoint, know a log by a *key*: the broker's name when the query first saw it.


_SHORT_ID: Final = 8
Known = Mapping[str, str | None]
"""The keys of a checkpoint, and the ids of their logs; None: unknown."""


class Identity(NamedTuple):
    """A log's broker, by the name that it has now, and the log's id; None: it has none."""

    broker: str
    log_id: str | None


def keys_of(
    logs: Sequence[Identity], known: Known, taken: Collection[str] = (), *, is_complete: bool = True
) -> list[str]:
    """The keys of logs with different ids, in their order. ``taken`` are keys of other logs. The id decides, and for a
    log that is new to the checkpoint, or has no id, the name. Unless ``is_complete``, more logs may come: then a key
    whose id is known waits for its own. Raises PipelineError for two brokers of one name whose logs have no ids.
    """
    used = set(taken)
    found: dict[int, str] = {}
    of_id = {log_id: key for key, log_id in known.items() if log_id is not None}
    for place, (_, log_id) in enumerate(logs):
        key = of_id.get(log_id) if log_id is not None else None
        if key is not None and key not in used:
            found[place] = key
            used.add(key)
    for place, log in enumerate(logs):
        if place in found:
            continue
        waits = not is_complete and known.get(log.broker) not in (None, log.log_id)
        found[place] = _other_key(log, {*used, *known}) if waits or log.broker in used else log.broker
        used.add(found[place])
    return [found[place] for place in range(len(logs))]


def _other_key(log: Identity, used: Collection[str]) -> str:
    if log.log_id is None:
        raise PipelineError(
            f"two logs are of a broker named {log.broker}, and have no file log-id to tell one from the other; name "
            "each broker's directories, as in journal='one=/a,two=/b'"
        )
    short = f"{log.broker}@{log.log_id[:_SHORT_ID]}"
    return short if short not in used else f"{log.broker}@{log.log_id}"


def is_renamed(key: str, log: Identity) -> bool:
    """Does a log have a key that its broker's name would not give it?"""
    return key != log.broker and not key.startswith(f"{log.broker}@")


def warn_of_new_name(key: str, log: Identity) -> None:
    """Log that a broker has another name than the query's key for its log."""
    _logger.warning("broker %s is now called %s; its log (id %s) goes on as %s", key, log.broker, log.log_id, key)


def check_distinct(logs: Sequence[tuple[object, Identity]]) -> None:
    """Raises PipelineError for two logs with one id: the same one, or a copy of it. Each is with where it is."""
    found: dict[str, object] = {}
    for where, log in logs:
        if log.log_id in found:
            raise PipelineError(
                f"{found[log.log_id]} and {where} are one log, or copies of one: both have the id {log.log_id}, of "
                f"broker {log.broker}. Its rows would come twice, so name only one of them; the urls of a broker and "
                "its stand-by are joined by |"
            )
        if log.log_id is not None:
            found[log.log_id] = where


def shown(key: str, log_id: str | None) -> str:
    """A log for a user who has to find it."""
    return f"{key} (a log without an id)" if log_id is None else f"{key} (log id {log_id})"
