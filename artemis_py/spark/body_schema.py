"""JSON Schemas of bodies, as Spark SQL: the columns of a body, and what is wrong with one.

Spark's ``from_json`` reads the bodies, so the types are Spark's: integer is BIGINT, number DOUBLE, a string with the
format date-time TIMESTAMP, with date DATE. What a schema says beyond that and that SQL does not check is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from artemis_py.errors import PipelineError

_CORRUPT: Final = "_corrupt"
"""Where ``from_json`` puts a body that it could not read completely."""
_BODY: Final = "_body"
SETTING: Final = "spark.artemis.bodies"
"""Spark's setting with the place of the schemas."""
METADATA: Final = "_metadata"
"""The column with what the log knows of a message; Spark's files have their metadata under this name."""
_NOTES: Final = frozenset(
    {
        "$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples",
        "deprecated", "readOnly", "writeOnly", "additionalProperties",
    }
)  # fmt: skip
"""Keywords that change no column. Properties that the schema does not name are left out in any case."""
_OF_TYPE: Final = {
    "object": {"properties", "required"},
    "array": {"items"},
    "string": {"format", "enum"},
    "integer": {"enum"},
    "number": {"enum"},
    "boolean": set(),
}
_NAMES: Final = {"integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN", "string": "STRING"}
_FORMATS: Final = {"date-time": "TIMESTAMP", "date": "DATE"}
"""Other formats are texts."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """One value: its type in SQL and in words, and what it may be."""

    sql: str
    kind: str
    is_nullable: bool
    fields: Mapping[str, _Shape]
    """Of an object."""
    required: frozenset[str]
    item: _Shape | None
    """Of an array."""
    enum: tuple[str | int | float, ...]


@dataclass(frozen=True, slots=True)
class BodySchema:
    """What the bodies of an address are."""

    shape: _Shape

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in the order of the schema."""
        return tuple(self.shape.fields)

    def views(self, table: str, log_columns: tuple[str, ...]) -> tuple[str, str]:
        """Two queries over a table of messages: the bodies as columns, and the messages whose bodies are not of the
        schema, with the reason in ``error``.
        """
        fields = [f"{_quoted(name)} {shape.sql}" for name, shape in self.shape.fields.items()]
        ddl = ", ".join([*fields, f"{_quoted(_CORRUPT)} STRING"])
        body = f"from_json(_text, {_text(ddl)}, map('columnNameOfCorruptRecord', '{_CORRUPT}'))"
        rows = f"SELECT *, cast(value AS STRING) AS _text FROM {table}"
        rows = f"SELECT *, {body} AS {_BODY} FROM ({rows})"
        rows = f"SELECT *, {self._error} AS _error FROM ({rows})"
        log = ", ".join(map(_quoted, log_columns))
        columns = ", ".join(f"{_BODY}.{_quoted(name)}" for name in self.columns)
        return (
            f"SELECT {columns}, struct({log}) AS {METADATA} FROM ({rows}) WHERE _error IS NULL",
            f"SELECT _error AS error, {log} FROM ({rows}) WHERE _error IS NOT NULL",
        )

    @property
    def _error(self) -> str:
        """What is wrong with a body, as an expression; null: nothing."""
        wrong = [*_wrong_types(self.shape, _BODY, "$", ""), "'a value has another type than the schema says'"]
        cases = [
            r"WHEN _text IS NULL OR NOT _text RLIKE r'^\s*[{]' THEN 'the body is no JSON object'",
            # from_json reads the first value, and does not mind what follows it.
            "WHEN NOT json_array_length(concat('[', _text, ']')) <=> 1 THEN 'the body is no JSON'",
            f"WHEN {_BODY}.{_CORRUPT} IS NOT NULL THEN coalesce({', '.join(wrong)})",
            *(f"WHEN {broken} THEN {_text(what)}" for broken, what in _rules(self.shape, _BODY, "")),
        ]
        return f"CASE {' '.join(cases)} END"


def configured_schemas(place: str) -> dict[str, BodySchema]:
    """The schemas of addresses that a setting names: a directory with a file ``ADDRESS.json`` for each, or a file with
    a JSON object of schemas, or of names of files beside it, by address. Raises PipelineError.
    """
    path = Path(place)
    if path.is_dir():
        found = {file.name.removesuffix(".json"): read_schema(file) for file in sorted(path.glob("*.json"))}
        if not found:
            raise PipelineError(f"{SETTING} names {place}, which has no file ADDRESS.json with a JSON Schema")
        return found
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise PipelineError(
            f"{SETTING} names {place}, which is neither a directory nor a file with a JSON object: {error}"
        ) from None
    if not isinstance(document, Mapping) or not all(isinstance(one, (str, Mapping)) for one in document.values()):
        raise PipelineError(
            f"{SETTING} names {place}, which must have a schema, or the name of a file, for each address"
        )
    return {
        address: read_schema(path.parent / one) if isinstance(one, str) else read_schema(one, f"{place}: {address}")
        for address, one in document.items()
    }


def read_schema(source: str | Path | Mapping[str, Any], name: str | None = None) -> BodySchema:
    """The schema in a file, or one that was parsed, which errors call by this name. Raises PipelineError with the
    keyword and its place if SQL cannot say what it says.
    """
    name = name or ("the schema" if isinstance(source, Mapping) else str(source))
    if isinstance(source, Mapping):
        document: Any = source
    elif name.endswith((".avsc", ".avro")):
        raise PipelineError(
            f"{name}: bodies are described by a JSON Schema. For Avro start Spark with its package spark-avro, and use "
            "its function: SELECT from_avro(value, '…') AS body FROM the table of the address"
        )
    else:
        try:
            document = json.loads(Path(source).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise PipelineError(f"{name}: cannot be read as a JSON Schema: {error}") from None
    shape = _Reading(name, document).shape(document, "#", ())
    if shape.kind != "object" or not shape.fields:
        raise PipelineError(f"{name}: # must be an object with properties, which become the columns")
    taken = {METADATA, _CORRUPT} & {column.lower() for column in shape.fields}
    if taken:
        raise PipelineError(f"{name}: #/properties has {taken.pop()}, a name that the views need themselves")
    return BodySchema(shape)


# ---- reading ---------------------------------------------------------------------------------------------------------


class _Reading:
    """Reads one document."""

    def __init__(self, name: str, document: Any) -> None:
        self._name = name
        self._document = document

    def shape(self, node: Any, place: str, within: tuple[str, ...]) -> _Shape:
        """The value that a schema describes. ``within`` are the references that lead here."""
        if not isinstance(node, Mapping):
            raise self._refusal(place, "must be a schema, in braces")
        if "$ref" in node:
            return self._referred(node["$ref"], place, within)
        for word in ("anyOf", "oneOf"):
            if word in node:
                return self._choice(node[word], f"{place}/{word}", within)
        kind, is_nullable = self._kind(node, place)
        for word in node:
            if word not in _NOTES and word != "type" and word not in _OF_TYPE[kind]:
                known = ", ".join(sorted({"type", "$ref", "anyOf"} | _OF_TYPE[kind]))
                raise self._refusal(f"{place}/{word}", f"is not supported here; supported for {kind}: {known}")
        if kind == "object":
            return self._object(node, place, within, is_nullable=is_nullable)
        if kind == "array":
            item = self.shape(node.get("items"), f"{place}/items", within)
            return _Shape(f"ARRAY<{item.sql}>", kind, is_nullable, {}, frozenset(), item, ())
        sql = _FORMATS.get(node.get("format", ""), _NAMES[kind]) if kind == "string" else _NAMES[kind]
        return _Shape(sql, kind, is_nullable, {}, frozenset(), None, self._enum(node, place, sql))

    def _kind(self, node: Mapping[str, Any], place: str) -> tuple[str, bool]:
        given = node.get("type", "object" if "properties" in node else None)
        kinds = [given] if isinstance(given, str) else given
        if not isinstance(kinds, list) or not all(kind in (*_OF_TYPE, "null") for kind in kinds):
            raise self._refusal(f"{place}/type", f"is {given!r}; supported: {', '.join(_OF_TYPE)}, also with null")
        found = [kind for kind in kinds if kind != "null"]
        if len(found) != 1:
            raise self._refusal(f"{place}/type", "must be one type, also with null: a column has one type")
        return found[0], len(found) < len(kinds)

    def _object(self, node: Mapping[str, Any], place: str, within: tuple[str, ...], *, is_nullable: bool) -> _Shape:
        properties = node.get("properties", {})
        fields = {name: self.shape(one, f"{place}/properties/{name}", within) for name, one in properties.items()}
        if not fields:
            raise self._refusal(place, "is an object without properties, of which there can be no columns")
        if len({name.lower() for name in fields}) < len(fields):
            raise self._refusal(f"{place}/properties", "has names that differ in case only; Spark takes them for one")
        required = frozenset(node.get("required", ()))
        if required - fields.keys():
            raise self._refusal(f"{place}/required", f"names {sorted(required - fields.keys())[0]}, no property")
        inner = ", ".join(f"{_quoted(name)}: {one.sql}" for name, one in fields.items())
        return _Shape(f"STRUCT<{inner}>", "object", is_nullable, fields, required, None, ())

    def _choice(self, choices: Any, place: str, within: tuple[str, ...]) -> _Shape:
        """Something, or null, as generators write it."""
        others = [one for one in choices if one != {"type": "null"}]
        if len(others) != 1:
            raise self._refusal(place, "must be one schema, or null: a column has one type")
        shape = self.shape(others[0], f"{place}/{choices.index(others[0])}", within)
        return replace(shape, is_nullable=shape.is_nullable or len(others) < len(choices))

    def _referred(self, reference: Any, place: str, within: tuple[str, ...]) -> _Shape:
        if reference in within:
            raise self._refusal(f"{place}/$ref", "leads back to itself; a column has an end")
        node = self._document
        parts = str(reference).split("/")
        for part in parts[1:]:
            node = node.get(part) if isinstance(node, Mapping) else None
        if parts[0] != "#" or node is None:
            raise self._refusal(f"{place}/$ref", f"is {reference!r}, which is not in this file")
        return self.shape(node, str(reference), (*within, reference))

    def _enum(self, node: Mapping[str, Any], place: str, sql: str) -> tuple[str | int | float, ...]:
        values = tuple(one for one in node.get("enum", ()) if one is not None)
        wanted = str if sql == "STRING" else (int, float)
        if values and (sql in _FORMATS.values() or not all(isinstance(one, wanted) for one in values)):
            raise self._refusal(f"{place}/enum", "must have values of the type")
        return values

    def _refusal(self, place: str, what: str) -> PipelineError:
        return PipelineError(f"{self._name}: {place} {what}")


# ---- conditions ------------------------------------------------------------------------------------------------------


def _wrong_types(shape: _Shape, value: str, path: str, name: str) -> list[str]:
    """Expressions, each null unless a property is there and could not be read."""
    found: list[str] = []
    for field, one in shape.fields.items():
        inner, inner_path, inner_name = _below(value, path, name, field)
        there = f"{inner} IS NULL AND get_json_object(_text, {_text(inner_path)}) IS NOT NULL"
        what = f"{inner_name} is no {one.kind}" if one.sql not in _FORMATS.values() else f"{inner_name} is no date"
        if one.kind == "object":
            found += _wrong_types(one, inner, inner_path, inner_name)
        found.append(f"CASE WHEN {there} THEN {_text(what)} END")
    return found


def _rules(shape: _Shape, value: str, name: str) -> list[tuple[str, str]]:
    """What may not be true of a value, and the words for it."""
    found: list[tuple[str, str]] = []
    for field, one in shape.fields.items():
        inner, _, inner_name = _below(value, "", name, field)
        if field in shape.required and not one.is_nullable:
            found.append((f"{value} IS NOT NULL AND {inner} IS NULL", f"{inner_name} is missing"))
        found += _rules_of(one, inner, inner_name)
    return found


def _rules_of(shape: _Shape, value: str, name: str) -> list[tuple[str, str]]:
    if shape.enum:
        allowed = ", ".join(_text(one) if isinstance(one, str) else repr(one) for one in shape.enum)
        return [(f"{value} NOT IN ({allowed})", f"{name} is none of {', '.join(map(str, shape.enum))}")]
    if shape.item is not None:
        variable = f"x{len(name)}"  # one of its own on each level
        return [
            (f"exists({value}, {variable} -> {broken})", what)
            for broken, what in _rules_of(shape.item, variable, f"{name}[]")
        ]
    return _rules(shape, value, name)


def _below(value: str, path: str, name: str, field: str) -> tuple[str, str, str]:
    return f"{value}.{_quoted(field)}", f"{path}['{field}']", f"{name}.{field}" if name else field


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
