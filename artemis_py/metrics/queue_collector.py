"""The address and queue families as objects of prometheus-client."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from artemis_py.metrics.catalogue import ADDRESS_GAUGES, ALIAS_GAUGES, LOOK_GAUGES, QUEUE_GAUGES
from artemis_py.metrics.exposition import shown_addresses, shown_queues
from artemis_py.metrics.queue_ages import look_at

if TYPE_CHECKING:
    from artemis_py.core.broker import Broker


class QueueCollector(Collector):
    """The address and queue families as objects of prometheus-client, for readers of the registry.

    A scrape over HTTP takes the same numbers from ``exposition``, which is faster.
    """

    def __init__(self, broker: Broker, clock_ms: Callable[[], int]) -> None:
        self._broker = broker
        self._clock_ms = clock_ms

    def describe(self) -> Iterable[Metric]:
        """The families without samples, so that registration reads nothing."""
        names = [(gauge.name, gauge.help) for gauge in ADDRESS_GAUGES]
        names += [(gauge.name, gauge.help) for gauge in QUEUE_GAUGES]
        names += [(gauge.name, gauge.help) for gauge in LOOK_GAUGES]
        names += [(gauge.name, gauge.help) for gauge in ALIAS_GAUGES]
        return [GaugeMetricFamily(name, text) for name, text in names]

    def collect(self) -> Iterable[Metric]:
        """One family per gauge, one sample per address or queue that is shown."""
        broker = self._broker.name
        for of_address in ADDRESS_GAUGES:
            family = GaugeMetricFamily(of_address.name, of_address.help, labels=["address", "broker"])
            for address in shown_addresses(self._broker):
                family.add_metric([address.name, broker], of_address.read(address))
            yield family
        for of_queue in QUEUE_GAUGES:
            family = GaugeMetricFamily(of_queue.name, of_queue.help, labels=["address", "broker", "queue"])
            for queue in shown_queues(self._broker):
                family.add_metric([queue.address.name, broker, queue.name], of_queue.read(queue))
            yield family
        queues = shown_queues(self._broker)
        looks = list(chain.from_iterable(look_at(queues, self._clock_ms())))
        for of_look in LOOK_GAUGES:
            family = GaugeMetricFamily(of_look.name, of_look.help, labels=["address", "broker", "queue"])
            for look in looks:
                family.add_metric([look.queue.address.name, broker, look.queue.name], of_look.read(look))
            yield family
        for alias in ALIAS_GAUGES:
            family = GaugeMetricFamily(alias.name, alias.help, labels=["address", "broker", "queue", "routing_type"])
            for queue in queues:
                labels = [queue.address.name, broker, queue.name, queue.routing_type.lower()]
                family.add_metric(labels, alias.read(queue))
            yield family
