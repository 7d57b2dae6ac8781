"""A broker for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.management.told import ADDRESSES, BRIDGE, SETTINGS, Told, operated, stored
from tests.kit.process import SWEPT, configuration


@pytest.fixture
def told_to_store(tmp_path: Path) -> Iterator[Told]:
    """A broker of its own, with a journal."""
    with operated(stored(tmp_path, settings=SETTINGS), tmp_path) as told:
        yield told


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    """A broker of its own."""
    text = configuration(core=SWEPT + BRIDGE, addresses=ADDRESSES, settings=SETTINGS)
    with operated(text, tmp_path) as told:
        yield told
