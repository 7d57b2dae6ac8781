"""A socket that fails at any call that somebody chooses, and a client on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from unittest.mock import patch

from tests.kit import core
from tests.kit.fake_loop import Fails, FaultyTransport
from tests.kit.in_process import Client, InProcessBroker


class FaultyClient(Client):
    """A client whose server's end is a ``FaultyTransport``."""

    def __init__(self, world: InProcessBroker, fails: Fails = lambda *_: None) -> None:
        self.calls: list[str] = []
        super().__init__(world, partial(FaultyTransport, fails=fails, calls=self.calls))
        world.clients["victim"] = self


def breaking(owner: type, name: str, when: Callable[..., bool]) -> Any:
    """A patch: in the calls that are given a method raises what elsewhere says that a client wrote nonsense, and it
    does what it does in all others.
    """
    return patch.object(owner, name, core.breaking(getattr(owner, name), when, ValueError))


def named(errors: Mapping[str, BaseException]) -> Fails:
    """Fails at every call of these names."""
    return lambda _called, name: errors.get(name)
