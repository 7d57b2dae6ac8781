"""The brokers that scenarios are played on, each started once for all scenarios of a profile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle.artemis_broker import ABSENT, artemis_broker, artemis_home
from tests.oracle.brokers import BrokerUnderTest
from tests.oracle.own_broker import own_broker


@pytest.fixture(scope="session")
def ours(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerUnderTest]:
    """Our broker with the profile of the parameter."""
    with own_broker(request.param, tmp_path_factory.mktemp("ours")) as broker:
        yield broker


@pytest.fixture(scope="session")
def home() -> Path:
    """The distribution of a real Artemis; skips without one."""
    found = artemis_home()
    if found is None:
        pytest.skip(ABSENT)
    return found


@pytest.fixture(scope="session")
def artemis(
    request: pytest.FixtureRequest, home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerUnderTest]:
    """A real Artemis with the profile of the parameter."""
    with artemis_broker(request.param, tmp_path_factory.mktemp("artemis"), home) as broker:
        yield broker
