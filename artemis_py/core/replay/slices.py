"""The slices of the log that are in memory: being read, being scanned, shown, and kept for others who come there."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.memory import REPLAYS, Holdings
from artemis_py.core.replay.replay import Replay
from artemis_py.replay_log import SLICE_BYTES, AddressChoice, CachedSlice, ReplayLog, Slice, Spot

CACHE_BYTES_MAX: Final = 16 << 20
"""What all slices may take. More replays than have room wait for each other, in order."""
_DECODED: Final = 3
"""A slice takes this many times its bytes in the log: the bytes, the messages in them, and where they are."""
_WEIGHT_MIN: Final = 65536
SliceKey = tuple[int, int, str]
"""Segment, offset, and what who asked for the slice wants; empty: everything."""


@final
class SliceRequest:
    """A requested slice, and the replays that wait for it. ``weight`` is what it takes in memory, in bytes.
    ``follows``: the followers wait for it.
    """

    __slots__ = ("follows", "key", "replays", "cached", "slice", "weight")

    def __init__(self, key: SliceKey, weight: int, *, follows: bool) -> None:
        self.key = key
        self.weight = weight
        self.follows = follows
        self.replays: list[Replay] = []
        self.slice: Slice | None = None
        self.cached: CachedSlice | None = None
        """The slice in the cache, when it is complete and has something in it."""


@final
class SliceCache:
    """Asks the log for slices, each once for all replays that want it, and keeps what there is room for."""

    __slots__ = ("_holdings", "_kept", "_log", "_requests", "_scanning", "_weight", "is_following")

    def __init__(self, log: ReplayLog, holdings: Holdings) -> None:
        self._log = log
        self._holdings = holdings
        self._requests: dict[SliceKey, SliceRequest] = {}
        self._scanning: deque[SliceRequest] = deque()
        self._kept: OrderedDict[SliceKey, CachedSlice] = OrderedDict()
        """The least recently used first."""
        self._weight = 0
        self.is_following = False
        """Is a slice at the end of the log on its way?"""

    @property
    def has_unscanned(self) -> bool:
        """Is there a slice that was read and not scanned?"""
        return bool(self._scanning)

    # ---- what is here ----------------------------------------------------------------------------

    def take(self, spot: Spot, choice: AddressChoice) -> CachedSlice | None:
        """A slice that begins there, if it is here. It stays until ``give_back``."""
        kept = self._kept
        key = (spot.segment, spot.offset, "")
        if key not in kept:
            key = (spot.segment, spot.offset, choice.key)
            if key not in kept:
                return None
        kept.move_to_end(key)
        found = kept[key]
        found.users += 1
        return found

    def give_back(self, cached: CachedSlice) -> None:
        """Somebody who took a slice does not need it now."""
        cached.users -= 1

    def clear(self) -> None:
        """Nobody replays: forget what is kept."""
        for cached in self._kept.values():
            self._move(-cached.weight)
        self._kept.clear()
        for request in self._requests.values():
            request.replays.clear()

    # ---- what is on its way ----------------------------------------------------------------------

    def request(self, replay: Replay) -> bool:
        """Have a slice read for a replay, or let it wait with others for one that is being read. False if there is no
        room now.
        """
        spot = replay.spot
        assert spot is not None
        key = (spot.segment, spot.offset, replay.addresses.key)
        request = self._requests.get(key)
        if request is None:
            size_bytes = max(replay.bytes_asked, SLICE_BYTES)
            weight = size_bytes * _DECODED
            if not self._makes_room(weight):
                return False
            request = self._add_request(key, weight, follows=False)
            self._log.request(spot, replay.addresses, size_bytes)
        request.replays.append(replay)
        return True

    def read_ahead(self, spot: Spot, choice: AddressChoice) -> None:
        """Have a slice read that somebody will want soon, if there is room to spare."""
        key = (spot.segment, spot.offset, choice.key)
        weight = SLICE_BYTES * _DECODED
        if key in self._requests or key in self._kept or (spot.segment, spot.offset, "") in self._kept:
            return
        if self._weight + weight <= CACHE_BYTES_MAX or self._makes_room(2 * weight):
            self._add_request(key, weight, follows=False)
            self._log.request(spot, choice, SLICE_BYTES)

    def follow(self, spot: Spot, bytes_asked: int) -> None:
        """Have a slice at the end of the log read. It does not wait for room: there is one for all followers."""
        size_bytes = max(bytes_asked, SLICE_BYTES)
        weight = size_bytes * _DECODED
        self._makes_room(weight)
        self._add_request((spot.segment, spot.offset, ""), weight, follows=True)
        self.is_following = True
        self._log.request(spot, None, size_bytes, follows=True)

    def _add_request(self, key: SliceKey, weight: int, *, follows: bool) -> SliceRequest:
        request = self._requests[key] = SliceRequest(key, weight, follows=follows)
        self._move(weight)
        return request

    def _move(self, weight: int) -> None:
        self._weight += weight
        self._holdings.move(REPLAYS, weight)

    def _makes_room(self, weight: int) -> bool:
        """Forget what is kept and not used, as far as that is needed. What is larger than the cache goes in alone."""
        if self._weight + weight > CACHE_BYTES_MAX:
            unused = [key for key, cached in self._kept.items() if not cached.users]
            for key in unused:
                self._move(-self._kept.pop(key).weight)
                if self._weight + weight <= CACHE_BYTES_MAX:
                    break
        return self._weight == 0 or self._weight + weight <= CACHE_BYTES_MAX

    # ---- what has come ---------------------------------------------------------------------------

    def scan_arrived(self, budget: Budget) -> list[SliceRequest]:
        """Scan what was read, within the budget; returns the requests that are complete."""
        for part in self._log.arrivals():
            request = self._requests[part.begin.segment, part.begin.offset, part.key]
            request.slice = part
            self._scanning.append(request)
        done: list[SliceRequest] = []
        scanning = self._scanning
        while scanning and not budget.is_spent:
            request = scanning[0]
            if self._is_complete(request, budget):
                scanning.popleft()
                self._complete(request)
                done.append(request)
        return done

    def _is_complete(self, request: SliceRequest, budget: Budget) -> bool:
        part = request.slice
        assert part is not None
        units = part.scan(max(budget.left, 1))
        budget.spend(units + 1)
        return units == 0

    def _complete(self, request: SliceRequest) -> None:
        part = request.slice
        assert part is not None
        del self._requests[request.key]
        if request.follows:
            self.is_following = False
        self._move(-request.weight)
        if part.is_gone or part.failure or part.bytes_needed:
            return
        weight = max(part.size_bytes * _DECODED, _WEIGHT_MIN)
        former = self._kept.pop(request.key, None)
        if former is not None:
            self._move(-former.weight)
        request.cached = self._kept[request.key] = CachedSlice(part, weight)
        self._move(weight)
