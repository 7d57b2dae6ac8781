"""All brokers that can be measured, and which of them are here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from artemis_py.errors import PerfError
from bench.activemq import ActiveMqClassic
from bench.artemis import Artemis
from bench.broker import Broker
from bench.coilmq import CoilMq
from bench.nats import Nats
from bench.own import ArtemisPy, Interpreted, Older, OnAsyncio
from bench.rabbitmq import RabbitMq
from bench.redis import Redis
from bench.relay import Relay

BROKERS: Final = (
    ArtemisPy, ActiveMqClassic, CoilMq, Artemis, RabbitMq, Nats, Redis, Relay, Interpreted, OnAsyncio, Older,
)  # fmt: skip


def present(names: Sequence[str]) -> tuple[list[Broker], list[str]]:
    """The brokers that can be started, and a line for each that cannot. Raises PerfError for an unknown name."""
    known = {broker.name: broker for broker in BROKERS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise PerfError(f"unknown broker {', '.join(unknown)}; there are {', '.join(known)}")
    brokers, absent = [], []
    for name in names:
        broker: Broker = known[name]()
        reason = broker.absent()
        if reason is None:
            brokers.append(broker)
        else:
            absent.append(f"{broker.title} ({reason})")
    return brokers, absent
