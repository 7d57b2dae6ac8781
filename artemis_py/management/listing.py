"""Lists: the name and the meaning of each field, and how it is read. Filters, sorts and pages them: reads what a client
asks for, and finds the rows, some in each step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

from artemis_py.config.problems import nearest
from artemis_py.errors import BadRequestError
from artemis_py.units import parse_long

Owner = TypeVar("Owner")
Value = str | int | bool | Mapping[str, str] | None
Row = dict[str, Value]

TEXT: Final = "text"
NUMBER: Final = "number"
FLAG: Final = "flag"
MAP: Final = "map"
"""Texts by name. No list is sorted by one."""

EPOCH_MS: Final = "epoch ms"
"""The unit of dates; 0: never."""


class Field(NamedTuple, Generic[Owner]):
    """``name`` is Artemis' name where it has one. ``unit`` is empty for what is counted by itself. ``is_brief``: is it
    one of the few that a person sees first?
    """

    name: str
    type: str
    sentence: str
    read: Callable[[Owner], Value]
    unit: str = ""
    is_brief: bool = False


class Kind(Generic[Owner]):
    """A list: ``one`` is what a row is about, ``several`` the same for more of them. The first field is its name.
    ``as_artemis`` makes of a row what a bean of Artemis tells, where that is something else.
    """

    def __init__(
        self,
        one: str,
        several: str,
        fields: Sequence[Field[Owner]],
        as_artemis: Callable[[Row], Mapping[str, Any]] = lambda row: row,
    ) -> None:
        self.one = one
        self.several = several
        self.as_artemis = as_artemis
        self.fields: dict[str, Field[Owner]] = {field.name: field for field in fields}

    def row(self, owner: Owner, names: Sequence[str] = ()) -> Row:
        """The fields with these names, or all of them."""
        fields = self.fields
        return {name: fields[name].read(owner) for name in names or fields}

    @property
    def brief(self) -> list[str]:
        """The names of the fields that a person sees first."""
        return [field.name for field in self.fields.values() if field.is_brief]


AnyKind = Kind[Any]


# ---- filter, sort, page ----------------------------------------------------------------------------------------------

PAGE_SIZE: Final = 100
PAGE_SIZE_MAX: Final = 1_000
_CONDITION: Final = re.compile(r"\s*([A-Za-z]+)\s*(!~|!=|>=|<=|~|=|>|<)(.*)", re.DOTALL)
_SHOWN_MAX: Final = 100

_TESTS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "~": lambda value, operand: operand in value.lower(),
    "!~": lambda value, operand: operand not in value.lower(),
    "=": lambda value, operand: bool(value == operand),
    "!=": lambda value, operand: bool(value != operand),
    ">": lambda value, operand: bool(value > operand),
    "<": lambda value, operand: bool(value < operand),
    ">=": lambda value, operand: bool(value >= operand),
    "<=": lambda value, operand: bool(value <= operand),
}
_ALLOWED: Final = {TEXT: ("=", "!=", "~", "!~"), NUMBER: ("=", "!=", ">", "<", ">=", "<="), FLAG: ("=", "!=")}
_OF_ARTEMIS: Final = {
    "CONTAINS": "~", "NOT_CONTAINS": "!~", "EQUALS": "=", "NOT_EQUALS": "!=", "GREATER_THAN": ">", "LESS_THAN": "<",
}  # fmt: skip
"""The words in the ``options`` of Artemis' lists."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What a row must be. A row without the value fulfils only ``!=`` and ``!~``."""

    field: str
    test: Callable[[Any, Any], bool]
    value: Value
    is_negative: bool

    def holds(self, value: Value) -> bool:
        """Does a row with this value fulfil it?"""
        return self.is_negative if value is None else self.test(value, self.value)


@dataclass(frozen=True, slots=True)
class ListQuery:
    """``page`` counts from 1. Without ``sort`` the rows come in the order in which they were made; without ``fields``
    they have all.
    """

    conditions: tuple[Condition, ...] = ()
    sort: str | None = None
    is_descending: bool = False
    page: int = 1
    size: int = PAGE_SIZE
    fields: tuple[str, ...] = ()

    @property
    def skipped(self) -> int:
        """How many rows come before the page."""
        return (self.page - 1) * self.size


def query_of(
    kind: AnyKind,
    *,
    where: Sequence[str] = (),
    sort: str = "",
    page: int = 1,
    size: int = PAGE_SIZE,
    fields: Sequence[str] = (),
) -> ListQuery:
    """The query. ``where`` has conditions such as ``messageCount>10`` or ``name~orders``, which must all hold; ``sort``
    is a field, with ``:desc`` behind it the greatest first; each of ``fields`` may be several with commas between.
    Raises BadRequestError with what is wrong.
    """
    if page < 1:
        raise BadRequestError(f"page must be 1 or more, not {page}")
    if not 1 <= size <= PAGE_SIZE_MAX:
        raise BadRequestError(f"size must be a number from 1 to {PAGE_SIZE_MAX}, not {size}")
    by, _, order = sort.partition(":")
    if order not in ("", "asc", "desc"):
        raise BadRequestError(f"sort must be FIELD, FIELD:asc or FIELD:desc, not {sort[:_SHOWN_MAX]!r}")
    names = tuple(name.strip() for text in fields for name in text.split(","))
    for name in (*names, by) if by else names:
        _check_field(kind, name)
    conditions = tuple(_condition_of(kind, text) for text in where)
    return ListQuery(conditions, by or None, order == "desc", page, size, names)


def _condition_of(kind: AnyKind, text: str) -> Condition:
    """A condition. Raises BadRequestError."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise BadRequestError(
            f"{text[:_SHOWN_MAX]!r} is not a condition; write FIELD OPERATOR VALUE, as in {_example(kind)}"
        )
    return _condition(kind, match[1], match[2], match[3].strip())


def condition_of_artemis(kind: AnyKind, field: str, operation: str, value: str) -> Condition:
    """A condition in the words of Artemis' lists. Raises BadRequestError."""
    operator = _OF_ARTEMIS.get(operation.upper())
    if operator is None:
        raise BadRequestError(f"operation must be one of {', '.join(_OF_ARTEMIS)}, not {operation[:_SHOWN_MAX]!r}")
    return _condition(kind, field, operator, value)


def _check_field(kind: AnyKind, name: str) -> None:
    """Raises BadRequestError if there is no such field."""
    if name in kind.fields:
        return
    near = nearest(name, kind.fields)
    advice = f"; there are {', '.join(kind.fields)}" if near is None else f"; did you mean {near}?"
    raise BadRequestError(f"a {kind.one} has no field {name[:_SHOWN_MAX]!r}{advice}")


def _condition(kind: AnyKind, name: str, operator: str, text: str) -> Condition:
    _check_field(kind, name)
    type = kind.fields[name].type
    if operator not in _ALLOWED[type]:
        raise BadRequestError(f"{name} is a {type}: compare it with {', '.join(_ALLOWED[type])}, not {operator}")
    value = _value(name, type, text)
    if operator in ("~", "!~"):
        value = text.lower()
    return Condition(name, _TESTS[operator], value, is_negative=operator.startswith("!"))


def _value(name: str, type: str, text: str) -> Value:
    if type == TEXT:
        return text
    if type == NUMBER:
        try:
            return parse_long(text)
        except ValueError:
            raise BadRequestError(f"{name} must be a number, not {text[:_SHOWN_MAX]!r}") from None
    if text.lower() not in ("true", "false"):
        raise BadRequestError(f"{name} must be true or false, not {text[:_SHOWN_MAX]!r}")
    return text.lower() == "true"


def _example(kind: AnyKind) -> str:
    field = next((one for one in kind.fields.values() if one.type == NUMBER), None)
    return f"{next(iter(kind.fields))}~a" if field is None else f"{field.name}>0"


# ---- the rows of a page --------------------------------------------------------------------------


LOOKS_PER_STEP: Final = 250
_ROWS_PER_STEP: Final = 25
SORTED_MAX: Final = 100_000
"""So many rows are sorted at most."""

_NOTHING: Final[Mapping[str, Value]] = {}
_Keyed = tuple[tuple[bool, Any], Any]


class Selection(Generic[Owner]):
    """The rows of a page, and how many match. ``extra`` has further values of the answer."""

    def __init__(
        self,
        kind: Kind[Owner],
        query: ListQuery,
        count: int,
        owners: Sequence[Owner],
        extra: Mapping[str, Value] = _NOTHING,
    ) -> None:
        self.extra = extra
        self.kind = kind
        self.query = query
        self.count = count
        self.owners = owners

    def rows(self) -> Iterator[list[Row]]:
        """The rows of the page, some at a time. Each has the values of the moment in which it is read."""
        names = self.query.fields
        for start in range(0, len(self.owners), _ROWS_PER_STEP):
            yield [self.kind.row(owner, names) for owner in self.owners[start : start + _ROWS_PER_STEP]]


def select(kind: Kind[Owner], owners: Sequence[Owner], query: ListQuery) -> Generator[None, None, Selection[Owner]]:
    """Find the rows. Raises BadRequestError if too many would have to be sorted."""
    if query.sort is None:
        rows, count = yield from _in_their_order(kind, owners, query)
    else:
        rows, count = yield from _sorted(kind, owners, query, query.sort)
    return Selection(kind, query, count, rows)


def _matching(kind: Kind[Owner], owners: Sequence[Owner], query: ListQuery) -> Iterator[list[Owner]]:
    """Those that fulfil the conditions, of some owners at a time."""
    tests = [(kind.fields[one.field].read, one.holds) for one in query.conditions]
    for start in range(0, len(owners), LOOKS_PER_STEP):
        some = list(owners[start : start + LOOKS_PER_STEP])
        for read, holds in tests:
            some = [owner for owner in some if holds(read(owner))]
        yield some


def _in_their_order(
    kind: Kind[Owner], owners: Sequence[Owner], query: ListQuery
) -> Generator[None, None, tuple[list[Owner], int]]:
    first, end = query.skipped, query.skipped + query.size
    if not query.conditions:
        return list(owners[first:end]), len(owners)
    rows: list[Owner] = []
    count = 0
    for some in _matching(kind, owners, query):
        rows += some[max(first - count, 0) : max(end - count, 0)]
        count += len(some)
        yield
    return rows, count


def _sorted(
    kind: Kind[Owner], owners: Sequence[Owner], query: ListQuery, by: str
) -> Generator[None, None, tuple[list[Owner], int]]:
    """Each step sorts some; then all are merged, as far as the page goes."""
    read = kind.fields[by].read
    runs: list[list[_Keyed]] = []
    count = 0
    for some in _matching(kind, owners, query):
        if some:
            keyed: list[_Keyed] = [(_key(read(owner)), owner) for owner in some]
            keyed.sort(key=_rank, reverse=query.is_descending)
            runs.append(keyed)
            count += len(some)
        if count > SORTED_MAX:
            raise BadRequestError(
                f"more than {SORTED_MAX} {kind.several} would have to be sorted; say with where which of them you want"
            )
        yield
    merged = merge(*runs, key=_rank, reverse=query.is_descending)
    rows: list[Owner] = []
    left = query.skipped + query.size
    while left > 0:
        some_merged = list(islice(merged, min(left, LOOKS_PER_STEP)))
        if not some_merged:
            break
        left -= len(some_merged)
        rows += [owner for _, owner in some_merged]
        yield
    return rows[query.skipped :], count


def _key(value: Value) -> tuple[bool, Any]:
    """No value is less than any."""
    return value is not None, value.lower() if isinstance(value, str) else value


_rank: Final = itemgetter(0)
