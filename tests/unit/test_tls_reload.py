"""Looking after certificates: a look that fails harms no other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from artemis_py.server.tls.acceptors import TlsAcceptors
from artemis_py.server.tls.reload import Reload
from tests.kit.loops import until


@dataclass(eq=False)
class Look:
    """Counts looks; raises ``error`` in each, if there is one."""

    error: Exception | None = None
    name: str = "looked at"
    count: int = 0
    twice: asyncio.Event = field(default_factory=asyncio.Event)

    async def check(self) -> None:
        self.count += 1
        if self.count == 2:
            self.twice.set()
        if self.error is not None:
            raise self.error


@pytest.mark.asyncio
async def test_a_look_that_fails_is_told_and_the_others_go_on() -> None:
    told: list[str] = []
    config: Any = SimpleNamespace(configuration_file_refresh_period=1)
    limited_log: Any = SimpleNamespace(write=lambda line, **_: told.append(line))
    acceptors = TlsAcceptors(config, asyncio.get_running_loop(), limited_log, cast(Any, None))
    broken, sound = Look(RuntimeError("odd")), Look()
    acceptors._reloads += cast(list[Reload], [broken, sound])
    acceptors.watch()
    async with asyncio.timeout(10):
        await broken.twice.wait()
        await sound.twice.wait()
    acceptors.stop()
    assert "cannot be looked at" in told[0]
    assert "odd" in told[0]
    watching = acceptors._watching
    assert watching is not None
    await until(watching.cancelled)
