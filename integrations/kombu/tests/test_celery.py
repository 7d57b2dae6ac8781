"""The example, as a user starts it: a broker, workers and programs that send are processes of their own."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.events.state import State
from processes import WAIT_S, Kitchen, kill, wait_for

ONE, TWO = "celery@one", "celery@two"


class CeleryKitchen(Kitchen):
    """The example, and what it takes to start its parts."""

    @property
    def url(self) -> str:
        return f"stomp://{self.address}//"

    def order(self) -> str:
        """What order.py prints."""
        self.environment["BROKER_URL"] = self.url
        return self.run("order.py")

    @contextmanager
    def worker(self, name: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        """A worker that is ready."""
        self.environment["BROKER_URL"] = self.url
        command = ["-m", "celery", "-A", "tasks", "worker", "-n", name, "-c", "2", "-l", "INFO", *options]
        with self.started(name, *command, says="ready.") as process:
            yield process

    def app(self) -> Celery:
        """An application that knows nothing but the URL."""
        app = Celery("other", broker=self.url, backend="rpc://")
        app.conf.broker_connection_retry_on_startup = True
        return app


@pytest.fixture
def kitchen(tmp_path: Path) -> CeleryKitchen:
    return CeleryKitchen(Path(__file__).parents[1] / "example", tmp_path)


def test_the_example(kitchen: CeleryKitchen) -> None:
    with kitchen.broker(), kitchen.worker("one", "-E") as one, kitchen.worker("two") as two:
        assert kitchen.order() == "soup is ready\ntoast is ready\nmilk\n"

        app = kitchen.app()
        # Remote control: every worker, and one of them.
        replies = app.control.ping(timeout=5, limit=2)
        assert sorted(name for reply in replies for name in reply) == [ONE, TWO]
        assert list(app.control.inspect([TWO], timeout=5).active_queues()) == [TWO]

        # Events, as `celery events` and Flower read them: of the worker that has -E.
        app.control.cancel_consumer("celery", destination=[TWO], reply=True)
        seen: list[str] = []
        state = State()

        def note(event: dict[str, Any]) -> None:
            state.event(event)
            seen.append(event["type"])
            if "task-succeeded" in seen:
                receiver.should_stop = True

        with app.connection_for_read() as connection:
            receiver = app.events.Receiver(connection, handlers={"*": note})
            reading = threading.Thread(target=receiver.capture, kwargs={"timeout": WAIT_S})
            reading.start()
            wait_for(lambda: "worker-heartbeat" in seen)
            result = app.send_task("tasks.cook", ["eggs"])
            assert result.get(timeout=WAIT_S) == "eggs is ready"
            reading.join(WAIT_S)
            assert not reading.is_alive()
        assert seen.index("task-received") < seen.index("task-started") < seen.index("task-succeeded")
        assert state.tasks[result.id].worker.hostname == ONE

        app.control.broadcast("shutdown", destination=[ONE])
        assert one.wait(WAIT_S) == 0
        app.control.shutdown()
        assert two.wait(WAIT_S) == 0
        app.close()


def test_no_task_is_lost_when_the_broker_and_a_worker_are_killed(kitchen: CeleryKitchen) -> None:
    dishes = [f"dish {number}" for number in range(20)]
    with kitchen.broker() as broker, kitchen.worker("one", "-Ofair") as one:
        app = kitchen.app()
        for dish in dishes[:10]:
            app.send_task("tasks.cook", [dish, 0.2])
        wait_for(lambda: len(kitchen.dishes()) >= 3, one)
        kill(broker)
        with kitchen.broker():
            for dish in dishes[10:]:
                app.send_task("tasks.cook", [dish, 0.2], retry=True)
            cooked = len(kitchen.dishes())
            wait_for(lambda: len(kitchen.dishes()) >= min(cooked + 2, 20), one)
            kill(one)
            with kitchen.worker("two"):
                wait_for(lambda: set(kitchen.dishes()) >= set(dishes))
        app.close()
