"""What the other parts of a queue build on."""

from __future__ import annotations

from typing import final

from artemis_py.core.consumer import Consumer
from artemis_py.core.host import Host
from artemis_py.core.queue.barriers import Activation
from artemis_py.core.queue.distribution import Distribution
from artemis_py.core.queue.gate import Gate
from artemis_py.core.queue.groups import Grouping
from artemis_py.core.queue.messages import Contents
from artemis_py.core.queue.overflow import Flow, Overflow
from artemis_py.core.queue.wake_ups import WakeUps
from artemis_py.core.reference import QueueReference


@final
class QueueBasis:
    """A queue's contents, limits, consumers and gate, with the host that it runs on. ``activation`` is None where every
    message is active when it comes.
    """

    __slots__ = ("activation", "contents", "distribution", "flow", "gate", "grouping", "host", "reference", "wake_ups")

    def __init__(
        self,
        reference: QueueReference,
        host: Host,
        contents: Contents,
        grouping: Grouping,
        *,
        overflow: Overflow,
        distribution: Distribution,
        gate: Gate,
    ) -> None:
        self.reference = reference
        self.host = host
        self.contents = contents
        self.grouping = grouping
        self.distribution = distribution
        self.gate = gate
        self.flow = Flow(reference, host, contents, overflow)
        self.wake_ups = WakeUps(distribution, host.budget)
        self.activation: Activation | None = None
        if contents.behind is not None:
            self.activation = Activation(
                reference, host, contents, contents.behind, distribution=distribution, gate=gate, wake_ups=self.wake_ups
            )

    def wake(self, consumer: Consumer) -> None:
        """The consumer has room or credit again."""
        if not self.wake_ups.wake(consumer):
            return
        is_awaited = self.activation is not None and self.activation.takes_note_of(consumer)
        if is_awaited or self.contents.has_more:
            self.host.note_ready(self.reference)
