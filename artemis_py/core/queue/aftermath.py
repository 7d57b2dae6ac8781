"""What follows for a queue when something has left it."""

from __future__ import annotations

from typing import final

from artemis_py.core.queue.basis import QueueBasis
from artemis_py.core.queue.page_reading import PageReading


@final
class Aftermath:
    """Every verb of a queue ends here: what left may let senders go on, pages be read, or a group go to another
    consumer.
    """

    __slots__ = ("_contents", "_flow", "_grouping", "_host", "_reading", "_reference", "_waking")

    def __init__(self, basis: QueueBasis, reading: PageReading) -> None:
        self._reference = basis.reference
        self._host = basis.host
        self._contents = basis.contents
        self._flow = basis.flow
        self._grouping = basis.grouping
        self._waking = basis.waking
        self._reading = reading

    def run(self) -> None:
        """Look what left since this was asked last."""
        contents, groups = self._contents, self._grouping.groups
        if contents.has_left:
            contents.has_left = False
            self._flow.resume()
            if self._reading.cramped and self._waking.dry:
                self.use_room()
        if groups is not None:
            if self._grouping.takes_freed():
                self._waking.wake_dry()
                self._host.note_ready(self._reference)
            if groups.owners.pausing and not contents.tally.held_count:
                self._host.note_ready(self._reference)

    def use_room(self) -> None:
        """There may be room for messages from pages again, and not only for the consumer whose messages went."""
        self._reading.cramped = False
        self._waking.wake_dry()
        self._host.note_ready(self._reference)
