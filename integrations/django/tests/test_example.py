"""The example, as a user starts it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest
from processes import WAIT_S, Kitchen, kill, wait_for

SEND = "from kitchen.tasks import cook; [cook.enqueue(f'dish {{n}}', 0.2) for n in range({}, {})]"


class DjangoKitchen(Kitchen):
    """The example."""

    @contextmanager
    def worker(self, name: str, *options: str) -> Iterator[Popen[bytes]]:
        """A worker that waits for tasks."""
        command = ["manage.py", "artemis_worker", *options]
        with self.started(name, *command, says=f"{self.address}: connected") as process:
            yield process


def shell(command: str) -> list[str]:
    """The arguments of a program that does this in the project."""
    return ["manage.py", "shell", "-v", "0", "-c", command]


@pytest.fixture
def kitchen(tmp_path: Path) -> DjangoKitchen:
    return DjangoKitchen(Path(__file__).parents[1] / "example", tmp_path)


def test_the_example(kitchen: DjangoKitchen) -> None:
    with kitchen.broker(), kitchen.worker("one") as one, kitchen.worker("two", "--queue", "drinks") as two:
        assert kitchen.run("manage.py", "check") == "System check identified no issues (0 silenced).\n"
        assert kitchen.run("manage.py", "order") == (
            "soup is ready\ntoast is ready\ntea is poured\nmilk, at the second attempt\n"
        )
        for worker in (one, two):
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(WAIT_S) == 0
        assert "no milk on the shelf" in kitchen.log("one")


def test_a_worker_that_is_told_to_end_finishes_its_task_and_takes_no_other(kitchen: DjangoKitchen) -> None:
    with kitchen.broker():
        with kitchen.worker("one") as one, kitchen.sending(*shell(SEND.format(0, 20))):
            wait_for(lambda: "kitchen.tasks.cook state=RUNNING" in kitchen.log("one"), one)
            one.terminate()
            assert one.wait(WAIT_S) == 0
            done = len(kitchen.dishes())
            assert 1 <= done < 20
            assert kitchen.log("one").count("RUNNING") == kitchen.log("one").count("SUCCESSFUL") == done
            with kitchen.worker("two"):
                wait_for(lambda: len(kitchen.dishes()) >= 20)
        assert kitchen.dishes() == [f"dish {number}" for number in range(20)]


def test_no_task_is_lost_when_the_broker_and_a_worker_are_killed(kitchen: DjangoKitchen) -> None:
    with kitchen.broker() as broker, kitchen.worker("one") as one, kitchen.sending(*shell(SEND.format(0, 20))):
        wait_for(lambda: len(kitchen.dishes()) >= 3, one)
        kill(broker)
        with kitchen.broker():
            before = len(kitchen.dishes())
            wait_for(lambda: len(kitchen.dishes()) >= min(before + 2, 20), one)
            kill(one)
            with kitchen.worker("two"):
                wait_for(lambda: set(kitchen.dishes()) >= {f"dish {number}" for number in range(20)})


def test_the_second_signal_does_not_wait_and_the_task_runs_again(kitchen: DjangoKitchen) -> None:
    send = "from kitchen.tasks import cook; cook.enqueue('slow', {})"
    with kitchen.broker():
        with kitchen.worker("one") as one:
            kitchen.run(*shell(send.format(100)))
            wait_for(lambda: "state=RUNNING" in kitchen.log("one"), one)

            def ends() -> bool:
                one.terminate()
                return one.poll() is not None

            wait_for(ends)
            assert one.returncode == -signal.SIGTERM
        with kitchen.worker("two") as two:
            wait_for(lambda: "state=RUNNING" in kitchen.log("two"), two)
    assert kitchen.dishes() == []
