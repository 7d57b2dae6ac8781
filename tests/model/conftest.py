"""Fixtures of the models."""

from __future__ import annotations

import pytest

from artemis_py.core import queue, queue_pages
from artemis_py.storage import pages


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large in earnest is small here, so that few messages in pages reach every limit."""
    monkeypatch.setattr(pages, "CHUNK_BYTES", 250)
    monkeypatch.setattr(queue_pages, "_READS_PER_TURN", 4)
    monkeypatch.setattr(queue_pages, "READY_MIN", 6)
    monkeypatch.setattr(queue, "READY_MIN", 6)
