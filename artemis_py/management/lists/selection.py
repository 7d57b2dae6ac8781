"""Finds the rows that somebody wants, a little at a time: the broker does other work between two steps."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from artemis_py.errors import BadRequestError
from artemis_py.management.lists.field import Kind, Row, Value
from artemis_py.management.lists.wanted import Wanted

Owner = TypeVar("Owner")

LOOKS_PER_STEP: Final = 250
ROWS_PER_STEP: Final = 25
SORTED_MAX: Final = 100_000
"""So many rows are sorted at most."""

_NOTHING: Final[Mapping[str, Value]] = {}
_Keyed = tuple[tuple[bool, Any], Any]


class Selection(Generic[Owner]):
    """How many match, and those that are on the page. ``extra`` are further fields of the list."""

    def __init__(
        self,
        kind: Kind[Owner],
        wanted: Wanted,
        count: int,
        owners: Sequence[Owner],
        extra: Mapping[str, Value] = _NOTHING,
    ) -> None:
        self.extra = extra
        self.kind = kind
        self.wanted = wanted
        self.count = count
        self.owners = owners

    def rows(self) -> Iterator[list[Row]]:
        """The rows of the page, some at a time. Each has the values of the moment in which it is read."""
        names = self.wanted.fields
        for start in range(0, len(self.owners), ROWS_PER_STEP):
            yield [self.kind.row(owner, names) for owner in self.owners[start : start + ROWS_PER_STEP]]


def select(kind: Kind[Owner], owners: Sequence[Owner], wanted: Wanted) -> Generator[None, None, Selection[Owner]]:
    """Find the rows. Raises BadRequestError if too many would have to be sorted."""
    if wanted.sort is None:
        found, count = yield from _in_their_order(kind, owners, wanted)
    else:
        found, count = yield from _sorted(kind, owners, wanted, wanted.sort)
    return Selection(kind, wanted, count, found)


def _matching(kind: Kind[Owner], owners: Sequence[Owner], wanted: Wanted) -> Iterator[list[Owner]]:
    """Those that fulfil the conditions, of some owners at a time."""
    tests = [(kind.fields[one.field].read, one.holds) for one in wanted.conditions]
    for start in range(0, len(owners), LOOKS_PER_STEP):
        some = list(owners[start : start + LOOKS_PER_STEP])
        for read, holds in tests:
            some = [owner for owner in some if holds(read(owner))]
        yield some


def _in_their_order(
    kind: Kind[Owner], owners: Sequence[Owner], wanted: Wanted
) -> Generator[None, None, tuple[list[Owner], int]]:
    first, end = wanted.skipped, wanted.skipped + wanted.size
    if not wanted.conditions:
        return list(owners[first:end]), len(owners)
    found: list[Owner] = []
    count = 0
    for some in _matching(kind, owners, wanted):
        found += some[max(first - count, 0) : max(end - count, 0)]
        count += len(some)
        yield
    return found, count


def _sorted(
    kind: Kind[Owner], owners: Sequence[Owner], wanted: Wanted, by: str
) -> Generator[None, None, tuple[list[Owner], int]]:
    """Each step sorts some; then all are merged, as far as the page goes."""
    read = kind.fields[by].read
    runs: list[list[_Keyed]] = []
    count = 0
    for some in _matching(kind, owners, wanted):
        if some:
            keyed: list[_Keyed] = [(_key(read(owner)), owner) for owner in some]
            keyed.sort(key=_rank, reverse=wanted.is_descending)
            runs.append(keyed)
            count += len(some)
        if count > SORTED_MAX:
            raise BadRequestError(
                f"more than {SORTED_MAX} {kind.several} would have to be sorted; say with where which of them you want"
            )
        yield
    merged = merge(*runs, key=_rank, reverse=wanted.is_descending)
    found: list[Owner] = []
    left = wanted.skipped + wanted.size
    while left > 0:
        some_merged = list(islice(merged, min(left, LOOKS_PER_STEP)))
        if not some_merged:
            break
        left -= len(some_merged)
        found += [owner for _, owner in some_merged]
        yield
    return found[wanted.skipped :], count


def _key(value: Value) -> tuple[bool, Any]:
    """No value is less than any."""
    return value is not None, value.lower() if isinstance(value, str) else value


_rank: Final = itemgetter(0)
