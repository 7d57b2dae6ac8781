"""Table ``events``: one row for each message and event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artemis_py.spark.decode.columns import Numbers, by_number, constant, looked_up, numbers, times
from artemis_py.spark.decode.event_columns import KINDS, PUBLISHED, REFUSED, Facts, facts_of
from artemis_py.spark.decode.published import Published
from artemis_py.spark.tables.reading import Reading, unknown_name


def event_batches(reading: Reading) -> Iterator[pa.RecordBatch]:
    """The rows of one piece, in order."""
    facts = facts_of(reading.found, reading.wanted.records(reading.found))
    if reading.wanted.message_ids is not None:
        facts = facts.chosen(reading.wanted.of_ids(facts.message))
    if not reading.wanted.takes_all:
        codes, addresses = _encoded(_Rows(reading, facts).address())
        facts = facts.chosen(reading.wanted.taken(codes, [*addresses, None], reading.found.times_ms[facts.record]))
    for share in reading.shares(len(facts)):
        part = facts.chosen(np.arange(share.start, share.stop))
        yield reading.columns(_MAKERS, _Rows(reading, part))


def _encoded(values: pa.Array) -> tuple[Numbers, list[str | None]]:
    """For each value its place in the list; null has the place behind the last."""
    found = values.dictionary_encode()
    codes = found.indices.fill_null(len(found.dictionary)).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), found.dictionary.to_pylist()


@dataclass
class _Rows:
    """The columns of some events."""

    reading: Reading
    facts: Facts

    def __len__(self) -> int:
        return len(self.facts)

    def known(self, values: Numbers, kind: pa.DataType, unknown: int = 0) -> pa.Array:
        """Null where nothing is known."""
        return numbers(values, kind, values == unknown)

    def noted(self, name: str) -> list[Any]:
        """The values beside the columns, for each row."""
        notes, records = self.facts.notes, self.facts.record
        found: list[Any] = [None] * len(records)
        for place in np.flatnonzero(np.isin(records, list(notes))).tolist():
            found[place] = notes[int(records[place])].get(name)
        return found

    def address(self) -> pa.Array:
        """Of a message the one that it was published to, of a queue its own."""
        facts, found = self.facts, self.reading.found
        of_queues = by_number(facts.queue, self.reading.names.queue_addresses(), pa.string())
        published = np.flatnonzero(facts.kind == PUBLISHED)
        codes, names = Published(found, facts.record[published]).addresses
        chosen = np.full(len(facts), -1, np.int64)
        chosen[published] = codes
        of_messages = looked_up(np.maximum(chosen, 0), names or [None], pa.string())
        both = pc.if_else(pa.array(chosen >= 0), of_messages, of_queues)
        if REFUSED in facts.kind:
            both = pc.coalesce(pa.array(self.noted("address"), pa.string()), both)
        return both

    def queue(self) -> pa.Array:
        names = {0: None, **self.reading.names.queue_names()}
        return by_number(self.facts.queue, names, pa.string(), unknown_name)

    def consumer(self) -> pa.Array:
        """As ``client/subscription``, which a reader of a log knows it by."""
        sessions, consumers = self.reading.names.sessions, self.reading.names.consumers
        names: dict[int, str | None] = {0: None}
        for number, fields in consumers.items():
            client = sessions.get(fields["session"], {}).get("client", "")
            names[number] = f"{client}/{fields['subscription']}"
        return by_number(self.facts.consumer, names, pa.string(), unknown_name)

    def origin(self) -> pa.Array:
        """The client that sent a message; only what is published or refused has one."""
        clients = {number: fields.get("client") for number, fields in self.reading.names.sessions.items()}
        sessions = np.where(self.facts.kind == PUBLISHED, self.reading.found.session_ids[self.facts.record], 0)
        if REFUSED in self.facts.kind:
            noted = np.array([one or 0 for one in self.noted("session")], np.int64)
            sessions = np.where(self.facts.kind == REFUSED, noted, sessions)
        return by_number(sessions, clients, pa.string())

    def reason(self) -> pa.Array:
        if not self.facts.notes:
            return constant(None, len(self), pa.string())
        return pa.array([text or None for text in self.noted("reason")], pa.string())

    def transaction(self) -> pa.Array:
        return self.known(self.reading.found.transaction_lsns[self.facts.record], pa.int64())


_MAKERS: Final[dict[str, Callable[[_Rows], pa.Array]]] = {
    "offset": lambda rows: numbers(rows.reading.found.lsns[rows.facts.record], pa.int64()),
    "timestamp": lambda rows: times(rows.reading.found.times_ms[rows.facts.record]),
    "event": lambda rows: looked_up(rows.facts.kind, KINDS, pa.string()),
    "messageId": lambda rows: rows.known(rows.facts.message, pa.int64()),
    "address": _Rows.address,
    "queue": _Rows.queue,
    "consumer": _Rows.consumer,
    "origin": _Rows.origin,
    "reason": _Rows.reason,
    "attempts": lambda rows: rows.known(rows.facts.attempts, pa.int32(), -1),
    "count": lambda rows: numbers(rows.facts.count, pa.int64()),
    "bytes": lambda rows: rows.known(rows.facts.size_bytes, pa.int64(), -1),
    "transaction": _Rows.transaction,
    "broker": lambda rows: constant(rows.reading.log.broker, len(rows), pa.string()),
    "segment": lambda rows: constant(rows.reading.segment, len(rows), pa.int64()),
}
