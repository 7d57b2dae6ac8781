"""What the test of each operation needs to know of it, and the steps and checks that many of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pytest

from tests.e2e.management.told import Told
from tests.kit.client import Closed, StompSocket

Step: TypeAlias = Callable[[Told], object]
Check: TypeAlias = Callable[[Told, Any], object]


@dataclass
class Scene:
    """What is there before, the arguments, and what is right afterwards."""

    arguments: dict[str, str]
    check: Check
    before: Step = lambda _: None
    after: Step = lambda _: None
    stores: bool = field(default=False, kw_only=True)
    """Does it need a broker with a journal?"""
    by_bean: Check | None = field(default=None, kw_only=True)
    """What is right if a bean of Artemis did it, whose answer may be another, or none; None: what ``check`` says."""


# ---- steps -----------------------------------------------------------------------------------------


def posted(*paths: str) -> Step:
    """These requests, each of which succeeds."""

    def before(told: Told) -> None:
        for path in paths:
            status, answer = told.ask("POST", path)
            assert status == 200, answer

    return before


def sent(queue: str, count: int) -> Step:
    """So many messages are on a queue."""
    return lambda told: told.send(queue, count)


def at_the_desk(told: Told) -> StompSocket:
    """Ann has sent to orders, and waits for messages of jobs that never come."""
    client = told.guest(client_id="desk", login="ann")
    client.subscribe("/queue/jobs", selector="x = 1")
    client.ask("SEND", {"destination": "/queue/orders"}, b"hello")
    return client


# ---- checks ----------------------------------------------------------------------------------------


def rows(kind: str, names: set[str]) -> Check:
    """The answer is a list of these."""

    def check(_told: Told, answer: Any) -> None:
        assert {row[kind] for row in answer["data"]} == names
        assert answer["count"] == len(names)

    return check


def holds(**values: object) -> Check:
    """The answer has these values."""

    def check(_told: Told, answer: Any) -> None:
        assert {name: answer[name] for name in values} == values

    return check


def gives(wanted: object) -> Check:
    """The answer is this."""

    def check(_told: Told, answer: Any) -> None:
        assert answer == wanted

    return check


NOTHING: Final = gives(None)


def right(is_right: Callable[[Any], bool]) -> Check:
    """The answer is one of these."""

    def check(_told: Told, answer: Any) -> None:
        assert is_right(answer), answer

    return check


def shows(path: str, **values: object) -> Check:
    """Whatever the answer is, this path has these values then; without values there is nothing any more."""

    def check(told: Told, _answer: Any) -> None:
        status, found = told.ask("GET", path)
        assert (status, {name: found[name] for name in values}) == (200 if values else 404, values)

    return check


def both(*checks: Check) -> Check:
    """All of these are right."""
    return lambda told, answer: [check(told, answer) for check in checks]


def is_closed(told: Told, answer: Any) -> None:
    """The connection of the last guest was closed, and it was told why."""
    client = told.guests[-1]
    assert "An operator has closed" in (client.expect("ERROR").header("message") or "")
    with pytest.raises(Closed):
        client.receive()
    assert answer is True or answer["closed"] in ("s1", 1)
