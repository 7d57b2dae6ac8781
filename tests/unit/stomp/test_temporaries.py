"""Who shares a temporary destination, and that nothing of it is kept when they have gone."""

from __future__ import annotations

from itertools import count

import pytest

from artemis_py.stomp.temporaries import Client, Temporaries
from tests.kit.in_process import counted_names

UUID = "/temp-queue/0b9a52c1-6a7e-4f0e-8a54-0d6d3f2a9b11"
PLAIN = "/temp-queue/mine"


@pytest.mark.parametrize(
    ("destination", "one", "other", "are_same"),
    [
        (PLAIN, (None, None), (None, None), False),
        (PLAIN, (None, "u"), (None, "u"), False),
        (PLAIN, ("c", "u"), ("c", "v"), True),
        (PLAIN, ("c", "u"), ("d", "u"), False),
        (PLAIN, ("c", "u"), (None, "u"), False),
        (UUID, (None, None), (None, None), True),
        (UUID, (None, "u"), (None, "u"), True),
        (UUID, (None, "u"), (None, "v"), False),
        (UUID, (None, "u"), (None, None), False),
        (UUID, ("c", "u"), ("d", "u"), False),
        ("/temp-queue/0B9A52C16A7E4F0E8A540D6D3F2A9B11", (None, None), (None, None), True),
        ("/temp-queue/0b9a52c1-6a7e", (None, None), (None, None), False),
    ],
)
def test_who_shares_a_name(
    destination: str, one: tuple[str | None, str | None], other: tuple[str | None, str | None], are_same: bool
) -> None:
    names = counted_names()
    first, second = (names.obtain(destination, Client(number, *who), 100) for number, who in ((1, one), (2, other)))
    assert first is not None
    assert second is not None
    assert (first is second) == are_same
    assert (first.address == second.address) == are_same


def test_nothing_is_kept_of_who_has_gone() -> None:
    numbers = count()
    names = Temporaries(lambda: str(next(numbers)))
    for round_number in range(3):
        for origin in range(20):
            for destination in (UUID, PLAIN, "/temp-topic/t"):
                names.obtain(destination, Client(20 * round_number + origin, "c" if origin % 2 else None, "u"), 100)
        for origin in range(20):
            names.release(20 * round_number + origin)
    assert [len(kept) for kept in (names._by_key, names._by_address, names._held)] == [0, 0, 0]
    assert names.obtain("/queue/mine", Client(1, None, None), 100) is None


def test_the_queue_of_a_subscription_has_a_name_that_nobody_can_guess() -> None:
    numbers = count()
    names = Temporaries(lambda: f"secret{next(numbers)}")
    assert [names.name_of_subscription() for _ in range(2)] == ["temporary-secret0", "temporary-secret1"]
