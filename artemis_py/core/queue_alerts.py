"""A queue's part of alerts: it looks after each batch of arrivals, and when an alarm that it set rings."""

from __future__ import annotations

from collections.abc import Sequence

from artemis_py.core.alerts import SIZE
from artemis_py.core.events import ALERT
from artemis_py.core.queue_depth import QueueDepth
from artemis_py.message import Message


class QueueAlerts(QueueDepth):
    """The part of a queue that tells when a threshold is breached, where there is one."""

    def _watch(self, messages: Sequence[Message], now_ms: int) -> None:
        """Messages came, in whatever state."""
        alerts = self.alerts
        assert alerts is not None
        if alerts.ages is not None:
            alerts.ages.add(messages)
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
        for kind, value, threshold in alerts.breaches(count, size_bytes, now_ms):
            self._tell(kind, value, threshold)
        again_ms = alerts.look_again_ms(count, size_bytes, now_ms)
        if again_ms and not now_ms < alerts.next_ms <= again_ms:
            alerts.next_ms = again_ms
            self._host.note_alarm(again_ms, self._own)

    def _tell(self, kind: str, value: int, threshold: int, *, count: int = 1) -> None:
        fields: dict[str, str | int] = {"alert": kind, "value": value, "threshold": threshold}
        self._host.note_event(ALERT, self._own, fields, kind=kind, count=count)

    def _count_ages_again(self) -> None:
        """Many messages left without being looked at: what is in memory is counted anew."""
        if self.alerts is None or self.alerts.ages is None:
            return
        ages = self.alerts.ages
        ages.clear()
        ages.add([entry.message for entry in self.order])
        ages.add([entry.message for entry in self.scheduled.values()])
        for consumer in self.distribution.consumers:
            if consumer.destructive:
                ages.add([entry.message for entry in consumer.held.values()])
