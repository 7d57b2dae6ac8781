"""Who is accepted when descriptors run out, what is kept for storage, and how much is written about it."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
from unittest.mock import DEFAULT, Mock

import pytest

from artemis_py.server.descriptors import Descriptors, lowest_free, raise_limit
from artemis_py.server.failures import LINES_MAX, WINDOW_S, Faults, RateLimitedLog
from artemis_py.server.listener import Listener
from tests.kit.loops import called_back, until

LOOPBACK = "127.0.0.1"


class Desk:
    """A listener on a port of its own, whom it accepted, and what it said."""

    def __init__(self, descriptor_max: int) -> None:
        self.lines: list[str] = []
        self.taken: list[asyncio.BaseTransport] = []
        self.bound = socket.create_server((LOOPBACK, 0))
        self.stored = 0
        self.listener = Listener(
            asyncio.get_running_loop(),
            "stomp",
            self.bound,
            lambda _: Mock(connection_made=self.taken.append),
            descriptor_max,
            RateLimitedLog(self.lines.append),
            lambda: self.stored,
        )
        self.listener.open(100)
        self.clients: list[socket.socket] = []

    def come(self, count: int) -> None:
        """So many clients more."""
        for _ in range(count):
            self.clients.append(socket.create_connection(self.bound.getsockname()))

    async def close(self) -> None:
        """Everybody goes."""
        self.listener.close()
        for client in self.clients:
            client.close()
        for transport in self.taken:
            transport.close()
        await called_back()


@pytest.mark.asyncio
async def test_it_pauses_before_the_last_descriptors_and_goes_on_by_itself() -> None:
    desk = Desk(lowest_free() + 20)
    desk.come(20)
    await until(lambda: desk.listener.is_paused)
    taken = len(desk.taken)
    assert taken < 20
    assert len(desk.lines) == 1
    assert "acceptor stomp accepts no connections until others are closed" in desk.lines[0]
    for client in desk.clients[:taken]:
        client.close()
    for transport in desk.taken:
        transport.close()
    await until(lambda: len(desk.taken) > taken)
    assert desk.listener.pauses >= 1
    await desk.close()


@pytest.mark.asyncio
async def test_what_storage_has_open_is_not_counted_against_clients() -> None:
    """It was kept for it."""
    desk = Desk(lowest_free() + 4)
    desk.stored = 100
    desk.come(20)
    await until(lambda: len(desk.taken) == 20)
    assert not desk.listener.is_paused
    await desk.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
async def test_a_system_that_accepts_nobody_is_told_once_and_asked_again(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(1 << 20)
    failing = Mock(wraps=desk.bound)
    failing.accept.side_effect = [OSError(code, os.strerror(code))] * 5 + [DEFAULT] * 100
    monkeypatch.setattr(desk.listener, "_bound", failing)
    desk.come(3)
    await until(lambda: len(desk.taken) == 3)
    assert len(desk.lines) <= LINES_MAX
    assert os.strerror(code) in desk.lines[0]
    await desk.close()


@pytest.mark.asyncio
async def test_a_client_that_left_before_it_was_accepted_is_nobody() -> None:
    desk = Desk(1 << 20)
    desk.come(1)
    desk.clients.pop().close()
    desk.come(1)
    await until(lambda: len(desk.taken) == 2)
    assert desk.lines == []
    await desk.close()


# ---- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [64, 128, 256, 1024, 4096, 1 << 20])
def test_what_is_kept_is_enough_and_leaves_most_to_clients(limit: int) -> None:
    kept = Descriptors(limit)
    assert 0 < kept.stomp_max < kept.http_max < limit
    assert limit - kept.http_max >= 3 * kept.open_files_max + kept.http
    assert kept.stomp_max >= limit // 4
    assert 4 <= kept.open_files_max <= 64


def test_the_soft_limit_becomes_the_hard_one(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [(100, 300)]
    monkeypatch.setattr("artemis_py.server.descriptors.resource.getrlimit", lambda _: limits[-1])
    monkeypatch.setattr("artemis_py.server.descriptors.resource.setrlimit", lambda _, pair: limits.append(pair))
    assert raise_limit().limit == 300
    assert limits[-1] == (300, 300)
    limits.append((100, resource.RLIM_INFINITY))
    assert raise_limit().limit == 1 << 20


def test_a_limit_that_may_not_be_raised_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artemis_py.server.descriptors.resource.getrlimit", lambda _: (100, 300))
    monkeypatch.setattr(
        "artemis_py.server.descriptors.resource.setrlimit",
        Mock(side_effect=ValueError("not allowed to raise maximum limit")),
    )
    assert raise_limit().limit == 100


# ---- lines ---------------------------------------------------------------------------------------


def test_a_line_that_repeats_is_written_when_its_time_is_over() -> None:
    lines, now_s = list[str](), [0.0]
    limited_log = RateLimitedLog(lines.append, lambda: now_s[0])
    for _ in range(1000):
        limited_log.write("warning: the same")
    limited_log.write("warning: another")
    assert lines == ["warning: the same"] * LINES_MAX + ["warning: another"]
    now_s[0] = WINDOW_S - 1
    limited_log.write_held()
    assert len(lines) == LINES_MAX + 1
    now_s[0] = WINDOW_S
    limited_log.write_held()
    assert lines[LINES_MAX + 1 :] == [f"not_written_before={1000 - LINES_MAX - 1} warning: the same"]
    now_s[0] = 2 * WINDOW_S
    limited_log.write_held()
    assert len(lines) == LINES_MAX + 2


def test_what_was_held_back_is_written_at_the_end() -> None:
    lines = list[str]()
    limited_log = RateLimitedLog(lines.append, lambda: 0.0)
    for number in range(LINES_MAX + 1):
        limited_log.write(f"warning: client {number}", "clients")
    limited_log.end()
    assert lines[-1] == f"warning: client {LINES_MAX}"


def test_lines_of_one_kind_count_together_whatever_they_say() -> None:
    lines = list[str]()
    limited_log = RateLimitedLog(lines.append, lambda: 0.0)
    for number in range(10):
        limited_log.write(f"warning: client {number}", "clients")
    assert len(lines) == LINES_MAX


@pytest.mark.asyncio
async def test_what_nobody_caught_is_one_line_and_limited() -> None:
    """Through the event loop itself, as the server sets it up."""
    lines = list[str]()
    limited_log = RateLimitedLog(lines.append, lambda: 0.0)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(Faults(limited_log).caught_by_loop)
    for _ in range(50):
        loop.call_soon(lambda: int("a mistake"))
    await called_back()
    assert len(lines) == LINES_MAX
    assert "ValueError: invalid literal" in lines[0]
    assert "test_listener.py" in lines[0]
    assert "\n" not in lines[0]
