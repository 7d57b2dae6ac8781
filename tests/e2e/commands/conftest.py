"""A broker for all tests of a module, and a user with a folder for each test."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.e2e.commands.user import User
from tests.kit.process import BrokerProcess, configuration, for_the_module, running

STOMP = "tcp://127.0.0.1:0?protocols=STOMP"
NAMES = ("orders", "jobs", "odd / name")
ADDRESSES = "".join(f'<address name="{name}"><anycast><queue name="{name}"/></anycast></address>' for name in NAMES)


broker = for_the_module(partial(running, configuration(addresses=ADDRESSES)))


@pytest.fixture
def user(broker: BrokerProcess, tmp_path: Path) -> Iterator[User]:
    """Somebody with a broker whose queues are empty."""
    user = User(tmp_path, broker)
    yield user
    for name in NAMES:
        broker.api(f"/api/queues/{quote(name, safe='')}/purge", "POST")


@pytest.fixture
def alone(tmp_path: Path) -> User:
    """Somebody without a broker."""
    return User(tmp_path)
