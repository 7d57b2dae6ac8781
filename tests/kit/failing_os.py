"""The module ``os``, of which one call fails."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import pytest


@dataclass
class FailingOs:
    """Counts the calls of these names by the thread that made it; the ``at``-th of them fails with ``code``. Where
    there is something ``instead`` of a call, that is what it does otherwise.
    """

    names: Collection[str]
    code: int = errno.ENOSPC
    instead: dict[str, Callable[..., Any]] = field(default_factory=dict)
    at: int = -1
    count: int = 0
    failed: str = ""
    _thread: threading.Thread = field(default_factory=threading.current_thread)

    def __getattr__(self, name: str) -> Any:
        real = self.instead.get(name) or getattr(os, name)
        if name not in self.names or threading.current_thread() is not self._thread:
            return real
        return partial(self._call, name, real)

    def _call(self, name: str, real: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        self.count += 1
        if self.count == self.at:
            self.failed = name
            raise OSError(self.code, os.strerror(self.code))
        return real(*arguments, **named)

    def put_in_place(self, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
        """These modules get it."""
        for module in modules:
            monkeypatch.setattr(module, "os", self)
