"""Places, and the limits on what is read ahead of consumers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.config.settings import AddressSettings
from artemis_py.core.memory import Memory
from artemis_py.core.pages import ReadAhead
from artemis_py.paged_messages import PlaceSet

FIRST = 1000
PLACES = st.integers(FIRST, FIRST + 100)
MIB = 1 << 20


@given(st.lists(PLACES), st.lists(PLACES))
def test_places_are_a_set(added: list[int], looked_for: list[int]) -> None:
    """As a set behaves, also after it was written down and read again."""
    places, known = PlaceSet(FIRST), set[int]()
    for place in added:
        assert places.add(place) == (place not in known)
        known.add(place)
    again = PlaceSet(FIRST, places.encode())
    for place in [*added, *looked_for, FIRST + 5000]:
        assert (place in places) == (place in again) == (place in known)


@given(st.integers(FIRST, FIRST + 100), st.sets(PLACES), st.sets(PLACES))
def test_places_can_be_filled(end: int, added: set[int], without: set[int]) -> None:
    """Whatever was in it before: afterwards everything before the end is, but for some."""
    places = PlaceSet(FIRST)
    for place in added:
        places.add(place)
    without = {place for place in without if place < end}
    places.fill(end, sorted(without))
    assert {place for place in range(FIRST, FIRST + 200) if place in places} == set(range(FIRST, end)) - without


def limits(**values: Any) -> tuple[int, int, int, int]:
    """Bytes and messages with what consumers hold, bytes and messages without."""
    one = ReadAhead.of(AddressSettings(**values))
    return one.bytes_max, one.messages_max, one.ready_bytes_max, one.ready_messages_max


def test_what_is_read_ahead_by_the_settings() -> None:
    """Two pages where nothing is said; with everything off the memory of the address, or else two pages."""
    off = {
        "max_read_page_bytes": -1, "max_read_page_messages": -1, "prefetch_page_bytes": -1,
        "prefetch_page_messages": -1,
    }  # fmt: skip
    assert limits(**off, max_size_bytes=5 * MIB) == (5 * MIB, -1, -1, -1)
    assert limits(**off, page_size_bytes=MIB) == (2 * MIB, -1, -1, -1)
    only_messages = {**off, "max_read_page_messages": 7}
    assert limits(**only_messages, max_size_bytes=5 * MIB) == (-1, 7, -1, -1)


@pytest.mark.parametrize(
    ("of", "ready", "held", "has_room"),
    [
        (ReadAhead(100, -1, -1, -1), (1, 40), (1, 59), True),
        (ReadAhead(100, -1, -1, -1), (1, 40), (1, 60), False),
        (ReadAhead(-1, 3, -1, -1), (1, 40), (1, 60), True),
        (ReadAhead(-1, 3, -1, -1), (2, 40), (1, 60), False),
        (ReadAhead(-1, -1, 50, -1), (1, 49), (9, 900), True),
        (ReadAhead(-1, -1, 50, -1), (1, 50), (0, 0), False),
        (ReadAhead(-1, -1, -1, 2), (1, 40), (9, 900), True),
        (ReadAhead(-1, -1, -1, 2), (2, 40), (0, 0), False),
        (ReadAhead(0, -1, -1, -1), (0, 0), (0, 0), False),
        (ReadAhead(-1, -1, -1, -1), (9, 900), (9, 900), True),
    ],
)
def test_reading_ahead_has_limits(of: ReadAhead, ready: tuple[int, int], held: tuple[int, int], has_room: bool) -> None:
    assert (of.reached(*ready, *held) == "") is has_room


@pytest.mark.parametrize(
    ("bytes_max", "messages_max", "count", "size", "is_full"),
    [
        (-1, 5, 9, 900, False),
        (0, 5, 9, 900, False),
        (100, -1, 9, 99, False),
        (100, -1, 9, 100, True),
        (100, 5, 4, 99, False),
        (100, 5, 5, 99, True),
    ],
)
def test_all_addresses_together_have_limits(
    bytes_max: int, messages_max: int, count: int, size: int, is_full: bool
) -> None:
    """Messages count only where there is a limit on bytes."""
    memory = Memory(bytes_max, messages_max)
    memory.account.charge(count, size)
    assert memory.is_full is is_full
    assert memory.has_room_for(0, 1) is (bytes_max < 0 or bytes_max == 0 or size < bytes_max)
