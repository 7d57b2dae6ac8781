"""A process that is killed before any of its steps, played by exceptions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partialmethod
from typing import Any

import pytest


class Killed(BaseException):
    """The process ended here."""


class Life:
    """Ends before so many more steps, ``left``; these methods are its steps."""

    left = -1
    """It does not end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *steps: tuple[type, str]) -> None:
        for owner, name in steps:
            monkeypatch.setattr(owner, name, partialmethod(_mortal, self, getattr(owner, name)))


def _mortal(owner: object, life: Life, step: Callable[..., Any], *given: Any) -> Any:
    if life.left == 0:
        raise Killed
    life.left -= 1
    return step(owner, *given)
