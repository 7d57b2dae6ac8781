"""Looking after certificates: a look that fails harms no other."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from artemis_py.server.tls.acceptors import TlsAcceptors
from tests.kit.loops import until


@pytest.mark.asyncio
async def test_a_look_that_fails_is_told_and_the_others_go_on() -> None:
    told: list[str] = []
    config: Any = SimpleNamespace(configuration_file_refresh_period=1)
    limited_log: Any = SimpleNamespace(write=lambda line, **_: told.append(line))
    acceptors = TlsAcceptors(config, asyncio.get_running_loop(), limited_log, cast(Any, None))
    broken, sound = Mock(check=AsyncMock(side_effect=RuntimeError("odd"))), Mock(check=AsyncMock())
    acceptors._reloads += [broken, sound]
    acceptors.watch()
    await until(lambda: min(broken.check.await_count, sound.check.await_count) >= 2)
    acceptors.stop()
    assert "cannot be looked at" in told[0]
    assert "odd" in told[0]
    watching = acceptors._watching
    assert watching is not None
    await until(watching.cancelled)
