"""The replays of a broker: each gets what it wants, once and in order, whatever the others do, and turns stay short."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from weakref import ref

import pytest

from artemis_py.config.matching import WildcardSyntax
from artemis_py.core.budget import Budget
from artemis_py.core.clock import Clock
from artemis_py.core.consumer import Consumer
from artemis_py.core.memory import REPLAYS, Holdings
from artemis_py.core.replay import manager, slices
from artemis_py.core.replay.bookmarks import bounds_of
from artemis_py.core.replay.manager import Replays
from artemis_py.core.replay.replay import Addresses, Replay, pace_of
from artemis_py.errors import BrokerError
from artemis_py.message import Account
from tests.kit.committer import SteppedCommitter
from tests.kit.core import entry_of
from tests.kit.journal_with_cursors import JournalWithCursors
from tests.kit.thing import Thing
from tests.unit.replay.reading import Reading

SYNTAX = WildcardSyntax()
ROOM_BYTES = 1 << 20
START_MS = 1_000_000
OVERDRAFT_UNITS = 64
"""How far a step may exceed its units: one message is always shown, whatever it costs."""


@dataclass
class View:
    """A replay, what it has shown, and what it should."""

    replay: Replay
    expected: list[int]
    address: str
    until_lsn: int
    shown: list[int] = field(default_factory=list)
    told: int = 0
    """How often it said that it has everything."""
    is_slow: bool = False


class World:
    """Replays and the log that a broker retains in ``folder``. ``units`` are those of a turn."""

    def __init__(self, folder: Path, units: int = 500) -> None:
        self.kept = JournalWithCursors(folder, bytes_max=None)
        self.reader = SteppedCommitter(lambda: None)
        """Reads slices when a turn begins."""
        self.reads = 0
        self.log = Reading(self.kept.journal, folder / "journal", self.kept.retention, self.reader).log
        self.records: list[tuple[int, str]] = []
        """Lsn and address of each message."""
        self.holdings = Holdings(Account())
        self.clock = Clock()
        self.replays = Replays(self.log, self.holdings, self.clock, SYNTAX)
        self.now_ms = START_MS
        self.units = units
        self.views: dict[int, View] = {}
        self._number = 0
        self.spent_max = 0
        self.spent = 0
        """Units of all turns."""
        self.bytes_max = 0

    def append(self, address: str = "a") -> None:
        """Publish a message, which is durable at once. No queue needs it, so a full segment is retained."""
        message = entry_of(id=len(self.records) + 1, body=bytes(200), address=address, persistent=True).message
        self.kept.now_ms = self.kept.journal.records.now_ms = self.now_ms
        lsn = self.kept.journal.records.published(message, [], 0)
        self.kept.turn()
        self.records.append((lsn, address))
        for view in self.views.values():
            if view.address in (address, "#") and not 0 <= view.until_lsn < lsn:
                view.expected.append(lsn)

    def open(self, bookmark: str = "EPOCH", address: str = "a", rate: str | None = None) -> View:
        """Begin a replay. Raises BrokerError."""
        self._number += 1
        number = self._number
        bounds = bounds_of(bookmark, self.log.last_lsn)
        choice = Consumer(number, None, settles=True, destructive=False)
        replay = Replay(number, None, 0, Addresses((address,), SYNTAX), bounds, choice, pace_of(rate, None))
        until_lsn = bounds.until_lsn
        expected = [
            lsn
            for lsn, of in self.records
            if lsn >= self.log.first_lsn() and lsn > bounds.after_lsn and not 0 <= until_lsn < lsn
            if address in (of, "#")
        ]
        self.replays.open(replay, self.now_ms)
        view = self.views[number] = View(replay, expected, address, until_lsn)
        return view

    def turn(self) -> None:
        """One turn of the server."""
        while self.reader.step():
            self.reads += 1
        replays, budget = self.replays, Budget()
        budget.refill(self.units)
        self.clock.ring(self.clock.steady_ms(self.now_ms), 100)
        replays.take_arrived(budget, self.now_ms)
        self._tell()
        budget.allow(2)
        least = budget.left
        while not budget.is_spent and (ready := replays.next_ready()) is not None:
            view = self.views[ready.id]
            if view.is_slow:
                replays.stall(ready)
                continue
            replays.serve(ready, budget, ROOM_BYTES, self.now_ms)
            self._take(view)
        self._tell()
        self.spent += self.units - budget.left
        self.spent_max = max(self.spent_max, least - budget.left)
        replays.request_slices()
        self.bytes_max = max(self.bytes_max, self.holdings.of(REPLAYS))

    def _take(self, view: View) -> None:
        entries, view.replay.outbox = view.replay.outbox, []
        view.shown += [entry.message.lsn for entry in entries]
        view.told += view.replay.completes
        view.replay.completes = False

    def _tell(self) -> None:
        while self.replays.news:
            replay = self.replays.news.pop()
            if not replay.is_closed:
                self._take(self.views[replay.id])

    def set_clock(self, by_ms: int) -> None:
        """Somebody sets the wall clock."""
        self.now_ms += by_ms
        self.clock.set_ahead(self.clock.shift_ms + by_ms)

    def rest(self) -> None:
        """Turns until nothing happens."""
        for _ in range(100_000):
            self.turn()
            spot = self.replays.tail.spot
            has_all = spot is None or self.log.end() <= spot.place
            if has_all and self.reader.idle and not self.replays.has_ready:
                return
        raise AssertionError("it never rests")

    def check(self) -> None:
        """Everybody has seen what they should."""
        for view in self.views.values():
            assert view.shown == view.expected, view.replay.id


def test_each_gets_everything_whatever_the_others_do(tmp_path: Path, rng: Random) -> None:
    """Replays begin and end, are paused, and do not read, while messages are published to three addresses."""
    world = World(tmp_path, units=rng.choice((1, 7, 50, 500)))
    for _ in range(rng.randrange(60)):
        world.append(rng.choice("abc"))
    for _ in range(400):
        match rng.randrange(7):
            case 0 | 1:
                world.append(rng.choice("abc"))
            case 2:
                low, high = sorted(rng.randrange(world.log.last_lsn + 20) for _ in range(2))
                bookmark = rng.choice(("EPOCH", "NOW", str(low), f"[{low}:{high}]", f"({low}:NOW]", f"({low}:]"))
                world.open(bookmark, rng.choice(("a", "b", "#")))
            case 3 if world.views:
                view = rng.choice(list(world.views.values()))
                (world.replays.resume if view.replay.is_paused else world.replays.pause)(view.replay, world.now_ms)
            case 4 if world.views:
                view = rng.choice(list(world.views.values()))
                view.is_slow = not view.is_slow
                if not view.is_slow:
                    world.replays.wake(view.replay, world.now_ms)
            case 5 if world.views and rng.random() < 0.2:
                view = world.views.pop(rng.choice(list(world.views)))
                world.replays.close(view.replay)
                assert view.shown == view.expected[: len(view.shown)]
            case _:
                world.turn()
    for view in world.views.values():
        view.is_slow = False
        world.replays.wake(view.replay, world.now_ms)
        world.replays.resume(view.replay, world.now_ms)
    world.rest()
    world.check()
    assert world.replays.count == len(world.views)
    for view in world.views.values():
        has_ended = 0 <= view.until_lsn <= world.log.last_lsn
        assert view.replay.has_ended == has_ended
        assert view.told == (has_ended or view.until_lsn < 0), "each is told once that it has everything"
    assert world.spent_max <= world.units + OVERDRAFT_UNITS


@pytest.mark.parametrize(
    ("seed", "why"),
    [
        (10, "those who wanted more than the slice at the end were looked at for ever"),
        (1, "who came while a slice was handed out did not get what was in it"),
    ],
)
def test_worlds_in_which_something_once_went_wrong(tmp_path: Path, seed: int, why: str) -> None:
    test_each_gets_everything_whatever_the_others_do(tmp_path, Random(seed))


@pytest.mark.interpreted
def test_slices_take_no_more_memory_than_they_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many replays there are, each at another place; they wait for each other."""
    monkeypatch.setattr(slices, "CACHE_BYTES_MAX", 60_000)
    monkeypatch.setattr(slices, "SLICE_BYTES", 5000)
    monkeypatch.setattr(slices, "_WEIGHT_MIN", 3000)
    world = World(tmp_path)
    for _ in range(400):
        world.append()
    for number in range(200):
        world.open(str(2 * number))
    world.rest()
    world.check()
    assert 15_000 < world.bytes_max <= 60_000
    for view in world.views.values():
        world.replays.close(view.replay)
    assert world.holdings.of(REPLAYS) == 0


def test_replays_at_the_same_place_share_what_is_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    for _ in range(100):
        world.append()
    world.open()
    world.rest()
    alone = world.reads
    for _ in range(50):
        world.open()
    world.rest()
    world.check()
    assert world.reads == alone, "slices that are in memory are not read again"


def test_what_is_published_is_read_once_for_all_who_have_everything(tmp_path: Path) -> None:
    world = World(tmp_path)
    for _ in range(100):
        world.open("NOW")
    world.rest()
    before = world.reads
    for _ in range(20):
        world.append()
        world.rest()
    world.check()
    assert world.reads - before == 20


@pytest.mark.parametrize("others", [0, 1000])
def test_a_message_costs_no_more_with_a_thousand_who_do_not_want_it(tmp_path: Path, others: int) -> None:
    world = World(tmp_path)
    world.open("NOW")
    for number in range(others):
        world.open("NOW", f"other.{number}")
    world.rest()
    world.spent = 0
    for _ in range(10):
        world.append()
        world.rest()
    world.check()
    assert world.spent <= 200


def test_replays_take_turns(tmp_path: Path) -> None:
    """One that wants much does not keep another waiting for longer than its share."""
    world = World(tmp_path, units=manager._SERVED_UNITS_MAX)
    world.append("little")
    for _ in range(300):
        world.append("much")
    greedy, modest = world.open(address="#"), world.open(address="little")
    while not modest.shown:
        world.turn()
    assert len(greedy.shown) < 100
    world.rest()
    world.check()


def test_what_was_removed_is_never_left_out_silently(tmp_path: Path, rng: Random) -> None:
    """A replay either ends with the reason, or has begun with what was left."""
    world = World(tmp_path)
    for _ in range(150):
        world.append()
    for number in range(0, 150, 7):
        world.open("EPOCH" if number % 2 else str(number), rate="1000")
    for step in range(30):
        world.turn()
        world.now_ms += rng.randrange(10)
        if step % 3 == 0:
            world.kept.retention.give_up_oldest()
            world.replays._slices._kept.clear()
    world.now_ms += 1_000_000
    for _ in range(500):
        world.now_ms += 1000
        world.rest()
    failed = 0
    for view in world.views.values():
        failure = view.replay.failure
        begun = view.expected.index(view.shown[0]) if view.shown else 0
        assert begun == 0 or view.replay.bounds.after_lsn == 0
        if failure is not None:
            failed += 1
            assert f"after bookmark {view.replay.passed_lsn} was removed" in failure
            assert view.shown == view.expected[begun : begun + len(view.shown)]
            assert view.replay.passed_lsn >= (view.shown or [0])[-1]
        else:
            assert view.shown == view.expected[begun:]
            assert view.shown
    assert failed
    with pytest.raises(BrokerError, match="The log after bookmark 1 was removed"):
        world.open("1")


@pytest.mark.parametrize("step", ["asked", "arrived", "ended", "waits for receipts"])
def test_who_leaves_is_let_go(tmp_path: Path, step: str) -> None:
    """No turn looks at the replays when the last has left."""
    world = World(tmp_path)
    for _ in range(3):
        world.append()
    replay = world.open("[EPOCH:EPOCH]" if step == "ended" else "EPOCH").replay
    world.views.clear()
    client = Thing()
    replay.owner, left = client, ref(client)
    if step == "asked":
        world.replays.request_slices()
        assert not world.reader.idle
    elif step == "arrived":
        world.replays.request_slices()
        budget = Budget()
        world.reader.step()
        while not world.replays._arrived:
            budget.refill(1)
            world.replays.take_arrived(budget, world.now_ms)
    elif step == "ended":
        assert world.replays.news == [replay]
    else:
        world.replays.behind_receipts[replay.id] = replay
    world.replays.close(replay)
    del replay, client
    assert left() is None


# ---- times -----------------------------------------------------------------------------------------

UNTIL = "[NOW:19700101T001740Z]"
"""A minute after the first date of these worlds."""
HOUR_MS = 3_600_000


def steadily(world: World, duration_ms: int) -> None:
    """Let time pass, with a turn whenever a replay wants one."""
    end_ms = world.clock.steady_ms(world.now_ms) + duration_ms
    while (due_ms := world.replays.alarms.first_ms()) is not None and due_ms <= end_ms:
        world.now_ms = max(world.now_ms, world.clock.date_ms(due_ms))
        world.turn()
        assert world.replays.alarms.first_ms() != due_ms, "a time that has come is over"
    world.now_ms = world.clock.date_ms(end_ms)
    world.rest()


@pytest.mark.parametrize(("bookmark", "rate"), [(UNTIL, None), ("EPOCH", "1")])
def test_nobody_waits_for_a_replay_that_is_closed(tmp_path: Path, bookmark: str, rate: str | None) -> None:
    """A time that is left behind would make turns run for ever: nothing looks at it without a replay."""
    world = World(tmp_path)
    for _ in range(3):
        world.append()
    view = world.open(bookmark, rate=rate)
    world.rest()
    assert world.replays.alarms.first_ms() is not None
    world.replays.close(view.replay)
    assert world.replays.alarms.first_ms() is None


def test_a_replay_until_a_date_ends_when_that_is_past(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.open(UNTIL)
    steadily(world, 60_000)
    world.append()
    world.rest()
    assert view.shown == view.expected
    assert not view.replay.has_ended
    steadily(world, 1)
    assert (view.replay.has_ended, view.told) == (True, 1)


def test_a_replay_until_a_date_goes_on_when_the_clock_is_set_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    view = world.open(UNTIL)
    world.rest()
    world.now_ms += 30_000
    world.set_clock(-HOUR_MS // 4)
    steadily(world, HOUR_MS // 4 + 29_000)
    assert not view.replay.has_ended
    world.append()
    world.rest()
    assert view.shown == view.expected, "the date is not past"
    steadily(world, 2_000)
    assert view.replay.has_ended


def test_a_replay_until_a_date_ends_soon_when_the_clock_is_set_ahead(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.set_clock(-HOUR_MS // 4)
    view = world.open(UNTIL)
    world.rest()
    world.set_clock(HOUR_MS)
    steadily(world, 60_000)
    assert view.replay.has_ended
