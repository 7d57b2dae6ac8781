"""Names that the broker would make at random, counted instead, so that a run can be repeated."""

from __future__ import annotations

from itertools import count

from artemis_py.stomp.temporaries import Temporaries


def counted_names() -> Temporaries:
    """Temporary destinations with the secrets t1, t2, ..."""
    numbers = count(1)
    return Temporaries(lambda: f"t{next(numbers)}")
