"""Which queues are told to have dead or expired messages, whatever their names are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from artemis_py.core.broker import Broker
from artemis_py.management.operations.queues import QUEUES
from tests.kit.core import broker_of, queue_config, redeploy

Settings = dict[str, dict[str, Any]]
SETTINGS: Settings = {"orders": {"dead_letter_address": "parked"}, "#": {"expiry_address": "late"}}
FIELD = "holdsDeadLetters"
NAMES = ("orders", "parked", "late", "own", "DLQ")


def declared(settings: Settings, own: str | None = None) -> Broker:
    queues = [queue_config(name, name) for name in NAMES[:-1]]
    return broker_of(*queues, replace(queue_config("DLQ", "DLQ"), dead_letter_address=own), settings=settings)


def graves_of(broker: Broker) -> list[str]:
    return [
        name for name, queue in broker.queues.items() if QUEUES.row(queue, ["holdsDeadLetters"])["holdsDeadLetters"]
    ]


def test_settings_and_queues_name_them() -> None:
    assert graves_of(declared(SETTINGS)) == ["parked", "late"], "a name like DLQ is none"
    assert graves_of(declared(SETTINGS, own="own")) == ["parked", "late", "own"]
    assert graves_of(declared({}, own="")) == [], "the queue discards its dead letters"


def test_a_reload_names_others() -> None:
    broker = declared(SETTINGS)
    redeploy(broker, declared({"orders": {"dead_letter_address": "late"}}).config)
    assert graves_of(broker) == ["late"]
    redeploy(broker, declared({}, own="own").config)
    assert graves_of(broker) == ["own"]
    redeploy(broker, declared({}).config)
    assert graves_of(broker) == ["own"], "what died before may still be there"
