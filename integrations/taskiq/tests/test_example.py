"""The example, as a user starts it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest
from processes import WAIT_S, Kitchen, kill, wait_for

SEND = """
import asyncio
from tasks import broker, cook

async def main():
    await broker.startup()
    for number in range({}, {}):
        await cook.kiq(f"dish {{number}}", 0.2)
    await broker.shutdown()

asyncio.run(main())
"""


class TaskiqKitchen(Kitchen):
    """The example."""

    @contextmanager
    def worker(self, name: str, *options: str) -> Iterator[Popen[bytes]]:
        """A worker, with one process that runs two tasks at a time."""
        command = ["-m", "taskiq", "worker", "tasks:broker", "-w", "1", "--max-async-tasks", "2", *options]
        with self.started(name, *command, says=f"{self.address}: connected", times=2) as process:
            yield process


def dishes(first: int, last: int) -> tuple[str, str]:
    """The arguments of a program that sends these."""
    return "-c", SEND.format(first, last)


@pytest.fixture
def kitchen(tmp_path: Path) -> TaskiqKitchen:
    return TaskiqKitchen(Path(__file__).parents[1] / "example", tmp_path)


def test_the_example(kitchen: TaskiqKitchen) -> None:
    with kitchen.broker(), kitchen.worker("one") as one:
        kitchen.run("order.py")
        wait_for(lambda: len(kitchen.dishes()) >= 3, one)
        assert sorted(kitchen.dishes()) == ["milk", "soup", "toast"]
        assert "no milk on the shelf" in kitchen.log("one")


def test_a_worker_that_is_told_to_end_finishes_its_tasks_and_gives_the_others_back(kitchen: TaskiqKitchen) -> None:
    with kitchen.broker():
        with kitchen.worker("one") as one, kitchen.sending(*dishes(0, 40)):
            wait_for(lambda: len(kitchen.dishes()) >= 2, one)
            one.terminate()
            assert one.wait(WAIT_S) == 0
            done = len(kitchen.dishes())
            assert 2 <= done < 40
            assert kitchen.log("one").count("Executing task") == done
            with kitchen.worker("two"):
                wait_for(lambda: len(kitchen.dishes()) >= 40)
        assert sorted(kitchen.dishes()) == sorted(f"dish {number}" for number in range(40))


def test_no_task_is_lost_when_the_broker_and_a_worker_are_killed(kitchen: TaskiqKitchen) -> None:
    with kitchen.broker() as broker, kitchen.worker("one") as one, kitchen.sending(*dishes(0, 20)):
        wait_for(lambda: len(kitchen.dishes()) >= 3, one)
        kill(broker)
        with kitchen.broker():
            before = len(kitchen.dishes())
            wait_for(lambda: len(kitchen.dishes()) >= min(before + 2, 20), one)
            kill(one)
            with kitchen.worker("two"):
                wait_for(lambda: set(kitchen.dishes()) >= {f"dish {number}" for number in range(20)})
