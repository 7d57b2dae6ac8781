"""What a client wants to watch: the request of a look operation, without ``/api/``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from artemis_py.errors import BadRequestError, NotFoundError
from artemis_py.management.given import given_of
from artemis_py.management.operation import Operation
from artemis_py.management.table import OPERATIONS

ROWS_MAX: Final = 200
"""The largest page that can be watched."""
_ROOT: Final = "/api/"
_SHOWN_MAX: Final = 200
_ARGUMENTS_MAX: Final = 50
_WATCHABLE: Final = {one.path[len(_ROOT) :]: one for one in OPERATIONS if one.is_watchable}


@dataclass(frozen=True, slots=True)
class Topic:
    """What is watched. ``text`` is as the client wrote it; ``permission`` is what it takes."""

    text: str
    operation: Operation
    given: Mapping[str, Any]
    permission: str


def topic_of(text: str) -> Topic:
    """What a text asks for. Raises NotFoundError and BadRequestError."""
    path, _, query = text.partition("?")
    found = _operation_of(path.split("/"))
    if found is None:
        known = ", ".join(sorted(_WATCHABLE))
        raise NotFoundError(f"there is nothing to watch at {text[:_SHOWN_MAX]!r}; there is {known}")
    operation, parts = found
    try:
        sent: dict[str, Sequence[object]] = {
            **parse_qs(query, keep_blank_values=True, errors="strict", max_num_fields=_ARGUMENTS_MAX),
            **{name: [value] for name, value in parts.items()},
        }
    except ValueError:
        raise BadRequestError(f"{text[:_SHOWN_MAX]!r} has too many arguments, or is no UTF-8") from None
    given = given_of(operation, sent)
    if operation.lists is not None:
        key = next(iter(operation.lists.fields))
        fields = [name.strip() for name in chain.from_iterable(one.split(",") for one in given["fields"])]
        if fields and key not in fields:
            given["fields"] = (key, *fields)
        if not 1 <= given["size"] <= ROWS_MAX:
            raise BadRequestError(f"size must be 1 to {ROWS_MAX} for a list that is watched, not {given['size']}")
    permission = operation.permission
    for name, value in parts.items():
        permission = permission.replace(f"{{{name}}}", value)
    return Topic(text, operation, given, permission)


def _operation_of(parts: Sequence[str]) -> tuple[Operation, dict[str, str]] | None:
    for path, operation in _WATCHABLE.items():
        pattern = path.split("/")
        if len(pattern) == len(parts) and all(parts):
            pairs = list(zip(pattern, parts, strict=True))
            if all(wanted.startswith("{") or wanted == part for wanted, part in pairs):
                return operation, {wanted[1:-1]: unquote(part) for wanted, part in pairs if wanted.startswith("{")}
    return None
