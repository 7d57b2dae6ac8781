"""The text of the address and queue gauges, written without one object per sample.

There are some twenty samples per queue. The standard encoder of prometheus-client sorts and escapes the labels of each
sample again: 95 ms for 1,000 queues, during which the broker would block. Here the labels of a queue are written once
per scrape: 3 ms. Gauges look the same in Prometheus' text format and in OpenMetrics, so one text serves both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from artemis_py.metrics.catalogue import ADDRESS_GAUGES, ALIAS_GAUGES, LOOK_GAUGES, QUEUE_GAUGES, Gauge, Owner
from artemis_py.metrics.queues import look_at

if TYPE_CHECKING:
    from artemis_py.core.addresses.address import Address
    from artemis_py.core.broker import Broker
    from artemis_py.core.queue.queue import Queue

# How much is written before the caller may do something else: two milliseconds of work at most.
SAMPLES_PER_CHUNK: Final = 2_000
_ROWS_PER_CHUNK: Final = 500
"""How many labels are written before the caller may do something else."""


def escape_label(value: str) -> str:
    """A label value between its quotes."""
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value


def shown_addresses(broker: Broker) -> list[Address]:
    """The addresses whose ``enable-metrics`` is not false."""
    return [address for address in broker.addresses.values() if address.settings.enable_metrics]


def shown_queues(broker: Broker) -> list[Queue]:
    """The queues of those addresses."""
    return [queue for queue in broker.queues.values() if queue.address.settings.enable_metrics]


def render_gauges(broker: Broker, now_ms: int) -> Iterator[str]:
    """All address and queue families, in pieces of about SAMPLES_PER_CHUNK lines. The first pieces are empty: with many
    names, writing the labels takes longer than one step may. ``now_ms`` is the date, for ages.

    Which addresses and queues are shown is fixed with the first piece; a value is read when its line is written.
    """
    name = escape_label(broker.name)
    all_addresses, all_queues = list(broker.addresses.values()), list(broker.queues.values())
    # Lists of texts and ints, and no object for each queue: those would have the garbage collector look at everything.
    of_addresses: list[str] = []
    addresses: list[Address] = []
    for start in range(0, len(all_addresses), _ROWS_PER_CHUNK):
        for address in all_addresses[start : start + _ROWS_PER_CHUNK]:
            if address.settings.enable_metrics:
                addresses.append(address)
                of_addresses.append(f'{{address="{escape_label(address.name)}",broker="{name}"}} ')
        yield ""
    of_queues: list[str] = []
    of_aliases: list[str] = []
    queues: list[Queue] = []
    for start in range(0, len(all_queues), _ROWS_PER_CHUNK):
        for queue in all_queues[start : start + _ROWS_PER_CHUNK]:
            if queue.address.settings.enable_metrics:
                labels = _queue_labels(queue, name)
                queues.append(queue)
                of_queues.append(f"{{{labels}}} ")
                of_aliases.append(f'{{{labels},routing_type="{queue.routing_type.lower()}"}} ')
        yield ""
    found: list[list[int]] = [[] for _ in LOOK_GAUGES]
    for looks in look_at(queues, now_ms):
        for values, gauge in zip(found, LOOK_GAUGES, strict=True):
            values.extend(map(gauge.read, looks))
        yield ""
    families = (
        _families(ADDRESS_GAUGES, of_addresses, addresses),
        _families(QUEUE_GAUGES, of_queues, queues),
        *(
            _families([Gauge(gauge.name, int, gauge.help)], of_queues, values)
            for gauge, values in zip(LOOK_GAUGES, found, strict=True)
        ),
        _families(ALIAS_GAUGES, of_aliases, queues),
    )
    lines: list[str] = []
    for part in chain(*families):
        lines += part
        if len(lines) >= SAMPLES_PER_CHUNK:
            yield "".join(lines)
            lines.clear()
    yield "".join(lines)


def _queue_labels(queue: Queue, broker_name: str) -> str:
    address, own = escape_label(queue.address.name), escape_label(queue.name)
    return f'address="{address}",broker="{broker_name}",queue="{own}"'


def _families(gauges: Sequence[Gauge[Owner]], labels: Sequence[str], owners: Sequence[Owner]) -> Iterator[list[str]]:
    """The lines of each family; a long one in several lists. ``labels`` are as written, for each of the owners."""
    for gauge in gauges:
        name, read = gauge.name, gauge.read
        yield [f"# HELP {name} {gauge.help}\n# TYPE {name} gauge\n"]
        for start in range(0, len(owners), SAMPLES_PER_CHUNK):
            end = start + SAMPLES_PER_CHUNK
            pairs = zip(labels[start:end], owners[start:end], strict=True)
            yield [f"{name}{label}{read(owner)}.0\n" for label, owner in pairs]
