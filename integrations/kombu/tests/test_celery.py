"""The example, as a user starts it: a broker, workers and programs that send are processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.events.state import State

EXAMPLE = Path(__file__).parents[1] / "example"
WAIT_S = 40.0
ONE, TWO = "celery@one", "celery@two"


def wait_for(what: Callable[[], Any], process: subprocess.Popen[bytes] | None = None) -> Any:
    """What this returns as soon as it is true."""
    until_s = time.monotonic() + WAIT_S
    while not (found := what()):
        assert process is None or process.poll() is None, "the process has ended"
        assert time.monotonic() < until_s, what
        time.sleep(0.05)
    return found


@contextmanager
def running(arguments: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the example; what it prints is in the log."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=EXAMPLE,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, **environment},
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(WAIT_S)


class Kitchen:
    """The broker of the example, and what it takes to start the rest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "broker.log"
        self.cooked = folder / "cooked.txt"
        self.cooked.touch()
        self.port = 0

    @contextmanager
    def broker(self) -> Iterator[subprocess.Popen[bytes]]:
        """On a free port; again, on the same."""
        self.log.write_bytes(b"")
        settings = {"STOMP_PORT": str(self.port), "HTTP_PORT": "0", "DATA": str(self.folder / "data")}
        with running(["artemis_py", "run", str(EXAMPLE / "broker.xml")], self.log, **settings) as process:
            wait_for(lambda: "is ready" in self.log.read_text(), process)
            [line] = [line for line in self.log.read_text().splitlines() if "acceptor=stomp" in line]
            self.port = int(line.rpartition("127.0.0.1:")[2].split()[0])
            yield process

    @property
    def environment(self) -> dict[str, str]:
        return {"BROKER_URL": f"stomp://127.0.0.1:{self.port}//", "KITCHEN_LOG": str(self.cooked)}

    @contextmanager
    def worker(self, name: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        """A worker that is ready."""
        log = self.folder / f"{name}.log"
        command = ["celery", "-A", "tasks", "worker", "-n", name, "-c", "2", "-l", "INFO", *options]
        with running(command, log, **self.environment) as process:
            wait_for(lambda: "ready." in log.read_text(), process)
            yield process

    def app(self) -> Celery:
        """An application that knows nothing but the URL."""
        app = Celery("other", broker=self.environment["BROKER_URL"], backend="rpc://")
        app.conf.broker_connection_retry_on_startup = True
        return app


@pytest.fixture
def kitchen(tmp_path: Path) -> Kitchen:
    return Kitchen(tmp_path)


def test_the_example(kitchen: Kitchen) -> None:
    with kitchen.broker(), kitchen.worker("one", "-E") as one, kitchen.worker("two") as two:
        order = subprocess.run(
            [sys.executable, "order.py"], cwd=EXAMPLE, env={**os.environ, **kitchen.environment}, capture_output=True,
            text=True, timeout=WAIT_S, check=False,
        )  # fmt: skip
        assert (order.stdout, order.stderr) == ("soup is ready\ntoast is ready\nmilk\n", "")

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


def test_no_task_is_lost_when_the_broker_and_a_worker_are_killed(kitchen: Kitchen) -> None:
    dishes = [f"dish {number}" for number in range(20)]
    with kitchen.broker() as broker, kitchen.worker("one", "-Ofair") as one:
        app = kitchen.app()
        for dish in dishes[:10]:
            app.send_task("tasks.cook", [dish, 0.2])
        wait_for(lambda: len(kitchen.cooked.read_text().splitlines()) >= 3, one)
        broker.kill()
        broker.wait()
        with kitchen.broker():
            for dish in dishes[10:]:
                app.send_task("tasks.cook", [dish, 0.2], retry=True)
            cooked = len(kitchen.cooked.read_text().splitlines())
            wait_for(lambda: len(kitchen.cooked.read_text().splitlines()) >= cooked + 2, one)
            os.killpg(one.pid, signal.SIGKILL)
            with kitchen.worker("two"):
                wait_for(lambda: set(kitchen.cooked.read_text().splitlines()) >= set(dishes))
        app.close()
