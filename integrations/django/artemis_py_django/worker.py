"""A worker: takes a task from the broker, runs it, says so to the broker, and takes the next one."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from traceback import format_exception
from typing import Any, Final

from artemis_py_tasks import Consumer, Delivery
from django.db import close_old_connections, reset_queries
from django.tasks.base import TaskContext, TaskError, TaskResult, TaskResultStatus
from django.tasks.signals import task_finished, task_started
from django.utils import timezone
from django.utils.json import normalize_json

from artemis_py_django.backend import ArtemisBackend
from artemis_py_django.background import background
from artemis_py_django.message import UnknownTaskError, result_of

logger: Final = logging.getLogger("artemis_py_django")


class Worker:
    """Runs one task at a time. It has no other one before that is done."""

    def __init__(self, backend: ArtemisBackend, queue_names: Sequence[str]) -> None:
        self.id = f"{socket.gethostname()}:{os.getpid()}"
        self._backend = backend
        self._consumer = Consumer(
            backend.connection_options, [backend.address_of(name) for name in queue_names], prefetch=1
        )

    def run(self) -> None:
        """Run tasks until ``stop``. Raises RefusedError if the broker does not let it."""
        background.call(self._open())
        try:
            while (delivery := background.call(self._consumer.get())) is not None:
                close_old_connections()
                reset_queries()
                self._run_one(delivery)
                close_old_connections()
        finally:
            background.call(self._consumer.close())

    async def _open(self) -> None:
        self._consumer.open()

    def stop(self) -> None:
        """Take no more tasks; the one that runs is finished. A signal handler may call this."""
        background.soon(self._consumer.stop)

    def _run_one(self, delivery: Delivery) -> None:
        try:
            result = result_of(delivery, self._backend.alias)
        except UnknownTaskError as error:
            logger.error("a message of %s cannot be run: %s", delivery.queue, error)
            background.call(self._consumer.refuse(delivery))
            return
        self._begin(result, delivery.attempts)
        try:
            task_started.send(type(self._backend), task_result=result)
            value = normalize_json(self._call(result))
        except BaseException as error:  # such as SystemExit: a task does not end its worker
            result.errors.append(
                TaskError(
                    exception_class_path=f"{type(error).__module__}.{type(error).__qualname__}",
                    traceback="".join(format_exception(error)),
                )
            )
            self._finish(result, TaskResultStatus.FAILED)
            background.call(self._consumer.refuse(delivery))
        else:
            object.__setattr__(result, "_return_value", value)
            self._finish(result, TaskResultStatus.SUCCESSFUL)
            background.call(self._consumer.acknowledge(delivery))

    def _begin(self, result: TaskResult[..., Any], attempts: int) -> None:
        """``attempts``: how often a worker got it, this time included."""
        now = timezone.now()
        before = self._find(result.id)
        if before is not None:
            result.errors.extend(before.errors)
            result.worker_ids.extend(before.worker_ids)
        result.worker_ids.extend(["unknown"] * (attempts - 1 - len(result.worker_ids)))
        result.worker_ids.append(self.id)
        _set(
            result,
            status=TaskResultStatus.RUNNING,
            started_at=(before and before.started_at) or now,
            last_attempted_at=now,
        )
        self._keep(result)

    def _finish(self, result: TaskResult[..., Any], status: TaskResultStatus) -> None:
        _set(result, status=status, finished_at=timezone.now())
        self._keep(result)
        task_finished.send_robust(type(self._backend), task_result=result)

    def _find(self, result_id: str) -> TaskResult[..., Any] | None:
        try:
            return self._backend.results.find(result_id)
        except Exception:
            logger.exception("task %s: what was known of it cannot be read", result_id)
            return None

    def _keep(self, result: TaskResult[..., Any]) -> None:
        """A task is run whether its result can be kept or not."""
        try:
            self._backend.results.keep(result)
        except Exception:
            logger.exception("task %s is %s, which cannot be kept", result.id, result.status)

    @staticmethod
    def _call(result: TaskResult[..., Any]) -> Any:
        if result.task.takes_context:
            return result.task.call(TaskContext(task_result=result), *result.args, **result.kwargs)
        return result.task.call(*result.args, **result.kwargs)


def _set(result: TaskResult[..., Any], **values: Any) -> None:
    """Change what nobody but a backend may change."""
    for name, value in values.items():
        object.__setattr__(result, name, value)
