"""The arguments of an operation, from what a client sent: each of its type, and all of them there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from artemis_py.errors import BadRequestError
from artemis_py.management.lists.field import NUMBER
from artemis_py.management.operation import TEXTS, Argument, Operation

_SHOWN_MAX: Final = 100
_DIGITS_MAX: Final = 18


def given_of(operation: Operation, sent: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The arguments by name. ``sent`` has the texts that were given for each. Raises BadRequestError."""
    known = {argument.name: argument for argument in operation.arguments}
    for name in sent:
        if name not in known:
            raise BadRequestError(f"{operation.id} has no argument {name[:_SHOWN_MAX]!r}; it has {_names(operation)}")
    return {name: _value(argument, sent.get(name, ())) for name, argument in known.items()}


def _value(argument: Argument, texts: Sequence[str]) -> Any:
    if not texts:
        if argument.is_required:
            raise BadRequestError(f"{argument.name} is missing: {argument.sentence}")
        return argument.default
    if argument.type == TEXTS:
        return tuple(texts)
    if len(texts) > 1:
        raise BadRequestError(f"{argument.name} was given {len(texts)} times")
    text = texts[0]
    if argument.type == NUMBER:
        if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > _DIGITS_MAX:
            raise BadRequestError(f"{argument.name} is a number, and {text[:_SHOWN_MAX]!r} is none")
        return int(text)
    return text


def _names(operation: Operation) -> str:
    return ", ".join(argument.name for argument in operation.arguments) or "none"
