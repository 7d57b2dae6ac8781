"""Requests of Jolokia as they are understood, the signatures of operations, and values on their way out."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from artemis_py.management.artemis.java import Items, JavaError, RowsInText, arguments_by_name, signature_of
from artemis_py.management.jolokia import Entries, Options, in_pieces, inner, json_pieces, of_json, of_path

NAME = 'd:a="1"'


# ---- paths -----------------------------------------------------------------------------------------


def test_reading() -> None:
    one = of_path(f"read/{quote(NAME)}/Uptime/a/b", Options())
    assert (one.type, one.attributes, one.is_one, one.path) == ("read", ("Uptime",), True, ("a", "b"))
    assert of_path(f"read/{NAME}", Options()).attributes is None
    assert of_path(f"read/{NAME}/", Options()).attributes is None
    assert of_path(f"read/{NAME}/A,B", Options()).attributes == ("A", "B")
    assert of_path(f"read/{NAME}/A,B", Options()).echo() == {"mbean": NAME, "attribute": ["A", "B"], "type": "read"}


def test_slashes() -> None:
    for text in ('d:a="x!/y"', 'd:a="x%2Fy"'):
        assert of_path(f"read/{quote(text, safe='!%')}/A", Options()).name.properties == {"a": '"x/y"'}
    assert of_path(f"read/{NAME}/A/x!/y!!", Options()).path == ("x/y!",)
    assert of_path(f"read/{NAME}/A/x!/y!!", Options()).echo()["path"] == "x!/y!!"


def test_executing() -> None:
    one = of_path(f'exec/{NAME}/op(int)/1/[null]/""/a%20b', Options())
    assert (one.operation, one.arguments) == ("op(int)", ["1", None, "", "a b"])


@pytest.mark.parametrize("text", ["read", "exec/d:a=1", "write/d:a=1/B", "search", "none/x", "read/x/A"])
def test_paths_that_make_no_sense(text: str) -> None:
    with pytest.raises(JavaError) as caught:
        of_path(text, Options())
    assert caught.value.status == 400


def test_without_a_type_it_is_the_version() -> None:
    assert of_path("", Options()).type == "version"


# ---- JSON ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"type": 7},
        {"type": "read"},
        {"type": "read", "mbean": 7},
        {"type": "read", "mbean": NAME, "attribute": 7},
        {"type": "read", "mbean": NAME, "attribute": [7]},
        {"type": "exec", "mbean": NAME},
        {"type": "exec", "mbean": NAME, "operation": "x", "arguments": {}},
    ],
)
def test_objects_that_make_no_sense(sent: dict[str, Any]) -> None:
    with pytest.raises(JavaError) as caught:
        of_json(sent, Options())
    assert caught.value.status == 400


def test_options_of_a_request_come_before_those_of_the_query() -> None:
    query = Options().changed({"maxDepth": "3", "ignoreErrors": "true", "maxCollectionSize": "x", "unknown": "1"})
    assert (query.depth_max, query.ignores_errors, query.collection_size_max) == (3, True, 0)
    one = of_json({"type": "VERSION", "config": {"maxDepth": 1, "includeRequest": False}}, query)
    assert (one.type, one.options.depth_max, one.options.has_request, one.options.ignores_errors) == (
        "version",
        1,
        False,
        True,
    )


# ---- signatures ------------------------------------------------------------------------------------


def test_a_signature() -> None:
    one = signature_of("boolean moveMessage(long messageID=message, String queueName=to, boolean x=_) -> moved")
    assert (one.name, one.types) == ("moveMessage", "long,java.lang.String,boolean")
    assert (one.returns, one.key) == ("boolean", "moved")
    assert [each.name for each in one.parameters] == ["messageID", "queueName", "x"]
    assert arguments_by_name(one, ["7", 8, True]) == {"message": [7], "to": ["8"]}
    assert arguments_by_name(one, [None, None, None]) == {"message": [None], "to": [None]}


def test_arguments_in_a_json_object() -> None:
    one = signature_of("String updateQueue(String queueConfiguration={}, boolean ignoreIfExists)")
    sent = arguments_by_name(one, ['{"name": "q", "routing-types": ["A", "B"]}', "true"])
    assert sent == {"name": ["q"], "routing-types": ["A", "B"], "ignore-if-exists": [True]}
    for text in ("{", "[]", "7", None):
        with pytest.raises(JavaError):
            arguments_by_name(one, [text, True])


@pytest.mark.parametrize(
    "text", ["", "pause()", "void pause", "void pause(bool x)", "void pause(boolean)", "thing x()"]
)
def test_what_is_no_signature(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no|no type"):
        signature_of(text)


def test_numbers_that_are_none() -> None:
    with pytest.raises(JavaError, match="For input string") as caught:
        arguments_by_name(signature_of("void x(int n)"), ["1.5"])
    assert caught.value.type == "java.lang.NumberFormatException"


# ---- values ----------------------------------------------------------------------------------------


def shown(value: Any, **options: Any) -> Any:
    return json.loads("".join(json_pieces(value, Options().changed(options))))


def test_values_in_pieces_are_those_at_once() -> None:
    numbers = list(range(1000))
    assert shown(numbers) == numbers
    assert shown(Items(in_pieces(numbers))) == numbers
    assert shown(Items(iter([]))) == []
    assert shown(Entries(iter([]))) == {}
    entries = [(str(one), {"n": one}) for one in numbers]
    assert shown(Entries(in_pieces(entries))) == dict(entries)
    assert shown(RowsInText(iter(['{"a":', '"ä\n\\"}']))) == '{"a":"ä\n\\"}'
    nested = Entries(iter([[("a", 1), ("b", Entries(iter([[("c", 2)]]))), ("d", Items(iter([[3]])))]]))
    assert shown(nested) == {"a": 1, "b": {"c": 2}, "d": [3]}


def test_limits() -> None:
    assert shown([1, 2, 3], maxCollectionSize=2) == [1, 2]
    assert shown(list(range(500)), maxCollectionSize=300) == list(range(300))
    assert shown({"a": {"b": {"c": 1}}}, maxDepth=2) == {"a": {"b": "1"}}
    assert shown(Entries(iter([[("a", {"b": {"c": 1}}), ("d", 2)]])), maxDepth=2) == {"a": {"b": "1"}, "d": 2}
    assert shown(Entries(iter([[("a", 1)], [("b", 2)]])), maxCollectionSize=1) == {"a": 1}


def test_inner_paths() -> None:
    value = {"a": [{"b": 1}, {"b": 2}], "c": {"x": {"y": 1}, "z": {}}}
    assert inner(value, ["a", "1", "b"]) == 2
    assert inner(value, ["a", "2"]) is None
    assert inner(value, ["a", "-1"]) is None
    assert inner(value, ["c", "*", "y"]) == {"x": 1}
    assert inner(7, ["x"]) is None
    assert inner(value, []) == value
