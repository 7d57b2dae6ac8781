"""The way of a message grows only on purpose: functions, files and system calls are counted, and compared with what is
stored.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tools.way import BUILD, EXCHANGES, FIGURES, Way, count

pytestmark = pytest.mark.e2e

GROWTH_MAX: Final = 1.01
_NOISE: Final = {"system_calls": 1.0}
"""A message more or less in a turn. Functions and files have no such excuse, unless many senders wait for one sync."""
_NOISE_OF: Final = {"hundred": {**_NOISE, "calls": 2.5}}
"""Each connection is flushed once more if the sync ends behind the turn that wrote its batch, and not in it."""
_TRIES: Final = 5
"""How many messages share a turn, and its calls, depends on the load. A longer way is longer each time."""


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_the_way_of_a_message_is_no_longer_than_it_was(exchange: str) -> None:
    stored: dict[str, Any] = json.loads(FIGURES.read_text())[BUILD][exchange]
    complaint = ""
    for _ in range(_TRIES):
        complaint = _complaint(count(exchange), exchange, stored)
        if not complaint:
            return
    pytest.fail(complaint)


def _complaint(way: Way, exchange: str, stored: dict[str, Any]) -> str:
    """What is longer than it was, with the functions that are new or entered more often; empty if nothing is."""
    before = stored["functions"]
    grown = {place: number for place, number in way.functions.items() if number > before.get(place, 0) + 0.05}
    lines = [f"  {place}: {before.get(place, 0)} -> {number}" for place, number in sorted(grown.items())]
    for name, limit in stored.items():
        if name != "functions":
            found = getattr(way, name)
            if found > limit * GROWTH_MAX + _NOISE_OF.get(exchange, _NOISE).get(name, 0):
                told = (
                    f"{exchange}: {found} {name.replace('_', ' ')} per message, and it was {limit}. If that is meant, "
                    f"`python tools/way.py {exchange} --write` stores it."
                )
                return "\n".join([told, "New on the way, or entered more often:", *lines])
    return ""
