"""A process that is killed before any of its steps, played by exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


class Killed(BaseException):
    """The process ended here."""


class Life:
    """Ends before so many more steps, ``left``; these methods are its steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *steps: tuple[type, str]) -> None:
        self.left = -1
        """It does not end."""
        for owner, name in steps:
            monkeypatch.setattr(owner, name, self._mortal(getattr(owner, name)))

    def _mortal(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def mortal(*given: Any) -> Any:
            if self.left == 0:
                raise Killed
            self.left -= 1
            return step(*given)

        return mortal
