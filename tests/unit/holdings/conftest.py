"""The broker of the tests about what clients make it hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.live_server import LiveServer


@pytest.fixture
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """A broker as the module's ACCEPTOR and CORE say."""
    stage = LiveServer(tmp_path, request.module.ACCEPTOR, request.module.CORE)
    yield stage
    stage.close()
