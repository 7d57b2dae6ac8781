"""The live table of queues: in a terminal with its keys, and without one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.commands.user import User
from tests.kit.client import connected
from tests.kit.meanwhile import meanwhile

pytestmark = pytest.mark.e2e


@contextmanager
def traffic(user: User) -> Iterator[None]:
    """Messages for orders, all the time."""
    assert user.broker is not None
    with (
        connected(user.broker.port) as client,
        meanwhile(lambda: client.ask("SEND", {"destination": "orders"}, b"x"), pause_s=0.005),
    ):
        yield


def test_one_table_without_a_terminal(user: User) -> None:
    user.printed("send", "jobs", "x", "--count", "3000")
    with traffic(user):
        lines = user.printed("top", "--interval", "0.3").splitlines()
    assert lines[0].split() == [
        "queue", "address", "depth▼", "growth/s", "in/s", "out/s", "consumers", "unacked"
    ]  # fmt: skip
    assert lines[1].split() == ["jobs", "3,000", "0", "0"]
    name, depth, growth, rate_in, *_ = lines[2].split()
    assert name == "orders"
    assert int(depth.replace(",", "")) > 0
    assert growth.startswith("+")
    assert float(rate_in.replace(",", "")) > 5


def test_lines_of_json(user: User) -> None:
    with traffic(user):
        text = user.printed(
            "top", "--json", "--count", "2", "--interval", "0.3", "--sort", "in", "--where", "name!=none"
        )
    looks = [json.loads(line) for line in text.splitlines()]
    assert len(looks) == 2
    busiest = looks[1]["queues"][0]
    assert (busiest["name"], busiest["addedPerSecond"] > 5, busiest["ackedPerSecond"]) == ("orders", True, 0.0)


def test_keys_sort_pause_and_quit(user: User) -> None:
    user.printed("send", "jobs", "x", "--count", "7")
    with user.terminal("top", "--interval", "0.2") as terminal:
        terminal.await_text("depth▼")
        terminal.await_text("3 of 3 queues")
        terminal.await_text("q quit")
        rows = terminal.text[terminal.text.index("depth▼") :]
        assert rows.index("jobs") < rows.index("orders")
        for key, shown in (
            ("n", "queue▲"),
            ("n", "queue▼"),
            ("i", "in/s▼"),
            (" ", "paused"),
            (" ", ""),
            ("+", "every 0.4 s"),
        ):
            terminal.printed = b""
            terminal.type(key)
            terminal.await_text(shown)
        terminal.type("\x1b[A")  # an arrow is no key of this table
        terminal.type("q")
        assert terminal.await_end() == 0
        assert terminal.printed.endswith(b"\x1b[?1049l")


def test_it_tells_that_the_broker_is_gone_and_goes_on(user: User) -> None:
    with user.terminal("top", "--interval", "0.2", "--url", f"{user.url}/nothing") as terminal:
        terminal.await_text("no such path")
        assert terminal.await_end() == 1


def test_there_is_no_broker(alone: User) -> None:
    assert "nothing listens there" in alone.refused("top", "--url", "http://127.0.0.1:1")
