"""A broker for each test of this folder, made as a program without pytest would."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from artemis_py.testing import ArtemisBroker
from tests.kit.client import StompSocket, connected


@pytest.fixture
def broker() -> Iterator[ArtemisBroker]:
    with ArtemisBroker(timeout_s=10) as running:
        yield running


@pytest.fixture
def client(broker: ArtemisBroker) -> Iterator[StompSocket]:
    with connected(broker.port) as client:
        yield client
