"""What is known of tasks that were sent, in one of Django's caches."""

from __future__ import annotations

from typing import Any

from django.core.cache import caches
from django.tasks.base import TaskResult


class Results:
    """Results by their id; without a cache none are kept."""

    def __init__(self, cache: str | None, seconds: float) -> None:
        self.cache = cache
        self._seconds = seconds

    def add(self, result: TaskResult[..., Any]) -> None:
        """It was sent. A worker may have begun it before that was confirmed; then what the worker says counts."""
        if self.cache is not None:
            caches[self.cache].add(_key(result.id), result, self._seconds)

    def keep(self, result: TaskResult[..., Any]) -> None:
        """Let others see how it is now."""
        if self.cache is not None:
            caches[self.cache].set(_key(result.id), result, self._seconds)

    def find(self, result_id: str) -> TaskResult[..., Any] | None:
        """What was kept last; None: nothing, or its time is over."""
        if self.cache is None:
            return None
        found: TaskResult[..., Any] | None = caches[self.cache].get(_key(result_id))
        return found


def _key(result_id: str) -> str:
    return f"artemis_py_django.{result_id}"
