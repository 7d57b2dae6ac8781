"""Every transcript holds with turns of any size: with whole ones, and with ones that may do next to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny_turns import make_turns_tiny
from tests.wire.one_turn import ABOUT_ONE_TURN


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is about one turn is no test of tiny ones."""
    dropped = [item for item in items if _is_about_one_turn(item)]
    if dropped:
        items[:] = [item for item in items if not _is_about_one_turn(item)]
        config.hook.pytest_deselected(items=dropped)


def _is_about_one_turn(item: pytest.Item) -> bool:
    given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    path = given.get("path")
    return given.get("turns_of_any_size") == "tiny turns" and isinstance(path, Path) and path.stem in ABOUT_ONE_TURN


@pytest.fixture(params=["whole turns", "tiny turns"], autouse=True)
def turns_of_any_size(request: pytest.FixtureRequest, seed: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run each test twice; says with which turns."""
    turns: str = request.param
    if turns == "tiny turns":
        make_turns_tiny(monkeypatch, seed)
    return turns
