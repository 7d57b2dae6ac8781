"""Each operation of the table is carried out in each of its forms in Artemis' beans, or says why it has none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from artemis_py.management.artemis.operations import kind_of
from artemis_py.management.artemis.signature import ATTRIBUTES, NOTHING, Signature, signature_of
from artemis_py.management.operation import Operation
from artemis_py.management.table import OPERATIONS
from tests.e2e.management.beans import BROKER, address_bean, execute, post, queue_bean
from tests.e2e.management.scene import Scene
from tests.e2e.management.scenes import SCENES
from tests.e2e.management.told import Told

pytestmark = pytest.mark.e2e
_HUMP: Final = re.compile("-([a-z])")
BY_ID: Final = {operation.id: operation for operation in OPERATIONS}
FORMS: Final = [(operation.id, form) for operation in OPERATIONS for form in operation.mbean]


def test_each_operation_says_its_form_or_why_it_has_none() -> None:
    assert [one.id for one in OPERATIONS if bool(one.mbean) == bool(one.no_mbean)] == []


@pytest.mark.parametrize(("id", "form"), FORMS)
def test_each_form(request: pytest.FixtureRequest, id: str, form: str) -> None:
    row, scene = BY_ID[id], SCENES[id]
    told: Told = request.getfixturevalue("told_to_store" if scene.stores else "told")
    scene.before(told)
    if form == ATTRIBUTES:
        _reads_attributes(told, row, scene)
    else:
        signature = signature_of(form)
        answer = _answer(told, row, scene, signature)
        if scene.by_bean is not None:
            scene.by_bean(told, answer)
        else:
            scene.check(told, _as_http(told, row, scene, signature, answer))
    scene.after(told)


def _bean(told: Told, row: Operation, scene: Scene) -> str:
    kind = kind_of(row).component
    if kind == "queue":
        queue = scene.arguments["queue"]
        return queue_bean(queue, told.queue(queue)["address"])
    return address_bean(scene.arguments["address"]) if kind == "address" else BROKER


def _reads_attributes(told: Told, row: Operation, scene: Scene) -> None:
    answer = post(told, {"type": "read", "mbean": _bean(told, row, scene)})
    assert answer["status"] == 200, answer
    assert answer["value"]["Name" if row.on != "address" else "Address"] == scene.arguments.get(row.on, "e2e")


def _answer(told: Told, row: Operation, scene: Scene, signature: Signature) -> Any:
    bean = _bean(told, row, scene)
    return execute(told, bean, signature.full_name, *_arguments(row, scene, signature))


def _arguments(row: Operation, scene: Scene, signature: Signature) -> Iterator[object]:
    left = {name: value for name, value in scene.arguments.items() if kind_of(row).component != name}
    for parameter in signature.parameters:
        if parameter.argument == NOTHING:
            yield True
        elif parameter.is_by_name:
            known, ours = parameter.renamed
            yield json.dumps({known if name == ours else name: value for name, value in left.items()})
        else:
            yield left.get(parameter.argument)


def _as_http(told: Told, row: Operation, scene: Scene, signature: Signature, answer: Any) -> Any:
    """The answer as HTTP would give it, as far as it says so."""
    if signature.returns == "java.lang.String":
        found = json.loads(answer)
        return (
            found
            if row.lists is not None
            else {_HUMP.sub(lambda one: one[1].upper(), name): found[name] for name in found}
        )
    if signature.key is not None:
        return {signature.key: answer}
    if row.shows is not None:
        assert answer in (None, True)
        name = scene.arguments.get(row.shows.one) or scene.arguments["name"]
        return told.queue(name) if row.shows.one == "queue" else told.ask("GET", f"/api/addresses/{name}")[1]
    return answer
