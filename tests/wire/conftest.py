"""Every transcript holds with turns of any size: with whole ones, and with ones that may do next to nothing."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Final, cast

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
    plays = {item: path for item in items if (path := _played_in_tiny_turns(item)) is not None}
    seed: int = config.option.seed
    dropped = {item for item, path in plays.items() if path.stem in ABOUT_ONE_TURN}
    if len(plays) >= MANY:
        dropped |= {item for item in plays if not is_in_the_third(item.nodeid, seed)}
        dropped |= {item for item in items if not _is_its_version_drawn(item, seed)}
    if dropped:
        items[:] = [item for item in items if item not in dropped]
        config.hook.pytest_deselected(items=list(dropped))


def _is_its_version_drawn(item: pytest.Item, seed: int) -> bool:
    """Is this the version in which the run plays the transcript in parts? Other tests are always taken."""
    given = _parameters(item)
    if getattr(item, "originalname", None) not in IN_PARTS or "version" not in given:
        return True
    path = cast(Path, given["path"])
    versions = read_transcript(path).versions
    return bool(given["version"] == versions[zlib.crc32(f"{seed}:{path.name}".encode()) % len(versions)])


def _parameters(item: pytest.Item) -> dict[str, object]:
    return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


def _played_in_tiny_turns(item: pytest.Item) -> Path | None:
    """The transcript that a test plays with tiny turns; None for any other test."""
    given = _parameters(item)
    path = given.get("path")
    return path if given.get("turns_of_any_size") == "tiny turns" and isinstance(path, Path) else None


@pytest.fixture(params=["whole turns", "tiny turns"], autouse=True)
def turns_of_any_size(request: pytest.FixtureRequest, seed: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run each test twice; says with which turns."""
    turns: str = request.param
    if turns == "tiny turns":
        make_turns_tiny(monkeypatch, seed)
    return turns
