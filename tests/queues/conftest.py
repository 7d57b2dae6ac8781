"""Fixtures of the tests of queues."""

from __future__ import annotations

import pytest


@pytest.fixture(params=[False, True], ids=["whole", "byte by byte"])
def cut(request: pytest.FixtureRequest) -> bool:
    """Does every byte of a client arrive alone?"""
    return bool(request.param)
