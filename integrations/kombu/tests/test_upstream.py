"""kombu's own integration tests, those that it runs against RabbitMQ, from a checkout of kombu."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import kombu
import pytest

from artemis_py.testing import ArtemisBroker

if "KOMBU_SOURCE" not in os.environ:
    pytest.skip("kombu's own integration tests: KOMBU_SOURCE names no checkout of kombu", allow_module_level=True)


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("kombu_common", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


common: Any = _loaded(Path(os.environ["KOMBU_SOURCE"]) / "t" / "integration" / "common.py")


@pytest.fixture(scope="module")
def broker() -> Iterator[ArtemisBroker]:
    with ArtemisBroker() as running:
        yield running


@pytest.fixture
def connection(broker: ArtemisBroker) -> kombu.Connection:
    return kombu.Connection(f"stomp://{broker.host}:{broker.port}//")


@pytest.fixture
def invalid_connection() -> kombu.Connection:
    return kombu.Connection("stomp://127.0.0.1:1//")


@pytest.fixture
def failover_connection(broker: ArtemisBroker) -> kombu.Connection:
    return kombu.Connection(f"stomp://127.0.0.1:1//;stomp://{broker.host}:{broker.port}//", connect_timeout=10)


class TestBasicFunctionality(common.BasicFunctionality):
    pass


class TestExchangeTypes(common.BaseExchangeTypes):
    pass


class TestTimeToLive(common.BaseTimeToLive):
    pass


class TestFailover(common.BaseFailover):
    pass


class TestMessage(common.BaseMessage):
    pass


class TestPriority(common.BasePriority):
    """Two of these expect drain_events() to hand out all that came, as RabbitMQ's transport does; kombu's own tests of
    Redis and MongoDB have copies of them that call it for each message.
    """

    @pytest.fixture
    def connection(self, connection: kombu.Connection, monkeypatch: pytest.MonkeyPatch) -> kombu.Connection:
        one: Callable[..., None] = connection.drain_events

        def all_of_them(timeout: float) -> None:
            one(timeout=timeout)
            with suppress(TimeoutError):
                while True:
                    one(timeout=0.1)

        monkeypatch.setattr(connection, "drain_events", all_of_them)
        return connection
