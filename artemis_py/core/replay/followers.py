"""Replays that have everything: who of them wants a message that is published now."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, final

from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.wildcards import WildcardIndex
from artemis_py.core.replay.replay import FOLLOWING, Replay
from artemis_py.logged import AddressChoice

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
