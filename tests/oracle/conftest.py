"""The brokers that scenarios are played on, each started once for all scenarios of a profile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.process import running
from tests.oracle.artemis_broker import artemis_broker, artemis_home
from tests.oracle.brokers import OURS, BrokerUnderTest, under_test
from tests.oracle.configuration import ACCEPTORS, broker_xml


@pytest.fixture(scope="session")
def ours(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerUnderTest]:
    """Our broker with the profile of the parameter."""
    text = broker_xml(request.param, dict.fromkeys(ACCEPTORS, 0))
    with running(text, tmp_path_factory.mktemp("ours")) as broker:
        yield under_test(OURS, broker.ports)


home = pytest.fixture(artemis_home, scope="session")


@pytest.fixture(scope="session")
def artemis(
    request: pytest.FixtureRequest, home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerUnderTest]:
    """A real Artemis with the profile of the parameter."""
    with artemis_broker(request.param, tmp_path_factory.mktemp("artemis"), home) as broker:
        yield broker
