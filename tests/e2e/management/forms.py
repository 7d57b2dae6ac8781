"""The ways in which an operation of the table is carried out: HTTP, a command, a bean by Jolokia, and a management
message over STOMP. Each returns an answer; the last two say what it would be over HTTP, as far as they can.
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, Final
from unittest.mock import patch
from urllib.parse import quote, urlencode

import jsonschema

from artemis_py.cli.main import main
from artemis_py.management.artemis.java import NOTHING, Signature, signature_of
from artemis_py.management.artemis.operations import kind_of
from artemis_py.management.listing import FLAG
from artemis_py.management.operation import ATTRIBUTES, Operation
from artemis_py.security.users.accounts import NEW_PASSWORD
from tests.e2e.management.beans import BASE, BROKER, address_bean, execute, queue_bean
from tests.e2e.management.manager import MANAGER, manager_of
from tests.e2e.management.scene import Scene, verify
from tests.e2e.management.told import Told

_HUMP: Final = re.compile("-([a-z])")
_VARIABLES: Final = {"password": NEW_PASSWORD}
"""Where a command finds its secrets."""
IN_A_PROCESS: Final = frozenset({"listQueues", "queue.getMessageBody", "queue.pause", "queue.removeAllMessages"})
"""Whose command is a process of its own. The others run in that of the test: a start takes longer than most of them."""


def by_http(told: Told, row: Operation, scene: Scene) -> None:
    """Carry it out over HTTP, and check the answer."""
    path = row.path
    for name, value in scene.arguments.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    secrets = _secrets(row, scene)
    left = {name: value for name, value in scene.arguments.items() if f"{{{name}}}" not in row.path}
    left = {name: value for name, value in left.items() if name not in secrets}
    lines = left.pop("lines").encode() if row.takes_lines else None
    path += f"?{urlencode(left)}" if left else ""
    if row.is_download:
        reply = told.broker.ask("GET", path)
        assert reply.status == 200, reply.body
        verify(told, scene.right, reply.body)
        return
    status, answer = told.ask(row.method, path, json.dumps(secrets).encode() if secrets else lines)
    assert status == 200, answer
    _check_described(told, row, answer)
    verify(told, scene.right, answer)


def by_command(told: Told, row: Operation, scene: Scene) -> None:
    """Carry it out as a command, and check what it prints."""
    yes = ["--yes"] if row.destroys or row.previews else []
    with tempfile.NamedTemporaryFile("w") as file:
        given = dict(scene.arguments)
        if row.takes_lines:
            file.write(given["lines"])
            file.flush()
            given["lines"] = file.name
        line = [*row.command.split(), *_words(row, given), "--json", *yes]
        with patch.dict(os.environ, {_VARIABLES[name]: value for name, value in _secrets(row, scene).items()}):
            if row.id in IN_A_PROCESS:
                done = told.command(*line)
                code, printed, errors = done.returncode, done.stdout, done.stderr
            else:
                code, printed, errors = _in_this_process(told, line)
    assert (code, errors) == (0, "")
    if row.is_download:
        verify(told, scene.right, printed.encode())
        return
    answer = json.loads(printed)
    _check_described(told, row, answer)
    verify(told, scene.right, answer)


def by_bean(told: Told, row: Operation, scene: Scene, form: str) -> None:
    """Carry it out as an operation of a bean, and check its value."""
    bean = _bean(told, row, scene)
    if form == ATTRIBUTES:
        answer = told.asked("POST", BASE, {"type": "read", "mbean": bean})
        assert answer["status"] == 200, answer
        attribute, name = _named(row, scene)
        assert answer["value"][attribute] == name
        return
    signature = signature_of(form)
    value = execute(told, bean, f"{signature.name}({signature.types})", *_arguments(row, scene, signature))
    _check_value(told, row, scene, signature, value)


def by_message(told: Told, row: Operation, scene: Scene, form: str) -> None:
    """Carry it out by a management message, and check the reply."""
    component = kind_of(row).component
    resource = component if row.on == component == "broker" else f"{component}.{scene.arguments.get(component)}"
    with manager_of(told) as manager:
        if form == ATTRIBUTES:
            attribute, name = _named(row, scene)
            assert manager.read(resource, attribute) == name
            return
        signature = signature_of(form)
        done, value = manager.ask(resource, signature.name, *_arguments(row, scene, signature))
        assert done, value
        _check_value(told, row, scene, signature, _without_manager(row, value))


def _secrets(row: Operation, scene: Scene) -> dict[str, str]:
    """The arguments that no URL and no word of a command may have."""
    names = {argument.name for argument in row.arguments if argument.is_secret}
    return {name: value for name, value in scene.arguments.items() if name in names}


def _check_described(told: Told, row: Operation, answer: Any) -> None:
    """Is it as the description for programs says?"""
    description = told.asked("GET", "/api/openapi.json")
    described = description["paths"][row.path][row.method.lower()]
    assert described["operationId"] == row.id
    jsonschema.validate(answer, described["responses"]["200"]["content"]["application/json"]["schema"])


def _words(row: Operation, given: Mapping[str, str]) -> list[str]:
    """The arguments as words of the command line."""
    found: list[str] = []
    for argument in row.arguments:
        value = given.get(argument.name)
        if argument.is_secret:
            continue
        if argument.is_required:
            found.append(given[argument.name])
        elif value is not None and argument.type == FLAG:
            found.append(f"--{'' if value == 'true' else 'no-'}{argument.name}")
        elif value is not None:
            found.append(f"--{argument.name}={value}")
    return found


def _in_this_process(told: Told, line: list[str]) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    bytes_out, errors = io.BytesIO(), io.StringIO()
    with io.TextIOWrapper(bytes_out, "utf-8") as output:
        with redirect_stdout(output), redirect_stderr(errors):
            code = main([*line, "--url", told.broker.url])
        output.flush()
        return code, bytes_out.getvalue().decode(), errors.getvalue()


def _bean(told: Told, row: Operation, scene: Scene) -> str:
    kind = kind_of(row).component
    if kind == "queue":
        queue = scene.arguments["queue"]
        return queue_bean(queue, told.queue(queue)["address"])
    if kind == "bridge":
        return f'{BROKER},component=bridges,name="{scene.arguments["bridge"]}"'
    return address_bean(scene.arguments["address"]) if kind == "address" else BROKER


def _named(row: Operation, scene: Scene) -> tuple[str, str]:
    """The attribute that has the name of what the operation is on, and the name."""
    return "Address" if row.on == "address" else "Name", scene.arguments.get(row.on, "e2e")


def _arguments(row: Operation, scene: Scene, signature: Signature) -> Iterator[object]:
    """The arguments in the order of the signature."""
    left = {name: value for name, value in scene.arguments.items() if kind_of(row).component != name}
    for parameter in signature.parameters:
        if parameter.argument == NOTHING:
            yield {"java.util.Map": {}, "int": 1}.get(parameter.type, True)
        elif parameter.is_by_name:
            known, ours = parameter.renamed
            yield json.dumps({known if name == ours else name: value for name, value in left.items()})
        else:
            yield left.get(parameter.argument)


def _without_manager(row: Operation, value: Any) -> Any:
    """A list without the rows that are there because a client asks for it."""
    if row.lists is None or not isinstance(value, str):
        return value
    found = json.loads(value)
    if isinstance(found, list):
        return value
    rows = [one for one in found["data"] if MANAGER not in one.values()]
    return json.dumps({**found, "data": rows, "count": found["count"] - len(found["data"]) + len(rows)})


def _check_value(told: Told, row: Operation, scene: Scene, signature: Signature, value: Any) -> None:
    """Is it what a bean answers? If the scene does not say that, it is what HTTP would answer, as far as it says so."""
    if scene.by_bean is not None:
        verify(told, scene.by_bean, value)
        return
    if signature.returns == "java.lang.String":
        value = json.loads(value)
        if row.lists is None:
            value = {_HUMP.sub(lambda one: one[1].upper(), name): value[name] for name in value}
    elif signature.key is not None:
        value = {signature.key: value}
    elif row.shows is not None:
        assert value in (None, True)
        name = scene.arguments.get(row.shows.one) or scene.arguments["name"]
        value = told.queue(name) if row.shows.one == "queue" else told.ask("GET", f"/api/addresses/{name}")[1]
    verify(told, scene.right, value)
