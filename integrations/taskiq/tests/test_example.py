"""The example, as a user starts it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest
from processes import WAIT_S, Example, kill, wait_for

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


class Kitchen(Example):
    """The example."""

    def __init__(self, folder: Path) -> None:
        self.cooked = folder / "cooked.txt"
        self.cooked.touch()
        super().__init__(Path(__file__).parents[1] / "example", folder, KITCHEN_LOG=str(self.cooked))

    @contextmanager
    def worker(self, name: str, *options: str) -> Iterator[Popen[bytes]]:
        """A worker, with one process that runs two tasks at a time."""
        self.environment["BROKER"] = f"127.0.0.1:{self.port}"
        with self.running(
            name, "-m", "taskiq", "worker", "tasks:broker", "-w", "1", "--max-async-tasks", "2", *options
        ) as process:
            wait_for(lambda: self.log(name).count(f"127.0.0.1:{self.port}: connected") == 2, process)
            yield process

    @contextmanager
    def sending(self, first: int, last: int) -> Iterator[None]:
        """A program that sends dishes, to its end: it must succeed, whatever happens to the broker meanwhile."""
        with self.running("sender", "-c", SEND.format(first, last)) as process:
            yield
            assert process.wait(WAIT_S) == 0, self.log("sender")

    def dishes(self) -> list[str]:
        return self.cooked.read_text().splitlines()


@pytest.fixture
def kitchen(tmp_path: Path) -> Kitchen:
    return Kitchen(tmp_path)


def test_the_example(kitchen: Kitchen) -> None:
    with kitchen.broker(), kitchen.worker("one") as one:
        kitchen.run("order.py")
        wait_for(lambda: len(kitchen.dishes()) >= 3, one)
        assert sorted(kitchen.dishes()) == ["milk", "soup", "toast"]
        assert "no milk on the shelf" in kitchen.log("one")


def test_a_worker_that_is_told_to_end_finishes_its_tasks_and_gives_the_others_back(kitchen: Kitchen) -> None:
    with kitchen.broker():
        with kitchen.worker("one") as one, kitchen.sending(0, 40):
            wait_for(lambda: len(kitchen.dishes()) >= 2, one)
            one.terminate()
            assert one.wait(WAIT_S) == 0
            done = len(kitchen.dishes())
            assert 2 <= done < 40
            assert kitchen.log("one").count("Executing task") == done
            with kitchen.worker("two"):
                wait_for(lambda: len(kitchen.dishes()) >= 40)
        assert sorted(kitchen.dishes()) == sorted(f"dish {number}" for number in range(40))


def test_no_task_is_lost_when_the_broker_and_a_worker_are_killed(kitchen: Kitchen) -> None:
    with kitchen.broker() as broker, kitchen.worker("one") as one, kitchen.sending(0, 20):
        wait_for(lambda: len(kitchen.dishes()) >= 3, one)
        kill(broker)
        with kitchen.broker():
            before = len(kitchen.dishes())
            wait_for(lambda: len(kitchen.dishes()) >= min(before + 2, 20), one)
            kill(one)
            with kitchen.worker("two"):
                wait_for(lambda: set(kitchen.dishes()) >= {f"dish {number}" for number in range(20)})
