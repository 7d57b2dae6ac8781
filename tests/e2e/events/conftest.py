"""A broker for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.management.told import ADDRESSES, Told, operated
from tests.kit.process import configuration


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    """A broker of its own."""
    with operated(configuration(addresses=ADDRESSES), tmp_path) as told:
        yield told
