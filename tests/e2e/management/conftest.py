"""A broker for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.management.told import ADDRESSES, BRIDGE, SETTINGS, Told, stored
from tests.kit.process import SWEPT, BrokerProcess, configuration, running


@pytest.fixture
def told_to_store(tmp_path: Path) -> Iterator[Told]:
    """A broker of its own, with a journal."""
    with running(stored(tmp_path, settings=SETTINGS), tmp_path) as broker:
        yield from _told(broker)


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    """A broker of its own."""
    text = configuration(core=SWEPT + BRIDGE, addresses=ADDRESSES, settings=SETTINGS)
    with running(text, tmp_path) as broker:
        yield from _told(broker)


def _told(broker: BrokerProcess) -> Iterator[Told]:
    told = Told(broker)
    yield told
    for guest in told.guests:
        guest.close()
