"""A broker for each test of this folder, made as a program without pytest would."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from artemis_py.testing import ArtemisBroker
from tests.kit.client import StompSocket, connected
from tests.kit.process import for_each_test

broker = for_each_test(lambda _: ArtemisBroker(timeout_s=10))


@pytest.fixture
def client(broker: ArtemisBroker) -> Iterator[StompSocket]:
    with connected(broker.port) as client:
        yield client
