"""A queue's part of alerts: it looks after each batch of arrivals, and when an alarm that it set rings."""

from __future__ import annotations

from collections.abc import Sequence

from artemis_py.core.alerts import SIZE
from artemis_py.core.entry import Entry
from artemis_py.core.events import ALERT
from artemis_py.core.queue_depth import QueueDepth
from artemis_py.message import Message
from artemis_py.paged import PagedMessage


class QueueAlerts(QueueDepth):
    """The part of a queue that tells when a threshold is breached, where there is one."""

    def note_ages(self, entries: Sequence[Entry]) -> None:
        """Messages are coming; before anything else, because some may be gone again at once."""
        if self._ages is not None:
            self._ages.add([entry.message for entry in entries])

    def _note_paged_ages(self, messages: list[Message]) -> None:
        """New messages are in pages."""
        if self.alerts is not None and self.alerts.paged_ages is not None:
            self.alerts.paged_ages.add(messages)

    def _note_age_in_memory(self, message: PagedMessage) -> None:
        """A message comes out of its page."""
        if self.alerts is None or self.alerts.ages is None or self.alerts.paged_ages is None:
            return
        if not message.page.restored:
            self.alerts.paged_ages.remove([message])
        self.alerts.ages.add([message])

    def _forget_paged_ages(self) -> None:
        """What is in pages is gone, or nobody knows how much of it is: what is left is noted when it is read."""
        if self.alerts is not None and self.alerts.paged_ages is not None:
            self.alerts.paged_ages.clear()

    def watch(self, messages: Sequence[Message], now_ms: int) -> None:
        """Messages came, in whatever state; their ages were noted."""
        alerts = self.alerts
        assert alerts is not None
        large = alerts.large(messages)
        if large:
            size_bytes = max([message.size_bytes for message in large])
            self._tell(SIZE, size_bytes, alerts.size_bytes, count=len(large))
        self._look(now_ms)

    def _look(self, now_ms: int) -> None:
        """Tell what is beyond its threshold, and set the alarm for the next look."""
        alerts = self.alerts
        assert alerts is not None
        count, size_bytes = self.message_count, self.size_bytes
        steady_ms = self.host.clock.steady_ms(now_ms)
        for kind, value, threshold in alerts.breaches(count, size_bytes, now_ms, steady_ms):
            self._tell(kind, value, threshold)
        again_ms = alerts.look_again_ms(count, size_bytes, now_ms, steady_ms)
        if again_ms and not now_ms < alerts.next_ms <= again_ms:
            alerts.next_ms = again_ms
            self.host.note_alarm(again_ms, self._own)

    def _tell(self, kind: str, value: int, threshold: int, *, count: int = 1) -> None:
        fields: dict[str, str | int] = {"alert": kind, "value": value, "threshold": threshold}
        self.host.note_event(ALERT, self._own, fields, kind=kind, count=count)
