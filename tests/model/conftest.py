"""Fixtures of the models."""

from __future__ import annotations

import pytest

from artemis_py.core.queue import delivery, depaging
from artemis_py.storage import pages as page_files


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large in earnest is small here, so that few messages in pages reach every limit."""
    monkeypatch.setattr(page_files, "CHUNK_BYTES", 250)
    monkeypatch.setattr(depaging, "READS_PER_TURN", 4)
    monkeypatch.setattr(depaging, "READY_MIN", 6)
    monkeypatch.setattr(delivery, "READY_MIN", 6)
