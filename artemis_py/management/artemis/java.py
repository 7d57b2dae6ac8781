"""Operations of Artemis' beans as Java has them: their signatures, the results that they return, and their errors.

A signature is written in one line beside our own operation. ``boolean moveMessage(long messageID=message, String
otherQueueName=to) -> moved`` reads: the operation ``moveMessage`` takes a number, which is our argument ``message``,
and a text, our argument ``to``. Its answer is what our result has under ``moved``. A parameter without ``=`` is the
argument of the same name (``maxConsumers`` is ``max-consumers``). ``=_``: it is taken and means nothing. ``={}``: it is
a JSON object that has our arguments by name, and with ``={name=queue}`` its ``name`` is our ``queue``. Without ``->``
the type says what the answer is: nothing for ``void``, whether it was done for ``boolean``, the result as JSON in a
text for ``String``, and rows for ``CompositeData[]`` and ``Map[]``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from artemis_py.errors import ArtemisError, BadRequestError, BrokerError, NotAllowedError, NotFoundError
from artemis_py.management.listing import Selection
from artemis_py.management.managed import Download, Lines, Result
from artemis_py.units import parse_long

# ---- errors: a status as in HTTP, and the name of an exception's class -----------------------------------------------

_ILLEGAL: Final = "java.lang.IllegalArgumentException"
_QUEUE_IS_MISSING: Final = "AMQ229017"
_EXISTS: Final = {"createQueue": "AMQ229019", "createAddress": "AMQ229204"}
"""Codes by which tools recognise that nothing is left to do."""


class JavaError(ArtemisError):
    """``status`` as in HTTP; ``type`` is the class that Java would throw."""

    def __init__(self, status: int, type: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.type = type


def illegal(text: str) -> JavaError:
    """Something that makes no sense was asked for."""
    return JavaError(400, _ILLEGAL, text)


def no_instance(name: str) -> JavaError:
    """There is no bean of this name."""
    return JavaError(404, "javax.management.InstanceNotFoundException", name)


def no_attribute(text: str) -> JavaError:
    """A bean lacks an attribute, or the attribute is read-only."""
    return JavaError(404, "javax.management.AttributeNotFoundException", text)


def no_number(text: str) -> JavaError:
    """A text stands where a number belongs."""
    return JavaError(400, "java.lang.NumberFormatException", f'For input string: "{text}"')


def failed(error: BrokerError, operation: str = "") -> JavaError:
    """What an operation of this name, or something else, failed with."""
    text = str(error)
    if isinstance(error, NotAllowedError):
        return JavaError(403, "java.lang.SecurityException", text)
    if isinstance(error, BadRequestError):
        return illegal(text)
    if isinstance(error, NotFoundError):
        if operation == "destroyQueue":
            name = "org.apache.activemq.artemis.api.core.ActiveMQNonExistentQueueException"
            return JavaError(500, name, f"{_QUEUE_IS_MISSING}: {text}")
        return JavaError(404, "javax.management.InstanceNotFoundException", text)
    code = _EXISTS.get(operation) if "already exists" in text else None
    return JavaError(500, "java.lang.IllegalStateException", text if code is None else f"{code}: {text}")


# ---- signatures ------------------------------------------------------------------------------------------------------

NOTHING: Final = "_"

_JAVA: Final = {
    "String": "java.lang.String",
    "Long": "java.lang.Long",
    "Integer": "java.lang.Integer",
    "Boolean": "java.lang.Boolean",
    "Map": "java.util.Map",
    "Object": "java.lang.Object",
    "CompositeData": "javax.management.openmbean.CompositeData",
}
_PLAIN: Final = frozenset({"void", "boolean", "int", "long", "double", "float"})
_SIGNATURE: Final = re.compile(r"([\w\[\]]+) (\w+)\((.*?)\)(?: -> ([\w-]+))?")
_PARAMETER: Final = re.compile(r"([\w\[\]]+) (\w+)(?:=(_|{[\w=-]*}|[\w-]+))?")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])[A-Z]+")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its type as Java names it, its name, and our argument, ``_`` or ``{…}``."""

    type: str
    name: str
    argument: str

    @property
    def is_by_name(self) -> bool:
        """Has it our arguments by name?"""
        return self.argument.startswith("{")

    @property
    def renamed(self) -> tuple[str, str]:
        """A name in it, and our argument of another name; both are empty without one."""
        name, _, argument = self.argument[1:-1].partition("=")
        return name, argument


@dataclass(frozen=True)
class Signature:
    """``returns`` is a type as Java names it; ``key`` says which value of our result is the answer, None: the type."""

    returns: str
    name: str
    parameters: Sequence[Parameter]
    key: str | None

    @cached_property
    def types(self) -> str:
        """The types of the parameters, with commas between."""
        return ",".join(one.type for one in self.parameters)


def signature_of(text: str) -> Signature:
    """Read a signature. Raises ValueError: the line in the table is wrong."""
    match = _SIGNATURE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a signature")
    parameters = [_parameter(text, one.strip()) for one in match[3].split(",")] if match[3] else []
    return Signature(java_type(match[1]), match[2], parameters, match[4])


def java_type(name: str) -> str:
    """A type as Java names it. Raises ValueError."""
    one = name.removesuffix("[]")
    if one not in _JAVA and one not in _PLAIN:
        raise ValueError(f"{name!r} is not a type that is known here")
    return f"[L{_JAVA[one]};" if name.endswith("[]") else _JAVA.get(one, one)


def _parameter(text: str, part: str) -> Parameter:
    match = _PARAMETER.fullmatch(part)
    if match is None:
        raise ValueError(f"{part!r} in {text!r} is not a parameter")
    return Parameter(java_type(match[1]), match[2], match[3] or _HUMP.sub(lambda hump: f"-{hump[0]}", match[2]).lower())


# ---- arguments by position -----------------------------------------------------------------------


_SHOWN_MAX: Final = 100


def arguments_by_name(signature: Signature, values: Sequence[Any]) -> dict[str, Sequence[object]]:
    """Values by position as values for our arguments, each of the type in the signature. Raises JavaError."""
    arguments: dict[str, Sequence[object]] = {}
    for parameter, value in zip(signature.parameters, typed(signature, values), strict=True):
        if parameter.is_by_name:
            arguments |= _object(parameter, value)
        elif parameter.argument != NOTHING:
            arguments[parameter.argument] = value if isinstance(value, list) else [value]
    return arguments


def typed(signature: Signature, values: Sequence[Any]) -> list[Any]:
    """The values, each of its type. Raises JavaError."""
    return [_typed(parameter, value) for parameter, value in zip(signature.parameters, values, strict=True)]


def _typed(parameter: Parameter, value: Any) -> Any:
    if value is None:
        return None
    convert = _CONVERTERS.get(parameter.type)
    return value if convert is None else convert(value)


def _number(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = str(value)
    try:
        return parse_long(text)
    except ValueError:
        raise no_number(text[:_SHOWN_MAX]) from None


def _flag(value: Any) -> bool:
    """As in Java, every other text is false."""
    return value if isinstance(value, bool) else str(value).lower() == "true"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _map(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value
    try:
        parsed = json.loads(str(value))
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise illegal(f"{str(value)[:_SHOWN_MAX]!r} is not a JSON object")
    return parsed


_CONVERTERS: Final[dict[str, Callable[[Any], Any]]] = {
    "int": _number, "long": _number, "java.lang.Integer": _number, "java.lang.Long": _number,
    "boolean": _flag, "java.lang.Boolean": _flag, "java.lang.String": _text, "java.util.Map": _map,
}  # fmt: skip


def _object(parameter: Parameter, value: Any) -> dict[str, Sequence[object]]:
    if value is None:
        raise illegal(f"{parameter.name} must be a JSON object, not null")
    known, ours = parameter.renamed
    sent = {ours if known and name == known else name: one for name, one in _map(value).items()}
    return {name: one if isinstance(one, list) else [one] for name, one in sent.items()}


_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])[A-Z]")


# ---- results: many lists are JSON in a text, with texts as values ----------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class RowsInText:
    """A text that has rows as JSON, made while it is sent."""

    pieces: Iterator[str]


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """A list, made while it is sent, some values at a time."""

    pieces: Iterator[list[Any]]


def value_of(signature: Signature, result: Result) -> Any:
    """The answer: a value of JSON, ``Items`` or ``RowsInText``."""
    returns, key = signature.returns, signature.key
    if returns == "void":
        return None
    if isinstance(result, Selection):
        if returns.startswith("["):
            return Items(result.rows())
        if returns == "java.lang.String":
            return RowsInText(_list(result) if key == "data" else _page(result))
        return result.count
    answer: Any = result if key is None or isinstance(result, Download | Lines) else result[key]
    if returns == "boolean":
        return True if key is None else bool(answer)
    if returns == "java.lang.String" and not isinstance(answer, str):
        return compact_json(
            {_kebab(name): value for name, value in answer.items()} if isinstance(answer, dict) else answer
        )
    return answer


def _kebab(name: str) -> str:
    """A name as Artemis writes it in the JSON of a queue: ``max-consumers``."""
    return _CAPITAL.sub(lambda hump: f"-{hump[0].lower()}", name)


def _page(selection: Selection[Any]) -> Iterator[str]:
    yield '{"data":['
    separator = ""
    for rows in selection.rows():
        yield separator + ",".join(compact_json({name: text_of(value) for name, value in row.items()}) for row in rows)
        separator = ","
    yield f"],{compact_json({'count': selection.count, **selection.extra})[1:]}"


def _list(selection: Selection[Any]) -> Iterator[str]:
    yield "["
    separator = ""
    for rows in selection.rows():
        yield separator + ",".join(compact_json(selection.kind.as_artemis(row)) for row in rows)
        separator = ","
    yield "]"


def compact_json(value: Any) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_of(value: Any) -> str:
    """A value as a text, as Java writes it; empty for null."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
