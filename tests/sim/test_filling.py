"""Crashes while queues are filled from the log: nothing comes twice, and nothing is missing."""

from __future__ import annotations

from tests.sim.filling import FillWorld


def test_queues_are_filled_once_however_often_the_power_goes() -> None:
    worlds = [FillWorld(seed).fill() for seed in range(40)]
    assert sum(world.recalled for world in worlds) > 1000
    assert sum(world.arrivals - world.recalled for world in worlds) > 100
