"""The table of operations, and what is made of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from artemis_py.errors import BadRequestError
from artemis_py.management.listing import FLAG
from artemis_py.management.openapi import description_of
from artemis_py.management.operation import EDIT, TEXTS, VIEW, arguments_of
from artemis_py.management.table import OPERATIONS

ROOT = Path(__file__).parents[3]
BY_ID = {operation.id: operation for operation in OPERATIONS}


def test_each_operation_is_found_in_one_way() -> None:
    assert len(BY_ID) == len(OPERATIONS)
    assert len({(one.method, one.path) for one in OPERATIONS}) == len(OPERATIONS)
    assert len({one.command for one in OPERATIONS}) == len(OPERATIONS)


def test_rows_are_whole() -> None:
    """Who looks needs another permission than who changes; a path has the arguments that it names."""
    for operation in OPERATIONS:
        assert operation.right == (VIEW if operation.method == "GET" else EDIT), operation.id
        assert operation.sentence.endswith("."), operation.id
        names = {argument.name for argument in operation.arguments}
        assert set(re.findall(r"{(\w+)}", operation.path + operation.permission)) <= names, operation.id
        for argument in operation.arguments:
            in_path = operation.is_in_path(argument)
            assert argument.is_required or not in_path, (operation.id, argument.name)
            assert not (argument.is_required and argument.type in (TEXTS, FLAG)), (operation.id, argument.name)


def test_alerts_name_commands_that_exist() -> None:
    text = (ROOT / "monitoring" / "alerts.yml").read_text("utf-8")
    named = re.findall(r'why: "artemis-py (why [a-z-]+)', text)
    assert len(named) > 10
    assert set(named) <= {one.command for one in OPERATIONS}


def test_the_description_names_each_operation() -> None:
    paths = description_of(OPERATIONS)["paths"]
    found = {one["operationId"]: (path, method.upper()) for path, of in paths.items() for method, one in of.items()}
    assert found.pop("getEvents") == ("/api/events", "GET")
    assert found == {one.id: (one.path, one.method) for one in OPERATIONS}


@pytest.mark.parametrize(
    ("id", "sent", "said"),
    [
        ("listQueues", {"page": ["x"]}, "page must be a number, not 'x'"),
        ("listQueues", {"page": ["1", "2"]}, "page was given 2 times"),
        ("listQueues", {"page": ["١"]}, "page must be a number, not '١'"),
        ("listQueues", {"page": ["9" * 19]}, f"page must be a number of at most 18 digits, not {'9' * 19}"),
        (
            "listQueues",
            {"nam": ["x"]},
            "listQueues has no argument 'nam'; it has where, sort, page, size, fields, options",
        ),
        ("getBroker", {"x": [""]}, "getBroker has no argument 'x'; it has none"),
        ("listQueues", {"page": [True]}, "page must be a number, not 'True'"),
        ("listQueues", {"page": [10**18]}, f"page must be a number of at most 18 digits, not 1{'0' * 18}"),
        ("listQueues", {"sort": [7]}, "sort must be a text, not 7"),
        ("listQueues", {"where": [["a"]]}, "where must be a text, not ['a']"),
        ("queue.pause", {}, "queue is missing: the name of the queue"),
        ("queue.pause", {"queue": [None]}, "queue is missing: the name of the queue"),
    ],
)
def test_arguments_that_make_no_sense(id: str, sent: dict[str, list[str]], said: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        arguments_of(BY_ID[id], sent)
    assert str(refused.value) == said


def test_arguments_that_are_left_out_have_their_defaults() -> None:
    given = arguments_of(BY_ID["listQueues"], {"where": ["a=1", "b=2"], "size": ["-5"]})
    assert given == {"where": ("a=1", "b=2"), "sort": "", "page": 1, "size": -5, "fields": (), "options": ""}
