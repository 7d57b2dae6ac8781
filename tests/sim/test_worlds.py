"""Hundreds of seeded worlds in every run; thousands with ``make soak``. A failure prints the seed that repeats it."""

from __future__ import annotations

import random
import time
import traceback
from itertools import count

import pytest

from artemis_py.version import IS_COMPILED
from tests.kit.crash.projection import Projection
from tests.kit.crash.world import DUPLICATE_IDS_KEPT, CrashWorld, Report
from tests.kit.selection import share_of

SHORT_WORLDS = share_of(200)
LONG_WORLDS = share_of(20)
LONG_WORLDS_MAX = 200
SEEN_MIN = {
    False: {"segments": 10, "depths": 20, "damages": 3, "faults": 3},
    True: {"promises": 50 * LONG_WORLDS, "large_bodies": 20 * LONG_WORLDS},
}
"""What long worlds see more of, together or, of segments, in one, by whether bodies are large: that the journal rolls
over, is compacted and torn, and that disks fail.
"""
SOAK_WORLDS = 4000
STRIDE = 4 if IS_COMPILED else 1
"""Of compiled modules one of so many boundaries, others in each run."""
IN_SOAK = pytest.mark.skipif("'slow' not in config.option.markexpr", reason="the long run: make soak")


@pytest.mark.parametrize("large", [False, True], ids=["small bodies", "large bodies"])
def test_short_worlds(rng: random.Random, large: bool) -> None:
    first = rng.getrandbits(32)
    reports = [CrashWorld(seed, large=large).run() for seed in range(first, first + SHORT_WORLDS)]
    assert sum(report.promises for report in reports) > SHORT_WORLDS, "the worlds promise too little to prove anything"
    assert sum(report.bursts for report in reports) > SHORT_WORLDS
    assert sum(report.fresh_deliveries for report in reports) > SHORT_WORLDS / 4  # a few worlds have most of them


@pytest.mark.parametrize("large", [False, True], ids=["small bodies", "large bodies"])
def test_long_worlds(rng: random.Random, large: bool) -> None:
    """Few seeds see a little of something only: then more worlds follow, until all was seen."""
    first = rng.getrandbits(32)
    reports: list[Report] = []
    unseen = set(SEEN_MIN[large])
    for seed in range(first, first + LONG_WORLDS_MAX):
        if len(reports) >= LONG_WORLDS and not unseen:
            break
        reports.append(CrashWorld(seed, lives=6, steps=300, large=large).run())
        for name in [*unseen]:
            found = [getattr(report, name) for report in reports]
            if (max(found) if name == "segments" else sum(found)) > SEEN_MIN[large][name]:
                unseen.remove(name)
    assert not unseen
    assert large or sum(report.errors for report in reports) < sum(report.frames for report in reports) / 10


@pytest.mark.parametrize("large", [False, True], ids=["small bodies", "large bodies"])
@pytest.mark.parametrize("place", [0, *(pytest.param(place, marks=(pytest.mark.slow, IN_SOAK)) for place in (1, 2))])
def test_every_boundary_between_disk_operations(rng: random.Random, place: int, large: bool) -> None:
    """The same life dies at its first, second, third... disk operation, and lives on after each."""
    seed = rng.getrandbits(32) + place
    for cut_after in count(rng.randrange(STRIDE) + 1, STRIDE):
        world = CrashWorld(seed, steps=80, large=large)
        try:
            left = world.live(world.open(), Projection(DUPLICATE_IDS_KEPT), cut_after=cut_after)
            passed = world.disk.operations
            world.live(*left)
        except Exception as error:
            world_is = f"CrashWorld({seed}, steps=80, large={large})"
            raise AssertionError(f"{world_is}.live(..., cut_after={cut_after}): {error}") from error
        if passed < cut_after:  # the life was over before
            return


@pytest.mark.slow
@pytest.mark.timeout(3600)
@IN_SOAK
def test_soak(rng: random.Random) -> None:
    """Thousands of worlds of all sizes; every seed that fails is told at the end."""
    first = rng.getrandbits(32)
    failed: list[str] = []
    started_s = time.monotonic()
    for seed in range(first, first + SOAK_WORLDS):
        lives, steps = ((4, 60), (6, 300), (12, 150), (3, 1500))[seed % 4]
        try:
            CrashWorld(seed, lives=lives, steps=steps, large=bool(seed & 4)).run()
        except Exception as error:
            failed.append("".join(traceback.format_exception_only(error)))
    print(f"{SOAK_WORLDS} worlds from seed {first} in {time.monotonic() - started_s:.0f} s, {len(failed)} failed")
    assert not failed, "\n\n".join(failed[:20])
