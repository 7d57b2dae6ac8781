"""Slices of a log: with any size, whatever is in it, they have every message once, as every reader finds it."""

from __future__ import annotations

from pathlib import Path
from random import Random

from artemis_py.storage.retention.retention import Retention, RetentionSettings
from tests.kit.journal_story import Story
from tests.unit.replay.reading import Reading, told

TURNS = 60


def made(folder: Path, rng: Random, turns: int = TURNS) -> tuple[Story, Reading]:
    """A log with traffic of every kind; its retained segments are where ``retire`` has put them."""
    settings = RetentionSettings(folder / "kept", None, None)
    story = Story(folder / "journal", settings)
    reading = Reading(story.journal, folder / "journal", Retention(story.disk, folder / "journal", settings))
    story.generate(rng, turns)
    reading.files._retention._list()
    return story, reading


def test_every_message_once_with_slices_of_any_size(tmp_path: Path, rng: Random) -> None:
    _, reading = made(tmp_path, rng)
    expected = told(tmp_path)
    assert len(expected) > TURNS
    assert len({session for _, _, session, _ in expected}) > 1
    assert reading.log.end()[0] - reading.log.beginning().segment > 3, "too few segments"
    for size_bytes in (32, 100, 500, rng.randrange(32, 5000), 131072):
        assert reading.rows(size_bytes) == expected, size_bytes
    assert reading.said == []


def test_from_any_lsn_on(tmp_path: Path, rng: Random) -> None:
    _, reading = made(tmp_path, rng)
    expected = told(tmp_path)
    for lsn in range(0, reading.log.durable_lsn + 2, 7):
        spot = reading.log.after(lsn)
        assert spot is not None
        found = reading.rows(spot=spot)
        assert [row[0] for row in found if row[0] > lsn] == [row[0] for row in expected if row[0] > lsn]


def test_from_any_time_on(tmp_path: Path, rng: Random) -> None:
    _, reading = made(tmp_path, rng)
    expected = told(tmp_path)
    for _, time_ms, _, _ in expected[::10]:
        found = reading.rows(spot=reading.log.since(time_ms))
        assert [row for row in found if row[1] >= time_ms] == [row for row in expected if row[1] >= time_ms]
