"""What follows when something has left a queue."""

from __future__ import annotations

from typing import final

from artemis_py.core.queue.basis import QueueBasis
from artemis_py.core.queue.page_reading import PageReading


@final
class Aftermath:
    """The end of every verb of a queue. What left may let senders go on, let pages be read, or free a group for another
    consumer.
    """

    __slots__ = ("_contents", "_flow", "_gate", "_grouping", "_host", "_reading", "_reference", "_waking")

    def __init__(self, basis: QueueBasis, reading: PageReading) -> None:
        self._reference = basis.reference
        self._host = basis.host
        self._contents = basis.contents
        self._flow = basis.flow
        self._gate = basis.gate
        self._grouping = basis.grouping
        self._waking = basis.waking
        self._reading = reading

    def run(self, picked_count: int = 0) -> None:
        """React to everything that left since the last call. ``picked_count``: so many entries are out of the order and
        not delivered yet, so they still count.
        """
        contents, groups = self._contents, self._grouping.groups
        if contents.has_left:
            contents.has_left = False
            self._flow.resume(picked_count)
            if (self._gate.counts or contents.behind is not None) and contents.has_more:
                self._host.note_ready(self._reference)
            if self._reading.cramped and self._waking.dry:
                self.use_room()
        if groups is not None:
            if self._grouping.takes_freed():
                self._waking.wake_dry()
                self._host.note_ready(self._reference)
            if groups.owners.pausing and not contents.has_held:
                self._host.note_ready(self._reference)

    def use_room(self) -> None:
        """There may be room for messages from pages again. Wake every consumer, and not only the one whose messages
        left.
        """
        self._reading.cramped = False
        self._waking.wake_dry()
        self._host.note_ready(self._reference)
