"""The backend: what Django asks of one, with queues of the broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final, ParamSpec, TypeVar

from artemis_py_tasks import Options
from asgiref.sync import sync_to_async
from django.core.cache import InvalidCacheBackendError, caches
from django.core.checks import CheckMessage, Error
from django.tasks.backends.base import BaseTaskBackend
from django.tasks.base import Task, TaskResult, TaskResultStatus
from django.tasks.exceptions import TaskResultDoesNotExist
from django.tasks.signals import task_enqueued
from django.utils import timezone
from django.utils.crypto import get_random_string
from stompman import ConnectionParameters

from artemis_py_django import message
from artemis_py_django.background import background
from artemis_py_django.results import Results

logger: Final = logging.getLogger("artemis_py_django")

P = ParamSpec("P")
R = TypeVar("R")

_PORT: Final = 61613
_RESULTS_S: Final = 86_400
_NAMES: Final = frozenset(
    {"servers", "user", "password", "ssl", "answer_s", "heartbeat_s", "prefix", "results", "results_s"}
)
_OF_ONE_PROCESS: Final = ("LocMemCache", "DummyCache")


class ArtemisBackend(BaseTaskBackend):
    """Tasks wait in the queue ``django.NAME`` of the broker (``prefix``). Results are kept only if ``results`` names
    one of Django's caches, for ``results_s`` seconds (a day).
    """

    supports_defer = True
    supports_async_task = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.results = Results(self.options.get("results"), self.options.get("results_s", _RESULTS_S))
        self.supports_get_result = self.results.cache is not None

    # ---- settings --------------------------------------------------------------------------------

    @property
    def connection_options(self) -> Options:
        """How to reach the broker."""
        found = self.options
        servers = []
        for server in found.get("servers", ["127.0.0.1"]):
            host, _, port = server.partition(":")
            servers.append(
                ConnectionParameters(
                    host=host,
                    port=int(port or _PORT),
                    login=found.get("user", ""),
                    passcode=found.get("password", "").replace("%", "%25"),  # stompman takes it for a part of a URL
                )
            )
        return Options(
            servers=servers,
            ssl=found.get("ssl"),
            answer_s=found.get("answer_s", 30.0),
            heartbeat_s=found.get("heartbeat_s", 30.0),
        )

    def address_of(self, queue_name: str) -> str:
        """The name in the broker of a queue of Django."""
        return f"{self.options.get('prefix', 'django.')}{queue_name}"

    def check(self, **_: Any) -> list[CheckMessage]:
        """What ``manage.py check`` says about the settings."""
        where = f"TASKS[{self.alias!r}]['OPTIONS']"
        found: list[CheckMessage] = []
        if unknown := sorted(self.options.keys() - _NAMES):
            known = ", ".join(sorted(_NAMES))
            found.append(Error(f"{where} has {', '.join(unknown)}; it may have {known}", id="artemis_py_django.E001"))
        if (cache := self.results.cache) is not None:
            try:
                kind = type(caches[cache]).__name__
            except InvalidCacheBackendError:
                found.append(Error(f"{where}['results']: CACHES has no {cache!r}", id="artemis_py_django.E002"))
            else:
                if kind in _OF_ONE_PROCESS:
                    found.append(
                        Error(
                            f"{where}['results']: no other process sees what is in a {kind}; results need a cache that "
                            "workers and their clients share, such as a RedisCache or a DatabaseCache",
                            id="artemis_py_django.E003",
                        )
                    )
        return found

    # ---- tasks -----------------------------------------------------------------------------------

    def enqueue(self, task: Task[P, R], args: Sequence[Any], kwargs: dict[str, Any]) -> TaskResult[P, R]:
        """Send a task to the broker; it is on the broker's disk when this returns. Raises SendError."""
        result = self._new_result(task, args, kwargs)
        background.call(self._send(result))
        self._keep(result)
        task_enqueued.send(type(self), task_result=result)
        return result

    async def aenqueue(self, task: Task[P, R], args: Sequence[Any], kwargs: dict[str, Any]) -> TaskResult[P, R]:
        """The same; the event loop goes on meanwhile."""
        result = self._new_result(task, args, kwargs)
        await asyncio.wrap_future(background.submit(self._send(result)))
        await sync_to_async(self._keep)(result)
        await task_enqueued.asend(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult[..., Any]:
        """What is known of a task. Raises TaskResultDoesNotExist: the broker has not confirmed it and no worker has
        begun it, or the time of its result is over.
        """
        if not self.supports_get_result:
            raise NotImplementedError(
                f"no results are kept: to have them, set TASKS[{self.alias!r}]['OPTIONS']['results'] to the name of "
                "one of CACHES"
            )
        if (found := self.results.find(result_id)) is None:
            raise TaskResultDoesNotExist(result_id)
        return found

    def _new_result(self, task: Task[P, R], args: Sequence[Any], kwargs: dict[str, Any]) -> TaskResult[P, R]:
        self.validate_task(task)
        return TaskResult(
            task=task,
            id=get_random_string(32),
            status=TaskResultStatus.READY,
            enqueued_at=timezone.now(),
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            args=list(args),
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )

    def _keep(self, result: TaskResult[..., Any]) -> None:
        """It was sent, whether its result can be kept or not."""
        try:
            self.results.add(result)
        except Exception:
            logger.exception("task %s was sent, but its result cannot be kept", result.id)

    async def _send(self, result: TaskResult[..., Any]) -> None:
        task = result.task
        sender = await background.sender_for(repr(self.options), self.connection_options)
        await sender.send(
            self.address_of(task.queue_name),
            message.body_of(result),
            task_id=result.id,
            headers={"content-type": "application/json", "task": task.module_path},
            priority=message.priority_of(task.priority),
            due=task.run_after,
        )
