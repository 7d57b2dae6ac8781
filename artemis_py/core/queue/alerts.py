"""Checks a queue's alert thresholds after each batch of arrivals, and when an alarm that it has set is due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from artemis_py.core.events import ALERT
from artemis_py.core.queue.messages import Contents
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.queue_reference import SIZE, Alerts, QueueReference
from artemis_py.message import Message
from artemis_py.paged_messages import PagedMessage


@final
class AlertWatch:
    """Reports breached thresholds to the operational log. Only a queue with thresholds has one."""

    __slots__ = ("_contents", "_host", "_reference", "alerts")

    def __init__(self, reference: QueueReference, host: QueueHost, contents: Contents, alerts: Alerts) -> None:
        self._reference = reference
        self._host = host
        self._contents = contents
        self.alerts = alerts

    # ---- ages of what is in pages ----------------------------------------------------------------

    def note_paged(self, messages: list[Message]) -> None:
        """New messages were paged."""
        if self.alerts.paged_ages is not None:
            self.alerts.paged_ages.add(messages)

    def note_fetched(self, message: PagedMessage) -> None:
        """A message was read from its page into memory."""
        ages, paged_ages = self.alerts.ages, self.alerts.paged_ages
        if ages is None or paged_ages is None:
            return
        if not message.page.restored:
            paged_ages.remove([message])
        ages.add([message])

    def forget_paged(self) -> None:
        """Forget the ages of paged messages: they are gone, or it is unknown how many are left. Those that are left are
        noted when they are read.
        """
        if self.alerts.paged_ages is not None:
            self.alerts.paged_ages.clear()

    # ---- looking ---------------------------------------------------------------------------------

    def check_new(self, messages: Sequence[Message], now_ms: int) -> None:
        """Check the size of new messages, in whatever state they are, and then all thresholds. Their ages are noted
        already.
        """
        large = self.alerts.large(messages)
        if large:
            size_bytes = max([message.size_bytes for message in large])
            self._tell(SIZE, size_bytes, self.alerts.size_bytes, count=len(large))
        self.check(now_ms)

    def on_alarm(self, now_ms: int) -> None:
        """The alarm is due. It may be early, because somebody set the clock."""
        self.alerts.next_ms = 0
        self.check(now_ms)

    def check(self, now_ms: int) -> None:
        """Report every breached threshold, and set the alarm for the next check."""
        alerts, host = self.alerts, self._host
        count, size_bytes = self._contents.message_count, self._contents.size_bytes
        steady_ms = host.clock.steady_ms(now_ms)
        for kind, value, threshold in alerts.breaches(count, size_bytes, now_ms, steady_ms):
            self._tell(kind, value, threshold)
        again_ms = alerts.look_again_ms(count, size_bytes, now_ms, steady_ms)
        if again_ms and not now_ms < alerts.next_ms <= again_ms:
            alerts.next_ms = again_ms
            host.timers.alarms.set_by(self._reference.id, again_ms)

    def _tell(self, kind: str, value: int, threshold: int, *, count: int = 1) -> None:
        fields: dict[str, str | int] = {"alert": kind, "value": value, "threshold": threshold}
        self._host.note_event(ALERT, self._reference, fields, kind=kind, count=count)
