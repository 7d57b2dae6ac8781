"""The backend and its worker, with a real broker."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import jobs
import pytest
from artemis_py_django import ArtemisBackend
from artemis_py_django.message import priority_of
from artemis_py_django.worker import Worker
from artemis_py_tasks import RefusedError, UnconfirmedError
from django.core.management import CommandError, call_command
from django.tasks import TaskResult, TaskResultStatus, task_backends
from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist
from django.tasks.signals import task_enqueued, task_finished, task_started
from django.utils import timezone
from kit import NO_NEW_QUEUES, WAIT_S

from artemis_py.testing import ArtemisBroker, QueueView

Configure = Callable[..., ArtemisBackend]


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    jobs.seen.clear()
    jobs.began.clear()
    jobs.go_on.clear()


@contextmanager
def working(backend: ArtemisBackend, *queues: str) -> Iterator[Worker]:
    """A worker in a thread of its own."""
    worker = Worker(backend, queues or ("default",))
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        jobs.go_on.set()
        worker.stop()
        thread.join(WAIT_S)
        assert not thread.is_alive()


def default(artemis: ArtemisBroker) -> QueueView:
    return artemis.queue("django.default")


# ---- sending -----------------------------------------------------------------------------------------


@pytest.mark.artemis(persistence=True)
def test_a_task_is_on_the_disk_when_enqueue_returns(artemis: ArtemisBroker, backend: ArtemisBackend) -> None:
    result = jobs.note.enqueue("soup", salt=1)
    artemis.crash()
    artemis.restart()
    [message] = default(artemis).messages
    assert message.headers["task"] == "jobs.note"
    assert message.headers["task-id"] == result.id
    assert (result.status, result.is_finished, result.attempts) == (TaskResultStatus.READY, False, 0)
    with working(backend):
        default(artemis).assert_acknowledged(1)
    result.refresh()
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, {"noted": "soup", "salt": 1})
    assert result.enqueued_at is not None
    assert result.started_at is not None
    assert result.finished_at is not None
    assert result.enqueued_at < result.started_at < result.finished_at
    assert jobs.note.get_result(result.id).args == ["soup"]


def test_from_an_event_loop(artemis: ArtemisBroker, backend: ArtemisBackend) -> None:
    async def work() -> Any:
        result = await jobs.anote.aenqueue("soup")
        await asyncio.to_thread(default(artemis).assert_acknowledged, 1)
        while not result.is_finished:
            await result.arefresh()
        assert (await jobs.anote.aget_result(result.id)).id == result.id
        value: Any = result.return_value
        return value

    with working(backend):
        assert asyncio.run(asyncio.wait_for(work(), WAIT_S)) == "soup"


def test_a_date(artemis: ArtemisBroker, backend: ArtemisBackend) -> None:
    jobs.note.using(run_after=timezone.now() + timedelta(hours=1)).enqueue("later")
    jobs.note.enqueue("now")
    with working(backend):
        default(artemis).assert_acknowledged(1)
        assert jobs.seen == ["now"]
        assert default(artemis).state.scheduled == 1
        artemis.clock.advance(hours=2)
        default(artemis).assert_acknowledged(2)
    assert jobs.seen == ["now", "later"]


def test_priorities_and_queues(artemis: ArtemisBroker, backend: ArtemisBackend) -> None:
    for priority in (0, -100, 100, 1):
        jobs.note.using(priority=priority).enqueue(priority)
    jobs.note.using(queue_name="other").enqueue("other")
    with working(backend):
        default(artemis).assert_acknowledged(4)
    assert jobs.seen == [100, 1, 0, -100]
    assert artemis.queue("django.other").count == 1
    with pytest.raises(InvalidTask, match="'third'"):
        jobs.note.using(queue_name="third")


def test_all_priorities_of_stomp_are_used_and_the_order_stays() -> None:
    all_of_them = [priority_of(priority) for priority in range(-100, 101)]
    assert all_of_them == sorted(all_of_them)
    assert set(all_of_them) == set(range(10))
    assert [priority_of(priority) for priority in (-100, -1, 0, 1, 100)] == [0, 3, 4, 5, 9]


def test_threads_share_a_connection(artemis: ArtemisBroker, backend: ArtemisBackend) -> None:
    threads = [threading.Thread(target=jobs.note.enqueue, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert default(artemis).count == 5
    assert artemis.connections == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python's, of fork beside threads: that is the point here
def test_a_process_that_was_forked_has_a_connection_of_its_own(artemis: ArtemisBroker, backend: ArtemisBackend) -> None:
    jobs.note.enqueue("parent")
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(WAIT_S))
        with suppress(BaseException):
            jobs.note.enqueue("child")
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    jobs.note.enqueue("parent again")
    assert default(artemis).count == 3


def test_what_was_not_sent_has_no_result(artemis: ArtemisBroker, configure: Configure, tmp_path: Path) -> None:
    configure(results="kept", answer_s=0.5)
    artemis.stop()
    with pytest.raises(UnconfirmedError, match=r"nothing was sent to django\.default"):
        jobs.note.enqueue("soup")
    with pytest.raises(UnconfirmedError):
        asyncio.run(jobs.note.aenqueue("soup"))
    assert not list((tmp_path / "kept").glob("*"))


@pytest.mark.artemis(persistence=True)
def test_what_may_have_been_sent_has_a_result_when_a_worker_has_it(
    artemis: ArtemisBroker, configure: Configure
) -> None:
    backend = configure(results="kept", answer_s=1.0)
    jobs.note.enqueue("first")
    with artemis.disk_full(), pytest.raises(UnconfirmedError, match="it may have arrived") as error:
        jobs.note.enqueue("soup")
    default(artemis).wait(count=2)
    [_, message] = default(artemis).messages
    id = message.headers["task-id"]
    assert id in str(error.value)
    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result(id)
    with working(backend):
        default(artemis).assert_acknowledged(2)
    assert backend.get_result(id).return_value == {"noted": "soup"}


@pytest.mark.parametrize("error", [None, UnconfirmedError("too late")], ids=["late", "too late"])
def test_what_a_worker_says_counts_though_the_confirmation_comes_later(
    artemis: ArtemisBroker, backend: ArtemisBackend, error: Exception | None
) -> None:
    send = backend._send
    ids: list[str] = []

    async def send_slowly(result: TaskResult[..., Any]) -> None:
        ids.append(result.id)
        await send(result)
        await asyncio.to_thread(default(artemis).assert_acknowledged, 1)
        if error is not None:
            raise error

    backend._send = send_slowly  # type: ignore[method-assign]
    with working(backend), pytest.raises(UnconfirmedError) if error else nullcontext():
        jobs.note.enqueue("soup")
    [id] = ids
    assert backend.get_result(id).return_value == {"noted": "soup"}


def test_a_task_is_sent_when_its_result_cannot_be_kept(
    artemis: ArtemisBroker, backend: ArtemisBackend, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise OSError("the cache is gone")

    backend.results.add = broken  # type: ignore[method-assign, assignment]
    result = jobs.note.enqueue("soup")
    assert default(artemis).count == 1
    assert f"task {result.id} was sent, but its result cannot be kept" in caplog.text


def test_without_a_cache_there_are_no_results(artemis: ArtemisBroker, configure: Configure) -> None:
    backend = configure()
    assert not backend.supports_get_result
    result = jobs.note.enqueue("soup")
    with pytest.raises(NotImplementedError, match=r"set TASKS\['default'\]\['OPTIONS'\]\['results'\] to the name"):
        result.refresh()
    with working(backend):
        default(artemis).assert_acknowledged(1)
    assert jobs.seen == ["soup"]


# ---- running -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "error"), [("out of milk", ValueError), ("exit", SystemExit), ("no JSON", TypeError)])
def test_a_task_that_fails_is_tried_again_and_then_dead(
    artemis: ArtemisBroker, backend: ArtemisBackend, kind: str, error: type[BaseException]
) -> None:
    result = jobs.fail.enqueue(kind)
    with working(backend):
        artemis.queue("DLQ").wait(count=1)
    attempts = len(jobs.seen)
    assert attempts > 1
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert [one.exception_class for one in result.errors] == [error] * attempts
    assert result.attempts == attempts
    assert default(artemis).count == 0


@pytest.mark.parametrize("cache", ["kept", None])
def test_a_task_knows_which_attempt_it_is(artemis: ArtemisBroker, configure: Configure, cache: str | None) -> None:
    backend = configure(results=cache)
    result = jobs.try_twice.enqueue()
    with working(backend) as worker:
        default(artemis).assert_acknowledged(1)
    if cache:
        result.refresh()
        assert result.return_value == [worker.id, worker.id]
        assert result.status == TaskResultStatus.SUCCESSFUL


def test_a_task_is_acknowledged_after_it_ran(artemis: ArtemisBroker, backend: ArtemisBackend) -> None:
    result = jobs.last_long.enqueue()
    jobs.note.enqueue("next")
    with working(backend):
        assert jobs.began.wait(WAIT_S)
        state = default(artemis).state
        assert (state.delivering, state.ready, state.acknowledged) == (1, 1, 0)
        result.refresh()
        assert result.status == TaskResultStatus.RUNNING
        jobs.go_on.set()
        default(artemis).assert_acknowledged(2)


def test_a_connection_that_breaks_while_a_task_runs(artemis: ArtemisBroker, backend: ArtemisBackend) -> None:
    jobs.last_long.enqueue()
    jobs.note.enqueue("next")
    with working(backend):
        assert jobs.began.wait(WAIT_S)
        artemis.drop_connections()
        default(artemis).wait(delivering=1, ready=1)
        jobs.began.clear()
        jobs.go_on.set()
        default(artemis).assert_acknowledged(2)
        assert not jobs.began.is_set()  # it has not been run again


def test_a_message_that_is_no_task_is_a_dead_letter(
    artemis: ArtemisBroker, backend: ArtemisBackend, caplog: pytest.LogCaptureFixture
) -> None:
    for body in ("soup", '{"task": "jobs.nowhere"}', '{"task": "jobs.NO_TASK"}', '{"task": "jobs.note"}'):
        artemis.send("django.default", body, persistent=True)
    jobs.note.enqueue("task")
    with working(backend):
        default(artemis).assert_acknowledged(1)
        artemis.queue("DLQ").wait(count=4)
    assert jobs.seen == ["task"]
    assert "jobs.NO_TASK is no task" in caplog.text


def test_signals(artemis: ArtemisBroker, backend: ArtemisBackend) -> None:
    seen: list[tuple[str, TaskResultStatus]] = []

    def note(name: str) -> Callable[..., None]:
        def receive(sender: object, task_result: TaskResult[Any, Any], **_: Any) -> None:
            assert sender is ArtemisBackend
            seen.append((name, task_result.status))
            if name == "finished":
                raise ValueError("a receiver that fails")

        return receive

    receivers = {"enqueued": task_enqueued, "started": task_started, "finished": task_finished}
    connected = [(sent, note(name)) for name, sent in receivers.items()]
    for sent, receiver in connected:
        sent.connect(receiver)
    try:
        jobs.note.enqueue("soup")
        with working(backend):
            default(artemis).assert_acknowledged(1)
    finally:
        for sent, receiver in connected:
            sent.disconnect(receiver)
    assert seen == [
        ("enqueued", TaskResultStatus.READY),
        ("started", TaskResultStatus.RUNNING),
        ("finished", TaskResultStatus.SUCCESSFUL),
    ]


def test_tasks_run_when_results_cannot_be_kept(
    artemis: ArtemisBroker, backend: ArtemisBackend, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise OSError("the cache is gone")

    jobs.note.enqueue("soup")
    backend.results.keep = backend.results.find = broken  # type: ignore[method-assign, assignment]
    with caplog.at_level(logging.ERROR), working(backend):
        default(artemis).assert_acknowledged(1)
    assert jobs.seen == ["soup"]
    assert "SUCCESSFUL, which cannot be kept" in caplog.text


@pytest.mark.artemis(config=NO_NEW_QUEUES)
def test_what_the_broker_refuses_is_an_error_for_both(backend: ArtemisBackend) -> None:
    with pytest.raises(RefusedError, match=r"django\.default"):
        jobs.note.enqueue("soup")
    with pytest.raises(CommandError, match=r"django\.default"):
        call_command("artemis_worker")


# ---- settings ----------------------------------------------------------------------------------------


def test_checks(configure: Configure) -> None:
    def said(**options: Any) -> list[str]:
        return [message.msg for message in configure(**options).check()]

    assert said(results="kept") == []
    assert said(prefix="shop.", user="cook", password="%41", heartbeat_s=10, results_s=60, ssl=None) == []
    [unknown] = said(host="localhost")
    assert unknown.startswith("TASKS['default']['OPTIONS'] has host; it may have answer_s, heartbeat_s, ")
    [missing] = said(results="nowhere")
    assert "CACHES has no 'nowhere'" in missing
    [local] = said(results="default")
    assert "no other process sees what is in a LocMemCache" in local


def test_how_the_broker_is_reached(configure: Configure) -> None:
    backend = configure(servers=["a:1", "b"], user="cook", password="%41:")
    options = backend.connection_options
    assert options.names == "a:1, b:61613"
    assert {(server.login, server.unescaped_passcode) for server in options.servers} == {("cook", "%41:")}
    assert configure(prefix="shop.").address_of("default") == "shop.default"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--queue", "third"], "has no third; it has default, other"),
        (["--backend", "nowhere"], "nowhere"),
    ],
)
def test_a_worker_that_cannot_be_started_says_why(backend: ArtemisBackend, arguments: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("artemis_worker", *arguments)
    assert task_backends["default"] is backend
