"""Each operation of the table is carried out over HTTP and as a command, and answers as it is described."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

import jsonschema
import pytest

from artemis_py.management.lists.field import FLAG
from artemis_py.management.operation import Operation
from artemis_py.management.table import OPERATIONS
from tests.e2e.management.scenes import SCENES
from tests.e2e.management.told import Told

pytestmark = pytest.mark.e2e
BY_ID: Final = {operation.id: operation for operation in OPERATIONS}


def test_no_operation_is_left_out() -> None:
    assert set(SCENES) == set(BY_ID)


def words(operation: Operation, given: Mapping[str, str]) -> list[str]:
    """The arguments as words of the command line."""
    found: list[str] = []
    for argument in operation.arguments:
        value = given.get(argument.name)
        if argument.is_required:
            found.append(given[argument.name])
        elif value is not None and argument.type == FLAG:
            found.append(f"--{'' if value == 'true' else 'no-'}{argument.name}")
        elif value is not None:
            found.append(f"--{argument.name}={value}")
    return found


@pytest.mark.parametrize("way", ["HTTP", "command"])
@pytest.mark.parametrize("id", SCENES)
def test_each_operation(request: pytest.FixtureRequest, id: str, way: str) -> None:
    """Its answer is what its description says."""
    operation, scene = BY_ID[id], SCENES[id]
    told: Told = request.getfixturevalue("told_to_store" if scene.stores else "told")
    scene.before(told)
    if way == "HTTP":
        path = operation.path
        for name, value in scene.arguments.items():
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        left = {name: value for name, value in scene.arguments.items() if f"{{{name}}}" not in operation.path}
        path += f"?{urlencode(left)}" if left else ""
        if operation.is_download:
            scene.check(told, told.fetch(path)[1])
            return
        status, answer = told.ask(operation.method, path)
        assert status == 200, answer
    else:
        yes = ["--yes"] if operation.destroys else []
        printed = told.command(*operation.command.split(), *words(operation, scene.arguments), "--json", *yes)
        assert (printed.returncode, printed.stderr) == (0, "")
        if operation.is_download:
            scene.check(told, printed.stdout.encode())
            return
        answer = json.loads(printed.stdout)
    description = told.ask("GET", "/api/openapi.json")[1]
    described = description["paths"][operation.path][operation.method.lower()]
    assert described["operationId"] == id
    jsonschema.validate(answer, described["responses"]["200"]["content"]["application/json"]["schema"])
    scene.check(told, answer)
    scene.after(told)
