"""What an operation is: its name, arguments and work, and how HTTP and commands reach it.

``arguments_of`` reads the arguments from a request; ``listing`` makes an operation that answers with a list.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from artemis_py.config.secrets_in_text import MASK
from artemis_py.errors import BadRequestError
from artemis_py.management.listing import (
    FLAG,
    NUMBER,
    PAGE_SIZE,
    PAGE_SIZE_MAX,
    TEXT,
    AnyKind,
    Field,
    ListQuery,
    condition_of_artemis,
    query_of,
    select,
)
from artemis_py.management.managed import Arguments, Managed, Result, Steps, Work

REQUIRED: Final = object()
TEXTS: Final = "texts"
"""The type of an argument that may be repeated; the other types are those of fields."""
LINES: Final = "lines"
"""The type of an argument that is the body of the request as it is: lines of an export, in the parts in which it
arrived. It may be as large as messages.
"""
AMOUNT: Final = "amount"
"""The type of an argument that is a number, or a text with a unit such as 10MiB or 5s."""

VIEW: Final = "view"
EDIT: Final = "edit"
"""The permissions of Artemis' management."""


ATTRIBUTES: Final = "attributes"
"""In place of a signature: reading the attributes of the bean is the same."""


BROKER: Final = "broker"
DONE: Final = "done"
"""What the audit log says of a change that counts nothing."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument. ``default`` counts where a request leaves it out; None: there is none. ``is_secret``: it is a
    password, which only a body may have, and which no answer or log repeats.
    """

    name: str
    type: str
    sentence: str
    default: Any = REQUIRED
    is_secret: bool = False
    destroys: str = ""
    """What a flag that is set destroys besides. ``{consumers}`` stands for how many consumers the queue has, or else
    the queues of the address.
    """

    @property
    def is_required(self) -> bool:
        """Must a request have it?"""
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation. ``on`` says on what: ``broker``, or the argument that names it. ``path`` is that of HTTP, and has
    the names of arguments in braces; ``command`` has the words of the command line.

    ``lists`` is the list that it answers with, ``shows`` the kind of one thing; None: the ``result`` says what.
    ``is_download``: the answer is a file, and not JSON.

    ``mbean`` has its signatures in Artemis' beans (``management/artemis/java.py``), for Jolokia and management
    messages; ``no_mbean`` says why it has none.
    """

    name: str
    on: str = BROKER
    right: str
    method: str
    path: str
    command: str
    sentence: str
    result: str
    work: Work
    arguments: Sequence[Argument] = ()
    lists: AnyKind | None = None
    shows: AnyKind | None = None
    destroys: str = ""
    """What is lost for good, for a question that is asked before; empty: nothing. ``{messages}`` stands for how many
    messages the queue has (that match, if there is a filter), or else the queues of the address, and a name in braces
    for that argument.
    """
    previews: str = ""
    """The path of the operation that says what would be ``affected``, for a question before it; empty: none."""
    also: Sequence[Field[Any]] = ()
    """What an answer has besides what it lists, or some of what ``result`` names: with their units, for people."""
    inside: Mapping[str, AnyKind] = field(default_factory=dict)
    """Lists that an answer without a kind may have in it, by name."""
    is_download: bool = False
    permitted_as: str = ""
    """The name of the operation on the same thing whose permission it needs; empty: its own."""
    is_watchable: bool = False
    """May clients of ``/api/events`` have it carried out once a second, to get what changes?"""
    mbean: Sequence[str] = ()
    no_mbean: str = ""

    @property
    def permission(self) -> str:
        """What a security-setting must match behind the prefix, as in Artemis: ``queue.orders.pause``. A name in braces
        is that argument.
        """
        name = self.permitted_as or self.name
        return f"{BROKER}.{name}" if self.on == BROKER else f"{self.on}.{{{self.on}}}.{name}"

    @property
    def id(self) -> str:
        """A name that no other operation has."""
        return self.name if self.on == BROKER else f"{self.on}.{self.name}"

    def begin(self, managed: Managed, arguments: Arguments) -> Steps:
        """Its work, none of which is done before the first step. It raises BrokerError in a step."""
        return (yield from self.work(managed, arguments))

    def masked(self, arguments: Arguments) -> dict[str, Any]:
        """The arguments as others may see them, such as in the audit log."""
        masked_arguments = dict(arguments)
        for argument in self.arguments:
            if argument.is_secret and masked_arguments[argument.name] is not None:
                masked_arguments[argument.name] = MASK
            elif argument.type == LINES:
                masked_arguments[argument.name] = f"{sum(map(len, masked_arguments[argument.name]))} bytes"
        return masked_arguments

    def outcome_of(self, result: Result) -> str:
        """The outcome for the audit log: what the answer counts, or its one word; ``done`` where the answer shows the
        thing that was changed.
        """
        if self.shows is not None or not isinstance(result, Mapping):
            return DONE
        if "result" in result:
            return str(result["result"])
        return ", ".join(_counted(result)) or DONE

    @property
    def takes_lines(self) -> bool:
        """Is the body of its request one of its arguments?"""
        return any(argument.type == LINES for argument in self.arguments)

    def is_in_path(self, argument: Argument) -> bool:
        """Does the path of HTTP name the argument?"""
        return f"{{{argument.name}}}" in self.path


def _counted(answer: Mapping[str, Any]) -> Iterator[str]:
    """Each number with its name; what is 0 only where it comes first. Of numbers by reason or by queue, the sums."""
    for place, (name, value) in enumerate(answer.items()):
        if isinstance(value, Mapping):
            sums = Counter({name: sum(_numbers(value).values())})
            for row in value.values():
                sums.update(_numbers(row) if isinstance(row, Mapping) else {})
            yield from (f"{each} {count}" for each, count in sums.items() if count)
        elif _numbers({name: value}) and (value or not place):
            yield f"{name} {value}"
        elif name == "stoppedBecause" and value:
            yield f"{name}: {value}"


def _numbers(answer: Mapping[str, Any]) -> dict[str, int]:
    return {name: value for name, value in answer.items() if isinstance(value, int) and not isinstance(value, bool)}


# ---- permissions ---------------------------------------------------------------------------------


class Guard(Protocol):
    """The rights of a client. Addresses are without the prefix: ``queue.orders.pause``."""

    def may(self, right: str, address: str) -> bool:
        """Is it permitted?"""

    def demand(self, right: str, address: str) -> None:
        """Raises NotAllowedError if it is not."""


class Open:
    """Permits everything: security is off."""

    def may(self, right: str, address: str) -> bool:
        """Yes."""
        return True

    def demand(self, right: str, address: str) -> None:
        """Nothing is refused."""


# ---- arguments of a request ----------------------------------------------------------------------


_SHOWN_MAX: Final = 100
_NUMBER_MAX: Final = 10**18
_INTEGER: Final = re.compile(r"-?[0-9]+")
_DIGITS: Final = re.compile(r"-?[0-9]{1,18}")
_FLAGS: Final = {"true": True, "false": False}


def arguments_of(operation: Operation, sent: Mapping[str, Sequence[object]]) -> dict[str, Any]:
    """The arguments by name, read from a request. ``sent`` has the values for each name: texts, or values of JSON; None
    counts as left out. Raises BadRequestError.
    """
    known = {argument.name: argument for argument in operation.arguments}
    for name in sent:
        if name not in known:
            raise BadRequestError(f"{operation.id} has no argument {name[:_SHOWN_MAX]!r}; it has {_names(operation)}")
    return {name: _argument(argument, sent.get(name, ())) for name, argument in known.items()}


def _argument(argument: Argument, values: Sequence[object]) -> Any:
    values = [value for value in values if value is not None]
    if not values:
        if argument.is_required:
            raise BadRequestError(f"{argument.name} is missing: {argument.sentence}")
        return argument.default
    if argument.type == LINES:
        return values
    if argument.type == TEXTS:
        return tuple(_text(argument, value) for value in values)
    if len(values) > 1:
        raise BadRequestError(f"{argument.name} was given {len(values)} times")
    return _VALUES.get(argument.type, _text)(argument, values[0])


def _text(argument: Argument, value: object) -> str:
    if not isinstance(value, str):
        raise BadRequestError(f"{argument.name} must be a text, not {_readable(argument, value)}")
    return value


def _number(argument: Argument, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _NUMBER_MAX:
        return value
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    if _INTEGER.fullmatch(str(value)):
        raise BadRequestError(
            f"{argument.name} must be a number of at most 18 digits, not {_readable(argument, value)}"
        )
    raise BadRequestError(f"{argument.name} must be a number, not {_readable(argument, value)!r}")


def _flag(argument: Argument, value: object) -> bool:
    flag = value if isinstance(value, bool) else _FLAGS.get(value.lower()) if isinstance(value, str) else None
    if flag is None:
        raise BadRequestError(f"{argument.name} must be true or false, not {_readable(argument, value)!r}")
    return flag


def _amount(argument: Argument, value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return _text(argument, value)


_VALUES: Final[dict[str, Callable[[Argument, object], object]]] = {NUMBER: _number, FLAG: _flag, AMOUNT: _amount}


def _readable(argument: Argument, value: object) -> str:
    return MASK if argument.is_secret else str(value)[:_SHOWN_MAX]


def _names(operation: Operation) -> str:
    return ", ".join(argument.name for argument in operation.arguments) or "none"


# ---- operations that answer with a list ----------------------------------------------------------


PAGE: Final = Argument("page", NUMBER, "which page, from 1; -1 for page and size: all rows", 1)
LISTING: Final = (
    Argument("where", TEXTS, "a condition, such as messageCount>10 or name~orders; all must hold", ()),
    Argument("sort", TEXT, "the field to sort by; with :desc behind it the greatest first", ""),
    PAGE,
    Argument("size", NUMBER, f"rows on a page, at most {PAGE_SIZE_MAX}", PAGE_SIZE),
    Argument("fields", TEXTS, "the fields to show, with commas between (default: all)", ()),
    Argument("options", TEXT, "conditions and order in the JSON of Artemis' lists, instead of where and sort", ""),
)
ALL: Final = -1
"""As page and as size: all rows, as in Artemis."""
_ROWS_MAX: Final = 1 << 62
_OPTIONS_SHOWN_MAX: Final = 200


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


def select_rows(kind: AnyKind, owners: Sequence[Any], arguments: Arguments) -> Steps:
    """The page of rows that the arguments ask for. Raises BadRequestError."""
    return (yield from select(kind, owners, list_query(kind, arguments)))


def list_query(kind: AnyKind, arguments: Arguments) -> ListQuery:
    """The query that the arguments of a list make. Raises BadRequestError."""
    where, sort = list(arguments["where"]), arguments["sort"]
    page, size = arguments["page"], arguments["size"]
    if page == ALL and size == ALL:
        query = replace(query_of(kind, where=where, sort=sort, fields=arguments["fields"]), size=_ROWS_MAX)
    else:
        query = query_of(kind, where=where, sort=sort, page=page, size=size, fields=arguments["fields"])
    return query if not arguments["options"] else _with_options(kind, query, arguments["options"])


def _with_options(kind: AnyKind, query: ListQuery, text: str) -> ListQuery:
    """What Artemis' lists take: one condition and one order, each of which may be empty."""
    try:
        options = json.loads(text)
        field, operation = str(options.get("field", "")), str(options.get("operation", ""))
        value = str(options.get("value", ""))
        sort = str(options.get("sortField") or options.get("sortColumn") or "")
        order = str(options.get("sortOrder", "asc"))
    except (ValueError, AttributeError, RecursionError):
        raise BadRequestError(f"options must be a JSON object, not {text[:_OPTIONS_SHOWN_MAX]!r}") from None
    if field and operation and value:
        query = replace(query, conditions=(*query.conditions, condition_of_artemis(kind, field, operation, value)))
    if sort not in kind.fields:  # consoles sort by columns of Artemis that a list may lack
        return query
    ordered = query_of(kind, sort=f"{sort}:{order.lower()}")
    return replace(query, sort=ordered.sort, is_descending=ordered.is_descending)
