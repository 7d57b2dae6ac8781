"""The power goes while a broker opens its files: what the next opening finds is what this one would have found."""

from __future__ import annotations

import copy
import random

from artemis_py.record_log import RecoveredState
from tests.kit.crash.opening import SimStore
from tests.kit.crash.projection import Projection
from tests.kit.crash.world import DUPLICATE_IDS_KEPT, CrashWorld
from tests.kit.disk import File, PowerCut, SimDisk
from tests.kit.selection import share_of

STARTS = share_of(40)
STARTS_MAX = 1000


class Crashed(CrashWorld):
    """A world that remembers what each crash left."""

    left: dict[str, File]

    def recover(self) -> SimStore:
        self.left = copy.deepcopy(self.disk.files)
        return super().recover()


def _found(kept: RecoveredState) -> list[object]:
    """What is on each queue, what is in each page, and the numbers that were given."""
    on_queues = {
        queue_id: [(one.message.id, one.attempts, one.due_ms) for one in found]
        for queue_id, found in kept.messages.items()
    }
    in_pages = {
        (stream.number, page.number): (page.kept_count, page.kept_bytes)
        for stream in kept.streams
        for page in stream.pages
    }
    return [on_queues, in_pages, kept.message_id, kept.queue_id]


def _cut_each(left: dict[str, File], world: CrashWorld) -> int:
    """Let the power go at the first operation of an opening, the second, ... Returns how many there are."""
    disk = SimDisk(random.Random(1))
    disk.files = copy.deepcopy(left)
    whole = SimStore(disk, world.settings).files
    wanted, cuts = _found(whole.recovered_state()), 0
    while True:
        disk = SimDisk(random.Random(cuts))
        disk.files = copy.deepcopy(left)
        disk.cut_at = cuts + 1
        try:
            SimStore(disk, world.settings)
        except PowerCut:
            disk.crash()
        else:
            return cuts
        found = SimStore(disk, world.settings)
        assert all(damage.torn for damage in found.recovered.damages)
        assert not found.files.large.given_up
        assert _found(found.files.recovered_state()) == wanted, f"cut at operation {cuts + 1}"
        cuts += 1


def test_the_power_may_go_at_each_operation_of_an_opening(rng: random.Random) -> None:
    """Most openings have one operation that can be cut: then more worlds follow, until some had many."""
    most = 0
    for start in range(STARTS_MAX):
        if start >= STARTS and most > 5:
            break
        seed = rng.getrandbits(32)
        world = Crashed(seed, steps=80, large=True)
        world.live(world.open(), Projection(DUPLICATE_IDS_KEPT))
        try:
            most = max(most, _cut_each(world.left, world))
        except AssertionError as error:
            raise AssertionError(f"Crashed({seed}, steps=80, large=True): {error}") from error
    assert most > 5
