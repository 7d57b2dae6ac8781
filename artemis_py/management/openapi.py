"""The OpenAPI description of the operations, made from their table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from artemis_py.management.listing import FLAG, MAP, NUMBER, TEXT, AnyKind, Field
from artemis_py.management.operation import AMOUNT, LINES, TEXTS, Argument, Operation
from artemis_py.version import VERSION

_TYPES: Final[dict[str, dict[str, Any]]] = {
    TEXT: {"type": "string"},
    NUMBER: {"type": "integer"},
    FLAG: {"type": "boolean"},
    MAP: {"type": "object", "additionalProperties": {"type": "string"}},
    AMOUNT: {"type": ["number", "string"]},
    TEXTS: {"type": "array", "items": {"type": "string"}},
}
_PROBLEM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "error": {"type": "string", "description": "What is wrong, and what to do."},
        "problems": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Of a configuration that is refused: what is wrong in it, each with its file and line.",
        },
    },
    "required": ["error"],
}


_EVENTS: Final[dict[str, Any]] = {
    "operationId": "getEvents",
    "summary": "What happens in the broker, and what changes in the answers to other requests, as it happens.",
    "description": "Command: `artemis-py events --follow`. Permission: `view` on `mops.broker.getEvents`.",
    "x-command": "events",
    "parameters": [
        {
            "name": "type",
            "in": "query",
            "required": False,
            "description": "only notifications of this type",
            "schema": _TYPES[TEXTS],
        },
        {
            "name": "watch",
            "in": "query",
            "required": False,
            "description": "a request, without /api/, whose changing answer is watched",
            "schema": _TYPES[TEXTS],
        },
    ],
    "responses": {
        "200": {
            "description": "server-sent events, without an end",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
    },
}
"""The one request that is no operation: its answer does not end."""


def description_of(operations: Iterable[Operation]) -> dict[str, Any]:
    """The description, as JSON's values."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    paths["/api/events"] = {"get": _EVENTS}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "artemis_py",
            "version": VERSION,
            "description": "Operations of a running broker. Each is a command of artemis-py, too.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": _PROBLEM},
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "token": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{"basic": []}, {"token": []}, {}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.sentence,
        "x-command": operation.command,
        "x-right": operation.right,
        "x-watchable": operation.is_watchable,
        **({"x-destroys": operation.destroys} if operation.destroys else {}),
        "description": f"Command: `artemis-py {operation.command}`. Permission: `{operation.right}` on "
        f"`mops.{operation.permission}`.",
        "responses": {
            "200": {
                "description": operation.result,
                "content": _content(operation),
            },
            "default": {
                "description": "400: it makes no sense; 401: log in; 403: not allowed; 404: it does not exist; "
                "409: not as things are",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
        },
    }
    if operation.arguments:
        described["parameters"] = [
            _parameter(operation, argument)
            for argument in operation.arguments
            if not argument.is_secret and argument.type != LINES
        ]
    if operation.takes_lines:
        (lines,) = (argument for argument in operation.arguments if argument.type == LINES)
        content = {"application/jsonl": {"schema": {"type": "string"}}}
        described["requestBody"] = {"required": True, "description": lines.sentence, "content": content}
    secrets = [argument for argument in operation.arguments if argument.is_secret]
    if secrets:
        described["requestBody"] = _body(secrets)
    return described


def _body(secrets: Sequence[Argument]) -> dict[str, Any]:
    """What has no place in a URL. The body may have the other arguments, too."""
    properties = {
        argument.name: {**_TYPES[argument.type], "format": "password", "description": argument.sentence}
        for argument in secrets
    }
    needed = [argument.name for argument in secrets if argument.is_required]
    schema = {"type": "object", "properties": properties, **({"required": needed} if needed else {})}
    return {"required": bool(needed), "content": {"application/json": {"schema": schema}}}


def _content(operation: Operation) -> dict[str, Any]:
    if operation.is_download:
        return {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return {"application/json": {"schema": schema_of(operation)}}


def _parameter(operation: Operation, argument: Argument) -> dict[str, Any]:
    is_in_path = operation.is_in_path(argument)
    schema = dict(_TYPES[argument.type])
    if not argument.is_required and argument.default not in ("", (), None):
        schema["default"] = argument.default
    return {
        "name": argument.name,
        "in": "path" if is_in_path else "query",
        "required": argument.is_required,
        "description": argument.sentence,
        "schema": schema,
    }


def schema_of(operation: Operation) -> dict[str, Any]:
    """The JSON schema of an answer."""
    if operation.lists is not None:
        properties = {
            "count": {"type": "integer"},
            "page": {"type": "integer"},
            "size": {"type": "integer"},
            "data": {"type": "array", "items": _row(operation.lists, is_whole=False)},
            **{field.name: _field(field) for field in operation.also},
        }
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    if operation.shows is not None:
        return _row(operation.shows, is_whole=True, also=operation.also)
    lists = {name: {"type": "array", "items": _row(kind, is_whole=True)} for name, kind in operation.inside.items()}
    return {"type": "object", **({"properties": lists} if lists else {})}


def _row(kind: AnyKind, *, is_whole: bool, also: Sequence[Field[Any]] = ()) -> dict[str, Any]:
    """A row. A list may be asked for some of the fields alone."""
    properties = {field.name: _field(field) for field in (*kind.fields.values(), *also)}
    required = {"required": list(properties)} if is_whole else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **required}


def _field(field: Field[Any]) -> dict[str, Any]:
    sentence = f"{field.sentence}, in {field.unit}." if field.unit else f"{field.sentence}."
    type = _TYPES[field.type]
    return {
        **(type if field.type != TEXT else {"type": ["string", "null"]}),
        "description": sentence.replace("?,", ",").replace("?.", "?"),
        **({"x-unit": field.unit} if field.unit else {}),
        **({"x-brief": True} if field.is_brief else {}),
    }
