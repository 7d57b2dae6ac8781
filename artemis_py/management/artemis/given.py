"""Arguments by name, from those that a client of a bean gives by position."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from artemis_py.management.artemis.problem import illegal, no_number
from artemis_py.management.artemis.signature import NOTHING, Parameter, Signature
from artemis_py.units import parse_long

_SHOWN_MAX: Final = 100


def arguments_by_name(signature: Signature, values: Sequence[Any]) -> dict[str, Sequence[object]]:
    """What was given for each of our arguments, each of the type that the signature says. Raises JavaError."""
    given: dict[str, Sequence[object]] = {}
    for parameter, value in zip(signature.parameters, typed(signature, values), strict=True):
        if parameter.is_by_name:
            given |= _object(parameter, value)
        elif parameter.argument != NOTHING:
            given[parameter.argument] = value if isinstance(value, list) else [value]
    return given


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
        found = json.loads(str(value))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise illegal(f"{str(value)[:_SHOWN_MAX]!r} is no JSON object")
    return found


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
