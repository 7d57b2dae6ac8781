"""Operations that answer with a list: their arguments, and the rows that these mean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from artemis_py.errors import BadRequestError
from artemis_py.management.lists.field import NUMBER, TEXT, AnyKind
from artemis_py.management.lists.selection import select
from artemis_py.management.lists.wanted import PAGE_SIZE, PAGE_SIZE_MAX, Wanted, condition_of_artemis, wanted_of
from artemis_py.management.managed import Given, Steps, Work
from artemis_py.management.operation import TEXTS, VIEW, Argument, Operation

PAGE: Final = Argument("page", NUMBER, "which page, from 1; -1 for page and size: all rows", 1)
LISTING: Final = (
    Argument("where", TEXTS, "a condition, such as messageCount>10 or name~orders; all must hold", ()),
    Argument("sort", TEXT, "the field to sort by; with :desc behind it the greatest first", ""),
    PAGE,
    Argument("size", NUMBER, f"rows on a page, at most {PAGE_SIZE_MAX}", PAGE_SIZE),
    Argument("fields", TEXTS, "the fields to show, with commas between; without it, all", ()),
    Argument("options", TEXT, "conditions and order in the JSON of Artemis' lists, instead of where and sort", ""),
)
ALL: Final = -1
"""As page and as size: all rows, as in Artemis."""
_ROWS_MAX: Final = 1 << 62
_SHOWN_MAX: Final = 200


def listing(name: str, path: str, command: str, kind: AnyKind, sentence: str, work: Work) -> Operation:
    """An operation that answers with a list."""
    return Operation(
        name=name,
        right=VIEW,
        method="GET",
        path=path,
        command=command,
        sentence=sentence,
        result=f"count: how many {kind.several} match; page and size; data: those of the page",
        arguments=LISTING,
        lists=kind,
        is_watchable=True,
        work=work,
        mbean=(f"String {name}(String options, int pageNumber=page, int pageSize=size)",),
    )


def selected(kind: AnyKind, owners: Sequence[Any], given: Given) -> Steps:
    """The rows that the arguments of a list mean. Raises BadRequestError."""
    return (yield from select(kind, owners, wanted(kind, given)))


def wanted(kind: AnyKind, given: Given) -> Wanted:
    """Which rows the arguments of a list mean. Raises BadRequestError."""
    where, sort = list(given["where"]), given["sort"]
    fields = [name.strip() for name in chain.from_iterable(text.split(",") for text in given["fields"])]
    page, size = given["page"], given["size"]
    if page == ALL and size == ALL:
        found = replace(wanted_of(kind, where=where, sort=sort, fields=fields), size=_ROWS_MAX)
    else:
        found = wanted_of(kind, where=where, sort=sort, page=page, size=size, fields=fields)
    return found if not given["options"] else _with_options(kind, found, given["options"])


def _with_options(kind: AnyKind, found: Wanted, text: str) -> Wanted:
    """What Artemis' lists take: one condition and one order, each of which may be empty."""
    try:
        options = json.loads(text)
        field, operation = str(options.get("field", "")), str(options.get("operation", ""))
        value = str(options.get("value", ""))
        sort = str(options.get("sortField") or options.get("sortColumn") or "")
        order = str(options.get("sortOrder", "asc"))
    except (ValueError, AttributeError, RecursionError):
        raise BadRequestError(f"options must be a JSON object, not {text[:_SHOWN_MAX]!r}") from None
    if field and operation and value:
        found = replace(found, conditions=(*found.conditions, condition_of_artemis(kind, field, operation, value)))
    if sort not in kind.fields:  # consoles sort by columns of Artemis that a list may lack
        return found
    ordered = wanted_of(kind, sort=f"{sort}:{order.lower()}")
    return replace(found, sort=ordered.sort, is_descending=ordered.is_descending)
