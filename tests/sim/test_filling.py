"""Crashes while queues are filled from the log: nothing comes twice, and nothing is missing."""

from __future__ import annotations

from tests.kit.selection import share_of
from tests.sim.filling import FillWorld

WORLDS = share_of(40)


def test_queues_are_filled_once_however_often_the_power_goes() -> None:
    worlds = [FillWorld(seed).fill() for seed in range(WORLDS)]
    assert sum(world.recalled for world in worlds) > 25 * WORLDS
    assert sum(world.arrivals - world.recalled for world in worlds) > 2.5 * WORLDS
