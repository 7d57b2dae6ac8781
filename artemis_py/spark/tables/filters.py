"""Turns filters that Spark pushes down into bounds on the reading. They only narrow it; Spark applies the filters
exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from artemis_py.spark.tables.reading import Wanted

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS_MAX: Final = 19
_MS: Final = timedelta(milliseconds=1)
_TIME_COLUMNS: Final = {
    "messages": {"publishedAt": "time_ms", "timestamp": "timestamp_ms"},
    "events": {"timestamp": "time_ms"},
}
"""The time that each column shows."""
_ADDRESSES: Final = {"messages": ("address", "topic"), "events": ("address",)}
"""The columns that show an address."""
HEADER_COLUMNS: Final = {
    "originalAddress": b"_AMQ_ORIG_ADDRESS",
    "originalQueue": b"_AMQ_ORIG_QUEUE",
    "originalMessageId": b"_AMQ_ORIG_MESSAGE_ID",
    "reason": b"_AMQ_ORIG_ADDRESS",
}
"""The header that a message must have if a column of the table messages is not null. The broker's own copies have them,
so few bodies are read if there are few copies.
"""


class Pushed:
    """The combined filters of one query."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._wanted = Wanted()
        self._brokers: frozenset[str] | None = None

    def narrow(self, one: Filter) -> None:
        """Apply one filter; filters that do not limit the reading are skipped."""
        from pyspark.sql import datasource as spark

        path: tuple[str, ...] = getattr(one, "attribute", ())
        if len(path) != 1:
            return
        if isinstance(one, spark.EqualNullSafe) and one.value is None:
            return  # rows without a value are wanted
        if isinstance(one, (spark.EqualTo, spark.EqualNullSafe)):
            self._one_of(path[0], [one.value])
        elif isinstance(one, spark.In):
            self._one_of(path[0], one.value)
        elif isinstance(one, (spark.GreaterThan, spark.GreaterThanOrEqual)):
            self._between(path[0], one.value, None)
        elif isinstance(one, (spark.LessThan, spark.LessThanOrEqual)):
            self._between(path[0], None, one.value)
        elif isinstance(one, spark.StringStartsWith) and path[0] in _ADDRESSES[self._table]:
            self._wanted = replace(self._wanted, prefixes=(*self._wanted.prefixes, one.value))
        elif isinstance(one, spark.IsNotNull) and self._table == "messages" and path[0] in HEADER_COLUMNS:
            self._wanted = replace(self._wanted, headers=self._wanted.headers | {HEADER_COLUMNS[path[0]]})

    def applied(self, wanted: Wanted, broker: str) -> Wanted | None:
        """What to read from a broker under these filters; None: nothing."""
        return None if self._brokers is not None and broker not in self._brokers else self.narrowed(wanted)

    def narrowed(self, wanted: Wanted) -> Wanted:
        """What to read from all brokers under these filters."""
        own = self._wanted
        return replace(
            wanted,
            lsn_min=max(wanted.lsn_min, own.lsn_min),
            lsn_max=_least(wanted.lsn_max, own.lsn_max),
            time_ms_min=_most(wanted.time_ms_min, own.time_ms_min),
            time_ms_max=_least(wanted.time_ms_max, own.time_ms_max),
            timestamp_ms_min=own.timestamp_ms_min,
            timestamp_ms_max=own.timestamp_ms_max,
            addresses=own.addresses,
            prefixes=own.prefixes,
            message_ids=own.message_ids,
            original_ids=own.original_ids,
            headers=own.headers,
        )

    def _one_of(self, column: str, values: Iterable[Any]) -> None:
        known = [value for value in values if value is not None]
        if column == "broker":
            self._brokers = _common(self._brokers, known)
        elif column in _ADDRESSES[self._table]:
            self._wanted = replace(self._wanted, addresses=_common(self._wanted.addresses, known))
        elif column == "messageId":
            self._wanted = replace(self._wanted, message_ids=_common(self._wanted.message_ids, map(int, known)))
        elif column == "originalMessageId" and self._table == "messages":
            self._copies_of(known)
        elif known:
            self._between(column, min(known), max(known))

    def _copies_of(self, originals: list[str]) -> None:
        """A client may have written other things there than numbers: those stand in no index."""
        if all(text.isascii() and text.isdecimal() and len(text) < _DIGITS_MAX for text in originals):
            numbers = frozenset(map(int, originals))
            self._wanted = replace(self._wanted, original_ids=_common(self._wanted.original_ids, numbers))

    def _between(self, column: str, low: Any, high: Any) -> None:
        """Bounds included: that one of them may be excluded only means a few rows too many."""
        wanted = self._wanted
        name = _TIME_COLUMNS[self._table].get(column)
        if column == "offset":
            if low is not None:
                wanted = replace(wanted, lsn_min=max(wanted.lsn_min, int(low)))
            if high is not None:
                wanted = replace(wanted, lsn_max=_least(wanted.lsn_max, int(high)))
        elif name is not None:
            wanted = _within(wanted, name, _epoch_ms(low), _epoch_ms(high))
        self._wanted = wanted


def _within(wanted: Wanted, name: str, low_ms: int | None, high_ms: int | None) -> Wanted:
    if name == "time_ms":
        low_ms, high_ms = _most(wanted.time_ms_min, low_ms), _least(wanted.time_ms_max, high_ms)
        return replace(wanted, time_ms_min=low_ms, time_ms_max=high_ms)
    low_ms, high_ms = _most(wanted.timestamp_ms_min, low_ms), _least(wanted.timestamp_ms_max, high_ms)
    return replace(wanted, timestamp_ms_min=low_ms, timestamp_ms_max=high_ms)


def _epoch_ms(value: Any) -> int | None:
    """Rounded down: our times are whole milliseconds, so none between is left out by a lower bound."""
    if not isinstance(value, datetime):
        return None
    moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MS


_T = TypeVar("_T")


def _common(known: frozenset[_T] | None, values: Iterable[_T]) -> frozenset[_T]:
    found = frozenset(values)
    return found if known is None else known & found


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def _most(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)
