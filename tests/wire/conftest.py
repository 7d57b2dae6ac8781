"""Every transcript holds with turns of any size: with whole ones, and with ones that may do next to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny_turns import make_turns_tiny
from tests.wire.one_turn import ABOUT_ONE_TURN


@pytest.fixture(params=["whole turns", "tiny turns"], autouse=True)
def turns_of_any_size(request: pytest.FixtureRequest, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test twice."""
    if request.param == "tiny turns":
        path = request.node.callspec.params.get("path")
        if isinstance(path, Path) and path.stem in ABOUT_ONE_TURN:
            pytest.skip("it is about what falls into one turn")
        make_turns_tiny(monkeypatch, seed)
