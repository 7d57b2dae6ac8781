"""Tables of the logs that simulated brokers leave behind: what they add up to is what a recovery finds; no JVM."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.kit.crash.opening import SimStore
from tests.kit.crash.projection import Projection
from tests.kit.crash.retained import Archive
from tests.kit.crash.world import CrashWorld
from tests.spark.readers import rows_in
from tests.spark.test_spans import in_spans

COMPARED_MIN = 100
"""Messages on queues after crashes."""
SPAN_BYTES = (1, 20_000, 1 << 30)


class Told(CrashWorld):
    """A world whose log the pipeline adds up after each crash."""

    def __init__(self, seed: int, folder: Path, *, large: bool) -> None:
        super().__init__(seed, lives=6, steps=300, large=large)
        self.folder = folder
        self.choice = random.Random(seed)
        self.compared = 0

    def recover(self) -> SimStore:
        store = super().recover()
        self.recovered = store.recovered
        return store

    def _log_is_true(self, archive: Archive, found: Projection) -> None:
        super()._log_is_true(archive, found)
        for name, data in archive.files(self.disk).items():
            (self.folder / name).write_bytes(data)
        held = {fields["name"]: len(found.items(number)) for number, fields in found.queues.items()}
        size = self.choice.choice(SPAN_BYTES)
        for rows in (rows_in(self.folder, "queues"), in_spans(self.folder, "queues", size)[0]):
            assert {row["queue"]: row["messageCount"] for row in rows} == held
        told = {(row["stream"], row["page"]): row for row in rows_in(self.folder, "pages")}
        for page in self.recovered.index.pages.pages():
            row = told[page.stream, page.number]
            assert (row["firstPlace"], row["messages"], row["droppedAt"]) == (page.first_place, page.kept_count, None)
        self.compared += sum(held.values())


@pytest.mark.parametrize(
    "large", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["small bodies", "large bodies"]
)
def test_tables_are_what_a_recovery_finds(tmp_path: Path, rng: random.Random, *, large: bool) -> None:
    seed, compared = rng.getrandbits(32), 0
    while compared < COMPARED_MIN:
        seed += 1
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = Told(seed, folder, large=large)
        try:
            world.run()
        except AssertionError as error:
            raise AssertionError(f"Told({seed}, ..., large={large}): {error}") from error
        compared += world.compared


def test_a_page_whose_number_comes_again(tmp_path: Path) -> None:
    """Pages 2 and 3 of a stream are dropped, and after a restart there is another page 2."""
    world = Told(2556629508, tmp_path, large=True)
    world.run()
    assert world.compared > 100
