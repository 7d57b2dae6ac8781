"""The arguments of an operation, from what a client sent: each of its type, and all of them there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from artemis_py.config.secrets_in_text import MASK
from artemis_py.errors import BadRequestError
from artemis_py.management.lists.field import FLAG, NUMBER
from artemis_py.management.operation import AMOUNT, LINES, TEXTS, Argument, Operation

_SHOWN_MAX: Final = 100
_NUMBER_MAX: Final = 10**18
_INTEGER: Final = re.compile(r"-?[0-9]+")
_DIGITS: Final = re.compile(r"-?[0-9]{1,18}")
_FLAGS: Final = {"true": True, "false": False}


def given_of(operation: Operation, sent: Mapping[str, Sequence[object]]) -> dict[str, Any]:
    """The arguments by name. ``sent`` has what was given for each: texts, or values of JSON; None is not given. Raises
    BadRequestError.
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
        raise BadRequestError(f"{argument.name} is a text, and {_shown(argument, value)} is none")
    return value


def _number(argument: Argument, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _NUMBER_MAX:
        return value
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    if _INTEGER.fullmatch(str(value)):
        raise BadRequestError(
            f"{argument.name} is a number of at most 18 digits, and {_shown(argument, value)} has more"
        )
    raise BadRequestError(f"{argument.name} is a number, and {_shown(argument, value)!r} is none")


def _flag(argument: Argument, value: object) -> bool:
    found = value if isinstance(value, bool) else _FLAGS.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise BadRequestError(f"{argument.name} is true or false, and not {_shown(argument, value)!r}")
    return found


def _amount(argument: Argument, value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return _text(argument, value)


_VALUES: Final[dict[str, Callable[[Argument, object], object]]] = {NUMBER: _number, FLAG: _flag, AMOUNT: _amount}


def _shown(argument: Argument, value: object) -> str:
    return MASK if argument.is_secret else str(value)[:_SHOWN_MAX]


def _names(operation: Operation) -> str:
    return ", ".join(argument.name for argument in operation.arguments) or "none"
