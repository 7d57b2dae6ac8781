"""ACK and NACK."""

from __future__ import annotations

from artemis_py.core.entry import Entry
from artemis_py.errors import LimitError
from artemis_py.stomp.frames import AckRun, Frame, FrameError
from artemis_py.stomp.state import SessionState
from artemis_py.stomp.subscription import AUTO, INDIVIDUAL, Subscription


class Acknowledging(SessionState):
    """Settles what the session's consumers hold, at once or with a transaction."""

    __slots__ = ()

    def acknowledge(self, frame: Frame, now_ms: int, *, refuses: bool) -> None:
        """ACK, or NACK when ``refuses``. Raises FrameError for what is not in delivery here."""
        headers = frame.headers
        if refuses and self.version == "1.0":
            raise FrameError("STOMP 1.0 has no NACK")
        name = headers.get("transaction")
        transaction = None if name is None else self.transactions.get(name)
        if name is not None and transaction is None:
            raise FrameError(f"No transaction {name[:80]!r} has begun")
        subscription, message_id = self._find(frame)
        consumer = subscription.consumer
        queue = subscription.queue
        if transaction is not None:
            count_max = self.operations_left + 1
            is_cumulative = subscription.ack_mode != INDIVIDUAL
            if (consumer.count_up_to(message_id, count_max) if is_cumulative else 1) == count_max:
                raise LimitError(self.too_many_operations)
            taken = transaction.refused if refuses else transaction.acknowledged
            taken.extend([(queue, consumer, entry) for entry in subscription.covered_by(message_id)])
        elif refuses and subscription.ack_mode == INDIVIDUAL:
            entries = subscription.covered_by(message_id)
            self.leave_unfinished(queue.release(consumer, entries, failed=True, now_ms=now_ms))
        elif refuses:
            self.leave_unfinished(queue.refuse_up_to(consumer, message_id, now_ms))
        elif subscription.ack_mode == INDIVIDUAL:
            queue.acknowledge(consumer, subscription.covered_by(message_id))
        else:
            self.leave_unfinished(queue.acknowledge_up_to(consumer, message_id, now_ms))
        if consumer.parked:
            queue.wake(consumer)

    def acknowledge_run(self, run: AckRun, now_ms: int) -> None:
        """ACKs one behind the other, those of one subscription in one request. At the first that means nothing those
        before it are carried out; raises FrameError for it.
        """
        entries: list[Entry] = []
        subscription: Subscription | None = None
        consumer_text = b""
        for place, (consumer, message) in enumerate(run.pairs):
            if consumer != consumer_text:
                self._settle(subscription, entries)
                consumer_text = consumer
                subscription = self.by_consumer.get(int(consumer))
                entries = []
            message_id = int(message)
            if subscription is None or message_id not in subscription.consumer.held:
                self._settle(subscription, entries)
                self.service.traffic.came("ACK", place + 1)
                self.acknowledge(Frame("ACK", {"id": f"{consumer.decode()}-{message.decode()}"}), now_ms, refuses=False)
                raise AssertionError("an ACK for a message that is not held must be refused")
            if subscription.ack_mode == INDIVIDUAL:
                entries += subscription.covered_by(message_id)
            else:
                queue = subscription.queue
                self.leave_unfinished(queue.acknowledge_up_to(subscription.consumer, message_id, now_ms))
                if subscription.consumer.parked:
                    queue.wake(subscription.consumer)
        self._settle(subscription, entries)
        self.service.traffic.came("ACK", len(run.pairs))

    def _settle(self, subscription: Subscription | None, entries: list[Entry]) -> None:
        if subscription is not None and entries:
            subscription.queue.acknowledge(subscription.consumer, entries)
            if subscription.consumer.parked:
                subscription.queue.wake(subscription.consumer)

    def _find(self, frame: Frame) -> tuple[Subscription, int]:
        """The subscription and message that the frame means: by ack id (1.2), by subscription and message-id, by
        message-id (1.0).
        """
        headers = frame.headers
        header = "id" if self.version == "1.2" else "message-id"
        text = headers.get(header)
        if not text:
            raise FrameError(
                f"{frame.command} needs {'an id' if header == 'id' else 'a message-id'} header in STOMP {self.version}",
                syntax=True,
            )
        if self.version == "1.1" and not headers.get("subscription"):
            raise FrameError(f"{frame.command} needs a subscription header in STOMP 1.1", syntax=True)
        consumer_text, dash, message_text = text.partition("-")
        if not (
            dash
            and consumer_text.isascii()
            and consumer_text.isdigit()
            and message_text.isascii()
            and message_text.isdigit()
        ):
            raise _not_in_delivery(text)
        if len(message_text) > 18 or len(consumer_text) > 18:
            raise _not_in_delivery(text)
        subscription = self.by_consumer.get(int(consumer_text))
        if subscription is None or int(message_text) not in subscription.consumer.held:
            if subscription is not None and subscription.ack_mode == AUTO:
                raise FrameError(f"Message {text[:80]} was delivered with ack:auto and is already acknowledged")
            raise _not_in_delivery(text)
        named = headers.get("subscription")
        if self.version == "1.1" and named != subscription.id:
            raise FrameError(f"Message {text[:80]} belongs to subscription {subscription.id!r}, not {named!r}")
        return subscription, int(message_text)


def _not_in_delivery(text: str) -> FrameError:
    return FrameError(f"No message {text[:80]!r} waits for acknowledgement on this connection")
