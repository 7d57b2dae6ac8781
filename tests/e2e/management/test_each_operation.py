"""Each operation of the table is carried out in each of its forms, and answers as it is described: over HTTP, as a
command, and in each form in Artemis' beans by Jolokia and by a management message; or its row says why it has none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

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
Way: TypeAlias = Callable[[Told, Operation, Scene], None]
OF_BEANS: Final = [(id, form) for id in CHANGES for form in BY_ID[id].mbean]


def test_no_operation_is_left_out() -> None:
    assert set(SCENES) == set(BY_ID)


def test_each_operation_says_its_form_or_why_it_has_none() -> None:
    assert [one.id for one in OPERATIONS if bool(one.mbean) == bool(one.no_mbean)] == []


@pytest.mark.parametrize("id", LOOKS)
def test_each_look(request: pytest.FixtureRequest, id: str) -> None:
    """It changes nothing, so one broker shows it in all forms."""
    beans = [partial(way, form=form) for form in BY_ID[id].mbean for way in (by_bean, by_message)]
    _play(request, id, by_http, by_command, *beans)


@pytest.mark.parametrize("way", [by_http, by_command])
@pytest.mark.parametrize("id", CHANGES)
def test_each_change(request: pytest.FixtureRequest, id: str, way: Way) -> None:
    _play(request, id, way)


@pytest.mark.parametrize("way", [by_bean, by_message])
@pytest.mark.parametrize(("id", "form"), OF_BEANS)
def test_each_change_of_beans(request: pytest.FixtureRequest, id: str, form: str, way: Callable[..., None]) -> None:
    _play(request, id, partial(way, form=form))


def _play(request: pytest.FixtureRequest, id: str, *ways: Way) -> None:
    scene = SCENES[id]
    told: Told = request.getfixturevalue("told_to_store" if scene.stores else "told")
    if isinstance(scene.before, str):
        told.asked("POST", scene.before)
    elif scene.before is not None:
        scene.before(told)
    for way in ways:
        way(told, BY_ID[id], scene)
    if scene.after is not None:
        scene.after(told)
