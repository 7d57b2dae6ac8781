"""The example, as a user starts it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest
from processes import Kitchen, kill, wait_for


class FastStreamKitchen(Kitchen):
    """The example."""

    @contextmanager
    def cook(self, name: str) -> Iterator[Popen[bytes]]:
        """The application, when it has subscribed."""
        with self.started(name, "-m", "faststream", "run", "app:app", says="waiting for messages") as process:
            yield process

    def order(self, *dishes: str) -> None:
        self.run("order.py", *dishes)


@pytest.fixture
def kitchen(tmp_path: Path) -> FastStreamKitchen:
    return FastStreamKitchen(Path(__file__).parents[1] / "example", tmp_path)


def test_the_example(kitchen: FastStreamKitchen) -> None:
    with kitchen.broker(), kitchen.cook("one") as one:
        kitchen.order("soup", "toast")
        wait_for(lambda: sorted(kitchen.dishes()) == ["soup", "toast"], one)


def test_no_message_is_lost_when_the_broker_and_the_application_are_killed(kitchen: FastStreamKitchen) -> None:
    first, second, third = ([f"dish {number}" for number in range(ten, ten + 10)] for ten in (0, 10, 20))
    with kitchen.broker() as broker, kitchen.cook("one") as one:
        kitchen.order(*first)
        wait_for(lambda: len(kitchen.dishes()) >= 3, one)
        kill(broker)
        with kitchen.broker():
            kitchen.order(*second)
            wait_for(lambda: set(kitchen.dishes()) >= {*first, *second}, one)
            kill(one)
            kitchen.order(*third)
            with kitchen.cook("two"):
                wait_for(lambda: set(kitchen.dishes()) >= {*first, *second, *third})
