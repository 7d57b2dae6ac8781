"""A journal to look at."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.kit.journal_story import Story


@pytest.fixture
def story(tmp_path: Path, rng: Random) -> Story:
    """Files with traffic of every kind."""
    made = Story(tmp_path / "journal")
    made.generate(rng, 150)
    return made
