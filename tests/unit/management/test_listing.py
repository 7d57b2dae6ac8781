"""Which rows of a list are found: conditions, order, pages, fields, and what is said of nonsense."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from unittest.mock import Mock

import pytest

from artemis_py.errors import BadRequestError
from artemis_py.management import listing
from artemis_py.management.listing import (
    FLAG,
    NUMBER,
    TEXT,
    Field,
    Kind,
    ListQuery,
    Row,
    condition_of_artemis,
    query_of,
    select,
)


class Thing(NamedTuple):
    name: str
    size: int
    is_big: bool
    owner: str | None


THINGS: Final[Kind[Thing]] = Kind(
    "thing",
    "things",
    [
        Field("name", TEXT, "Its name", lambda it: it.name),
        Field("size", NUMBER, "Its size", lambda it: it.size),
        Field("isBig", FLAG, "Is it big?", lambda it: it.is_big),
        Field("owner", TEXT, "Whose it is", lambda it: it.owner),
    ],
)


def rows_of(things: Sequence[Thing], wanted: ListQuery) -> tuple[list[Row], int]:
    """The page, and how many match."""
    work = select(THINGS, things, wanted)
    try:
        while True:
            next(work)
    except StopIteration as ended:
        found = ended.value
    return [row for some in found.rows() for row in some], found.count


def some_things(rng: random.Random, count: int) -> list[Thing]:
    """Things, of which several are alike."""
    return [
        Thing(f"Thing {rng.randrange(50)}", rng.randrange(20), rng.random() < 0.5, rng.choice([None, "ann", "Bob"]))
        for _ in range(count)
    ]


@pytest.mark.parametrize("count", [0, 1, 249, 250, 251, 1300])
@pytest.mark.parametrize("sort", ["", "name", "size:desc", "owner", "owner:desc", "isBig:asc"])
def test_a_page_is_what_sorting_all_would_give(count: int, sort: str, rng: random.Random) -> None:
    """Also in which order those come that are equal."""
    things = some_things(rng, count)
    by, _, order = sort.partition(":")

    def key(thing: Thing) -> Any:
        value = THINGS.fields[by].read(thing)
        return value is not None, value.lower() if isinstance(value, str) else value

    matching = [thing for thing in things if thing.size > 4 and "thing 1" in thing.name.lower()]
    if by:
        matching.sort(key=key, reverse=order == "desc")
    pages: list[Row] = []
    for page in range(1, 100):
        wanted = query_of(THINGS, where=["size>4", "name~THING 1"], sort=sort, page=page, size=7)
        rows, total = rows_of(things, wanted)
        assert total == len(matching)
        pages += rows
        if len(rows) < 7:
            break
    assert pages == [THINGS.row(thing) for thing in matching]


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("size=3", "b"), ("size!=3", "ac"), ("size>3", "c"), ("size<3", "a"), ("size>=3", "bc"), ("size<=3", "ab"),
        ("name=B", ""), ("name=b", "b"), ("name!=b", "ac"), ("name~B", "b"), ("name!~b", "ac"),
        ("isBig=true", "c"), ("isBig!=true", "ab"), ("owner=ann", "a"), ("owner!=ann", "bc"), ("owner~a", "a"),
        ("owner!~x", "abc"), (" size  > 3", "c"), ("name=", ""),
    ],
)  # fmt: skip
def test_conditions(condition: str, names: str) -> None:
    things = [Thing("a", 1, False, "ann"), Thing("b", 3, False, None), Thing("c", 9, True, "cid")]
    rows, count = rows_of(things, query_of(THINGS, where=[condition]))
    assert ("".join(str(row["name"]) for row in rows), count) == (names, len(names))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"where": ["size"]}, "'size' is not a condition; write FIELD OPERATOR VALUE, as in size>0"),
        ({"where": ["siez>1"]}, "a thing has no field 'siez'; did you mean size?"),
        ({"where": ["x>1"]}, "a thing has no field 'x'; there are name, size, isBig, owner"),
        ({"where": ["size>big"]}, "size must be a number, not 'big'"),
        ({"where": ["size>1_0"]}, "size must be a number, not '1_0'"),
        ({"where": ["size>٣"]}, "size must be a number, not '٣'"),
        ({"where": ["size~1"]}, "size is a number: compare it with =, !=, >, <, >=, <=, not ~"),
        ({"where": ["isBig=yes"]}, "isBig must be true or false, not 'yes'"),
        ({"where": ["name>a"]}, "name is a text: compare it with =, !=, ~, !~, not >"),
        ({"sort": "size:down"}, "sort must be FIELD, FIELD:asc or FIELD:desc, not 'size:down'"),
        ({"sort": "nam"}, "a thing has no field 'nam'; did you mean name?"),
        ({"fields": ["name", ""]}, "a thing has no field ''; there are name, size, isBig, owner"),
        ({"page": 0}, "page must be 1 or more, not 0"),
        ({"size": 1001}, "size must be a number from 1 to 1000, not 1001"),
        ({"size": 0}, "size must be a number from 1 to 1000, not 0"),
    ],
)
def test_what_makes_no_sense(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        query_of(THINGS, **asked)
    assert str(refused.value) == said


def test_the_words_of_artemis() -> None:
    things = [Thing("a", 1, False, None), Thing("b", 3, False, None)]
    for operation, value, names in (("GREATER_THAN", "2", "b"), ("less_than", "2", "a"), ("EQUALS", "3", "b")):
        condition = condition_of_artemis(THINGS, "size", operation, value)
        rows, _ = rows_of(things, ListQuery((condition,)))
        assert [row["name"] for row in rows] == list(names)
    with pytest.raises(BadRequestError, match="operation must be one of CONTAINS, "):
        condition_of_artemis(THINGS, "size", "LIKE", "2")


def test_only_the_fields_that_are_wanted() -> None:
    rows, _ = rows_of([Thing("a", 1, False, None)], query_of(THINGS, fields=["size", "name"]))
    assert rows == [{"size": 1, "name": "a"}]
    assert list(rows[0]) == ["size", "name"]


def test_it_does_not_sort_any_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "SORTED_MAX", 600)
    things = [Thing(f"{number}", number, number < 600, None) for number in range(700)]
    with pytest.raises(BadRequestError, match="more than 600 things would have to be sorted; say with where"):
        rows_of(things, query_of(THINGS, sort="size"))
    rows, count = rows_of(things, query_of(THINGS, sort="size:desc", where=["isBig=true"], size=2))
    assert ([row["size"] for row in rows], count) == ([599, 598], 600)
    assert rows_of(things, query_of(THINGS, page=7))[1] == 700


def test_no_step_looks_at_many(rng: random.Random) -> None:
    """However many there are, each step reads some hundreds of values."""
    size = Mock(side_effect=lambda thing: thing.size)
    kind = Kind("thing", "things", [Field("size", NUMBER, "Its size", size)])
    most = before = 0
    for _ in select(kind, some_things(rng, 5000), query_of(kind, where=["size>1"], sort="size", page=3)):
        most = max(most, size.call_count - before)
        before = size.call_count
    assert 0 < most <= 2 * listing.LOOKS_PER_STEP
