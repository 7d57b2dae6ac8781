"""The end of the log: one reader for all replays that have everything before it."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, final

from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.wildcards import WildcardIndex
from artemis_py.core.budget import Budget
from artemis_py.core.replay.replay import FOLLOWING, Replay
from artemis_py.core.replay.slices import SliceCache, SliceRequest
from artemis_py.replay_log import AddressChoice, Place, ReplayLog, Spot

# ---- followers -------------------------------------------------------------------------------------------------------
#
# Replays that have everything: who of them wants a message that is published now.


_SLACK: Final = 64
"""This many void ends are not worth a clean-up."""


@final
class _Fans:
    """The followers that want the same."""

    __slots__ = ("choice", "replays")

    def __init__(self, choice: AddressChoice) -> None:
        self.choice = choice
        self.replays: dict[int, Replay] = {}
        """By number."""


@final
class Followers:
    """Finds them by the address of a message. So a message costs as much with one as with thousands that do not want
    it. Those with an end are found when it has come.
    """

    __slots__ = ("_by_key", "_by_pattern", "_ending", "_ends", "_index", "count")

    def __init__(self, syntax: WildcardSyntax) -> None:
        self.count = 0
        self._index = WildcardIndex(syntax)
        self._by_key: dict[str, _Fans] = {}
        self._by_pattern: dict[str, dict[str, _Fans]] = {}
        self._ends: list[tuple[int, int]] = []
        """A heap of (last lsn, number) of the replays in ``_ending``; others are void."""
        self._ending: dict[int, Replay] = {}
        """Replays with an end, from the first time that they follow until they are forgotten."""

    def add(self, replay: Replay) -> None:
        """A replay has everything."""
        key = replay.addresses.key
        fans = self._by_key.get(key)
        if fans is None:
            fans = self._by_key[key] = _Fans(replay.addresses)
            for pattern in fans.choice.patterns:
                self._index.add(pattern)
                self._by_pattern.setdefault(pattern, {})[key] = fans
        fans.replays[replay.id] = replay
        self.count += 1
        if replay.bounds.until_lsn >= 0 and replay.id not in self._ending:
            self._ending[replay.id] = replay
            heappush(self._ends, (replay.bounds.until_lsn, replay.id))

    def discard(self, replay: Replay) -> None:
        """A replay does something else now."""
        key = replay.addresses.key
        fans = self._by_key.get(key)
        if fans is None or fans.replays.pop(replay.id, None) is None:
            return
        self.count -= 1
        if fans.replays:
            return
        del self._by_key[key]
        for pattern in fans.choice.patterns:
            others = self._by_pattern[pattern]
            del others[key]
            if not others:
                del self._by_pattern[pattern]
                self._index.remove(pattern)

    def forget(self, replay: Replay) -> None:
        """A replay is closed."""
        self.discard(replay)
        if self._ending.pop(replay.id, None) is not None and len(self._ends) > 2 * len(self._ending) + _SLACK:
            self._ends = [(each.bounds.until_lsn, number) for number, each in self._ending.items()]
            heapify(self._ends)

    def wanting(self, address: str) -> list[Replay]:
        """Those who want what is published to an address."""
        wanting: dict[str, _Fans] = {}
        for pattern in self._index.matching(address):
            wanting.update(self._by_pattern[pattern])
        found: list[Replay] = []
        for fans in wanting.values():
            if fans.choice.wants(address):
                found += fans.replays.values()
        return found

    def next_ended(self, lsn: int) -> Replay | None:
        """One whose end is not after this lsn; None if there is none left. Each is returned once."""
        ends = self._ends
        while ends and ends[0][0] <= lsn:
            _, number = heappop(ends)
            replay = self._ending.pop(number, None)
            if replay is not None and replay.state == FOLLOWING:
                return replay
        return None

    def all(self) -> list[Replay]:
        """All of them."""
        return [replay for fans in self._by_key.values() for replay in fans.replays.values()]


# ---- tail ------------------------------------------------------------------------------------------------------------
#
# The end of the log, and the replays that are there: what becomes durable is read once for all of them.


_ADDRESS_UNITS: Final = 2
"""What it costs to look for those who want what is published to an address."""
_NOBODY: Final[list[Replay]] = []


@final
class Tail:
    """Where the followers are, and the slice that is being handed out to those who want something in it. What ``step``
    finds it adds to ``woken`` (replays that now have a slice to show) and ``arrived`` (those that have everything up to
    ``lsn``); whoever calls it takes them out.
    """

    __slots__ = (
        "_addresses", "_behind", "_bytes_asked", "_later", "_request", "_wanting", "arrived", "failure", "followers",
        "is_gone", "lsn", "spot", "woken",
    )  # fmt: skip

    def __init__(self, syntax: WildcardSyntax) -> None:
        self.followers = Followers(syntax)
        self.spot: Spot | None = None
        """None if nobody follows."""
        self.lsn = 0
        """Everything up to it is before the spot."""
        self.is_gone = False
        """Was a segment removed before it was read?"""
        self.failure = ""
        """Why a slice could not be read; empty if it was."""
        self.woken: list[Replay] = []
        self.arrived: list[Replay] = []
        self._behind: dict[int, Replay] = {}
        """Followers that have not had everything at any time yet."""
        self._later: list[Replay] = []
        """Those of them that want more than what is being handed out."""
        self._bytes_asked = 0
        self._request: SliceRequest | None = None
        """What is being handed out."""
        self._addresses: list[str] = []
        self._wanting = _NOBODY
        """Who still gets it: by address, and those of the address asked for most recently."""

    def is_behind(self, place: Place) -> bool:
        """Is this place at the followers, or farther? Who comes while a slice is handed out must have what is in it: it
        may have been handed out to those who want the same.
        """
        spot = self.spot
        if self._request is not None and self._request.slice is not None:
            spot = self._request.slice.end
        return spot is not None and spot.place <= place

    @property
    def is_busy(self) -> bool:
        """Is there something to hand out?"""
        return self._request is not None

    def join(self, replay: Replay, spot: Spot, *, is_end: bool) -> None:
        """A replay is at the followers or farther, perhaps at the end of the log."""
        if self.spot is None:
            self.spot = spot
            self.lsn = replay.passed_lsn
        if not is_end and not replay.has_caught_up:
            self._behind[replay.id] = replay
        replay.state = FOLLOWING
        self.followers.add(replay)

    def leave(self, replay: Replay) -> None:
        """A follower does something else: it is where all of them are."""
        self._drop(replay)
        if self.spot is not None:
            replay.spot = self.spot
            replay.passed_lsn = max(replay.passed_lsn, self.lsn)
        self._look_after()

    def _drop(self, replay: Replay) -> None:
        self.followers.discard(replay)
        self._behind.pop(replay.id, None)

    def _look_after(self) -> None:
        """Without followers nobody reads the end of the log."""
        if not self.followers.count and self._request is None:
            self.spot = None
            self._bytes_asked = 0

    def read_on(self, slices: SliceCache, log: ReplayLog) -> None:
        """Have what has become durable read, if it is not being read or handed out."""
        spot = self.spot
        if spot is not None and self._request is None and not slices.is_following and log.end() > spot.place:
            slices.follow(spot, self._bytes_asked)

    def receive(self, request: SliceRequest) -> None:
        """A slice was read and scanned."""
        part = request.slice
        assert part is not None
        self._bytes_asked = part.bytes_needed
        spot = self.spot
        if spot is None or spot.place != part.begin.place:
            return  # those who wanted it have gone, and perhaps others have come
        self.is_gone = part.is_gone
        self.failure = part.failure
        if request.cached is not None:
            request.cached.users += 1
            self._request = request
            self._addresses = part.addresses()

    def step(self, slices: SliceCache, budget: Budget) -> None:
        """Hand out the slice, within the budget."""
        request = self._request
        if request is None:
            return
        part, cached = request.slice, request.cached
        assert part is not None
        assert cached is not None
        while not budget.is_spent:
            if self._wanting:
                replay = self._wanting.pop()
                if replay.state == FOLLOWING:
                    self._drop(replay)
                    replay.spot = part.begin
                    replay.cached = cached
                    cached.users += 1
                    self.woken.append(replay)
                budget.spend(1)
            elif self._addresses:
                self._wanting = self.followers.wanting(self._addresses.pop())
                budget.spend(_ADDRESS_UNITS)
            elif self._finish(part.last_lsn, part.end, budget, reaches_end=part.reaches_end):
                self._request = None
                slices.give_back(cached)
                self._look_after()
                return

    def _await_more(self) -> None:
        for replay in self._later:
            if replay.state == FOLLOWING:
                self._behind[replay.id] = replay
        self._later = []

    def _finish(self, last_lsn: int, end: Spot, budget: Budget, *, reaches_end: bool) -> bool:
        """Those who wanted nothing in it have passed it, too. Returns whether everybody has been looked at."""
        self.spot = end
        self.lsn = max(self.lsn, last_lsn)
        while not budget.is_spent:
            budget.spend(1)
            ended = self.followers.next_ended(last_lsn)
            if ended is not None:
                self._drop(ended)
                self.arrived.append(ended)
            elif self._behind and reaches_end:
                behind = self._behind.popitem()[1]
                (self.arrived if behind.history_lsn <= last_lsn else self._later).append(behind)
            else:
                self._await_more()
                return True
        return False
