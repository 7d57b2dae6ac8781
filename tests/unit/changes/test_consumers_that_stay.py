"""A consumer that was told to go, and does not, keeps its own queue and holds up nothing else."""

from __future__ import annotations

from typing import Any, Final

from artemis_py.core.broker import Broker
from artemis_py.core.reload import Redeployment
from artemis_py.core.tasks import WAIT
from tests.kit.core import NOW_MS, broker_of, consumer_on, queue_config

_FORCE: Final = {"#": {"config_delete_queues": "FORCE", "config_delete_addresses": "FORCE"}}
_STUCK: Final = ("stuck", "lone")


class Reload:
    """A reload whose time goes on by 100 ms with each turn in which it waits. Nobody goes by himself."""

    def __init__(self, broker: Broker, after: Broker) -> None:
        self.now_ms = NOW_MS
        self.told: list[int] = []
        """When consumers were told to go, in ms since the beginning."""
        self.redeployment: Redeployment = broker.redeploy(
            after.config, lambda: self.now_ms, lambda number, reason: self.told.append(self.now_ms - NOW_MS)
        )

    def run(self) -> int:
        """Returns how long it took, in ms."""
        for step in self.redeployment.run():
            if step is WAIT:
                self.now_ms += 100
                assert self.now_ms < NOW_MS + 60_000, "it waits for ever"
        return self.now_ms - NOW_MS


def declared(*names: str, **attributes: Any) -> Broker:
    queues = [queue_config(name, "lone" if name == "lone" else "a", **attributes) for name in names]
    return broker_of(*queues, settings=_FORCE)


def test_a_consumer_that_stays_holds_up_nothing_else() -> None:
    broker = declared("kept", "idle", "other", *_STUCK)
    consumers = [consumer_on(broker, broker.queues[name]) for name in (*_STUCK, "other")]
    reload = Reload(broker, declared("kept", "new", max_consumers=7))
    took_ms = reload.run()
    assert reload.told == [0, 0, 0], "all are told before one is waited for"
    assert took_ms == 10_000, "not ten seconds for each"
    assert sorted(broker.queues) == ["kept", "lone", "new", "other", "stuck"]
    assert broker.queues["kept"].consumer_registry.consumers_max == 7
    assert "lone" in broker.addresses
    failures = reload.redeployment.failures
    assert sorted(failure.partition(":")[0] for failure in failures) == ["queue lone", "queue other", "queue stuck"]
    assert failures[0].endswith("told to go and still there after 10 s; the next reload tries again")
    assert broker.queues["stuck"].consumer_registry.consumers_max == -1, "it may be used until then"
    for name, consumer in zip((*_STUCK, "other"), consumers, strict=True):
        broker.detach(broker.queues[name], consumer, failed=True, now_ms=reload.now_ms)
    again = Reload(broker, declared("kept", "new", max_consumers=7))
    assert again.run() == 0
    assert again.redeployment.failures == []
    assert sorted(broker.queues) == ["kept", "new"]
    assert "lone" not in broker.addresses


def test_those_that_go_are_not_waited_for_with_those_that_stay() -> None:
    broker = declared("kept", "stuck", "other")
    consumer_on(broker, broker.queues["stuck"])
    going = consumer_on(broker, broker.queues["other"])
    reload = Reload(broker, declared("kept"))
    deleted_ms = -1
    for step in reload.redeployment.run():
        if "other" not in broker.queues and deleted_ms < 0:
            deleted_ms = reload.now_ms - NOW_MS
        if step is WAIT:
            reload.now_ms += 100
            assert reload.now_ms < NOW_MS + 60_000, "it waits for ever"
            if not going.closed:
                broker.detach(broker.queues["other"], going, failed=True, now_ms=reload.now_ms)
    assert deleted_ms == 100
    assert sorted(broker.queues) == ["kept", "stuck"]
