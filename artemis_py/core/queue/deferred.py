"""Acknowledgements of messages that are in pages: they are carried out when the message is read (AMPS'
DeferredAckExpiration, row A-66 of tests/queues/rows.py).
"""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.holdings import ID_BYTES, IDS, Holdings

DEFERRED_MAX: Final = 10_000
"""How many a queue remembers. The oldest are forgotten, and their messages then come again."""


@final
class Deferred:
    """Bookmarks that clients have settled and that the queue does not have in memory, with what is to become of their
    messages. A restart forgets them.
    """

    __slots__ = ("_holdings", "_outcomes")

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._outcomes: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._outcomes)

    def note(self, bookmark: int, outcome: str) -> None:
        """A client has settled this bookmark."""
        outcomes = self._outcomes
        if bookmark in outcomes:
            return
        if len(outcomes) >= DEFERRED_MAX:
            self._drop(next(iter(outcomes)))
        outcomes[bookmark] = outcome
        self._holdings.move(IDS, ID_BYTES)

    def knows(self, bookmark: int) -> bool:
        """Has a client settled it?"""
        return bookmark in self._outcomes

    def take(self, bookmark: int) -> str | None:
        """What is to become of a message that was just read; None: nobody has settled it."""
        outcome = self._outcomes.get(bookmark)
        if outcome is not None:
            self._drop(bookmark)
        return outcome

    def forget(self) -> None:
        """Forget all: the queue has no pages any more, or is deleted."""
        self._holdings.move(IDS, -ID_BYTES * len(self._outcomes))
        self._outcomes.clear()

    def _drop(self, bookmark: int) -> None:
        del self._outcomes[bookmark]
        self._holdings.move(IDS, -ID_BYTES)
