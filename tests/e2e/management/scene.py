"""What the test of each operation needs to know of it: what is there before, and what is right afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import pytest

from tests.e2e.management.told import Told
from tests.kit.client import Closed, StompSocket

Step: TypeAlias = Callable[[Told], object]


class Exactly(NamedTuple):
    """The answer is this."""

    answer: object


class Rows(NamedTuple):
    """The answer is a list of these."""

    kind: str
    names: set[str]


class Shows(NamedTuple):
    """Whatever the answer is, this path has these values then; None: there is nothing any more."""

    path: str
    values: Mapping[str, object] | None


Wanted: TypeAlias = "Exactly | Rows | Shows | dict[str, Any] | list[Wanted] | Callable[[Told, Any], object]"
"""What is right. A dict: these values of the answer; a list: all of these; a function: what it looks at, unless it
returns False.
"""
NOTHING: Final = Exactly(None)


def verify(told: Told, wanted: Wanted, answer: Any) -> None:
    """Fails unless an answer, and what was to come of it, is right."""
    match wanted:
        case Exactly(value):
            assert answer == value
        case Rows(kind, names):
            assert {row[kind] for row in answer["data"]} == names
            assert answer["count"] == len(names)
        case Shows(path, None):
            assert told.ask("GET", path)[0] == 404
        case Shows(path, values):
            found = told.asked("GET", path)
            assert {name: found[name] for name in values or ()} == values
        case dict():
            assert {name: answer[name] for name in wanted} == wanted
        case list():
            for one in wanted:
                verify(told, one, answer)
        case _:
            assert wanted(told, answer) is not False, answer


@dataclass
class Scene:
    """The arguments, what is right afterwards, and what is there before: a step, or what a POST to a path brings."""

    arguments: dict[str, str]
    right: Wanted
    before: Step | str | None = None
    after: Step | None = None
    stores: bool = field(default=False, kw_only=True)
    """Does it need a broker with a journal?"""
    by_bean: Wanted | None = field(default=None, kw_only=True)
    """What is right if a bean of Artemis did it, whose answer may be another, or none; None: the same."""


TWO_SENT: Final = partial(Told.send, destination="/queue/orders", bodies="xx")


def at_the_desk(told: Told) -> StompSocket:
    """Ann has sent to orders, and waits for messages of jobs that never come."""
    client = told.guest(client_id="desk", login="ann")
    client.subscribe("/queue/jobs", selector="x = 1")
    client.ask("SEND", {"destination": "/queue/orders"}, b"hello")
    return client


def is_closed(told: Told, answer: Any) -> None:
    """The connection of the last guest was closed, and it was told why."""
    client = told.guests[-1]
    assert "An operator has closed" in (client.expect("ERROR").header("message") or "")
    with pytest.raises(Closed):
        client.receive()
    assert answer is True or answer["closed"] in ("s1", 1)
