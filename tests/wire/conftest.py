"""Every transcript holds with turns of any size: with whole ones, and with ones that may do next to nothing."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kit.selection import is_in_the_third
from tests.kit.tiny_turns import make_turns_tiny
from tests.wire.one_turn import ABOUT_ONE_TURN
from tests.wire.transcript import read_transcript

MANY: Final = 200
"""Of so many transcripts and more, a third is played with tiny turns, and one version of each in parts; in each run
others.
"""
IN_PARTS: Final = ("test_byte_by_byte", "test_divided_in_two")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is about one turn is no test of tiny ones; of the others a run takes some."""
    seed: int = config.option.seed
    plays = [item for item in items if isinstance(item, pytest.Function) and _is_play(item)]
    given: dict[pytest.Function, dict[str, Any]] = {item: item.callspec.params for item in plays}
    tiny = [item for item, those in given.items() if those["turns_of_any_size"] == "tiny turns"]
    dropped: set[pytest.Item] = {item for item in tiny if given[item]["path"].stem in ABOUT_ONE_TURN}
    if len(tiny) >= MANY:
        dropped |= {item for item in tiny if not is_in_the_third(item.nodeid, seed)}
        for item, those in given.items():
            versions, name = read_transcript(those["path"]).versions, those["path"].name
            drawn = versions[zlib.crc32(f"{seed}:{name}".encode()) % len(versions)]
            if item.originalname in IN_PARTS and those["version"] != drawn:
                dropped.add(item)
    if dropped:
        items[:] = [item for item in items if item not in dropped]
        config.hook.pytest_deselected(items=list(dropped))


def _is_play(item: pytest.Function) -> bool:
    """Does this test play a transcript?"""
    given = item.callspec.params if hasattr(item, "callspec") else {}
    return "turns_of_any_size" in given and isinstance(given.get("path"), Path)


@pytest.fixture(params=["whole turns", "tiny turns"], autouse=True)
def turns_of_any_size(request: pytest.FixtureRequest, seed: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run each test twice; says with which turns."""
    turns: str = request.param
    if turns == "tiny turns":
        make_turns_tiny(monkeypatch, seed)
    return turns
