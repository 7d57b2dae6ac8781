"""Our broker as a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.process import running
from tests.oracle.brokers import OURS, BrokerUnderTest, under_test
from tests.oracle.configuration import ACCEPTORS, Profile, broker_xml


@contextmanager
def own_broker(profile: Profile, folder: Path) -> Iterator[BrokerUnderTest]:
    """Our broker with the configuration of a profile, from its first open port to its end."""
    with running(broker_xml(profile, dict.fromkeys(ACCEPTORS, 0)), folder) as broker:
        yield under_test(OURS, broker.ports)
