"""Each operation of the table is carried out in each of its forms, and answers as it is described: over HTTP, as a
command, and in each form in Artemis' beans by Jolokia and by a management message; or its row says why it has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from artemis_py.management.operation import EDIT, Operation
from artemis_py.management.table import OPERATIONS
from tests.e2e.management.forms import by_bean, by_command, by_http, by_message
from tests.e2e.management.scene import Scene
from tests.e2e.management.scenes import SCENES
from tests.e2e.management.told import Told

pytestmark = pytest.mark.e2e
BY_ID: Final = {operation.id: operation for operation in OPERATIONS}
LOOKS: Final = [operation.id for operation in OPERATIONS if operation.right != EDIT]
CHANGES: Final = [operation.id for operation in OPERATIONS if operation.right == EDIT]
OF_BEANS: Final = [(id, form) for id in CHANGES for form in BY_ID[id].mbean]


def test_no_operation_is_left_out() -> None:
    assert set(SCENES) == set(BY_ID)


def test_each_operation_says_its_form_or_why_it_has_none() -> None:
    assert [one.id for one in OPERATIONS if bool(one.mbean) == bool(one.no_mbean)] == []


@pytest.mark.parametrize("id", LOOKS)
def test_each_look(request: pytest.FixtureRequest, id: str) -> None:
    """It changes nothing, so one broker shows it in all forms."""

    def in_all_forms(told: Told, row: Operation, scene: Scene) -> None:
        by_http(told, row, scene)
        by_command(told, row, scene)
        for form in row.mbean:
            by_bean(told, row, scene, form)
            by_message(told, row, scene, form)

    _play(request, id, in_all_forms)


@pytest.mark.parametrize("way", [by_http, by_command])
@pytest.mark.parametrize("id", CHANGES)
def test_each_change(request: pytest.FixtureRequest, id: str, way: Callable[[Told, Operation, Scene], None]) -> None:
    _play(request, id, way)


@pytest.mark.parametrize("way", [by_bean, by_message])
@pytest.mark.parametrize(("id", "form"), OF_BEANS)
def test_each_change_of_beans(
    request: pytest.FixtureRequest, id: str, form: str, way: Callable[[Told, Operation, Scene, str], None]
) -> None:
    _play(request, id, lambda told, row, scene: way(told, row, scene, form))


def _play(request: pytest.FixtureRequest, id: str, way: Callable[[Told, Operation, Scene], None]) -> None:
    scene = SCENES[id]
    told: Told = request.getfixturevalue("told_to_store" if scene.stores else "told")
    if isinstance(scene.before, str):
        told.asked("POST", scene.before)
    elif scene.before is not None:
        scene.before(told)
    way(told, BY_ID[id], scene)
    if scene.after is not None:
        scene.after(told)
