"""The broker of the tests of the load generator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.perf.fake_broker import FakeBroker


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as fake:
        yield fake
