"""Each setting of an address, and each attribute of a queue, is either brought into force in place, so that the queue
is what a start would have made of it, or it is listed as one that needs a restart, and then nothing of it has changed.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pytest

from artemis_py.config.changes import NOTHING, QUEUE_ATTRIBUTES, RESTART, plan_of
from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.declarations import QueueConfig
from artemis_py.config.tables.fields import BOOLEAN, CHOICE, DOUBLE, HONOURED, TEXT, Setting, settings_of
from artemis_py.core.broker import Broker
from artemis_py.core.queue.recipe import own_settings
from artemis_py.record_log import MemoryLog
from tests.kit.core import NOW_MS, broker_of, queue_config, redeploy
from tests.unit.changes.fingerprint import facts

Values = tuple[tuple[str, Any], ...]
"""Names and values."""
ROOT: Final = Path(__file__).parents[3]
_TEXTS: Final[dict[str, tuple[Any, Any]]] = {
    "filter": ("color = 'red'", "color = 'blue'"),
    "consumer_selector": ("a = 1", "a = 2"),
    "barrier_expression": ("a = 1", "a = 2"),
    "priority_expression": ("a", "a + 1"),
    "recovery_point": ("epoch", "now"),
    "queue_type": ("standard", "priority"),
}
_BASES: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "with backlogs": {"max_backlog": 50, "lease_period": 60_000, "max_deliveries": 9},
    "with a depth": {"overflow_policy": "REJECT", "max_depth_messages": 1000},
    "with alerts": {"alert_threshold_depth_messages": 1000},
    "exclusive": {"exclusive": True},
    "shared groups": {"group_type": "SHARED_GROUPS"},
    "a view": {"underlying_address": "b, c", "default_publish_target": "b"},
}
_ADDRESS_ROWS: Final = {row.attribute: row for row in settings_of(AddressSettings).values()}
_QUEUE_ROWS: Final = {row.attribute: row for row in settings_of(QueueConfig).values()}


def values_of(row: Setting) -> tuple[Any, Any]:
    attribute = QUEUE_ATTRIBUTES.get(row.attribute, row.attribute)
    if attribute in _TEXTS:
        return _TEXTS[attribute]
    if row.kind == BOOLEAN:
        return True, False
    if row.kind == CHOICE:
        return row.choices[0], row.choices[-1]
    if row.kind == TEXT:
        return "one", "two"
    return (11.0, 12.0) if row.kind == DOUBLE else (11, 12)


@lru_cache(maxsize=200)
def started(queue: Values, settings: Values | None = None) -> tuple[BrokerConfig, dict[str, Any]]:
    """The configuration with this queue and these settings of all addresses, and what a start makes of it."""
    broker = broker_of(queue_config(**dict(queue)), settings=None if settings is None else {"#": dict(settings)})
    return broker.config, facts(broker)


def check(
    before: tuple[BrokerConfig, dict[str, Any]], after: tuple[BrokerConfig, dict[str, Any]], row: Setting
) -> None:
    """A broker that has started with the one configuration gets the other."""
    (old, made), (new, wanted_facts) = before, after
    broker = Broker(old, MemoryLog(), NOW_MS)
    rows = [change for change in plan_of(old, new).changes if change.setting == row.name]
    held = redeploy(broker, new).held.get("q")
    address, queue = broker.addresses["a"], broker.queues["q"]
    assert address.settings == new.settings_for("a")
    declared = new.addresses[0].queues[0]
    wanted = own_settings(declared, address.settings, declared=True)
    attribute = QUEUE_ATTRIBUTES.get(row.attribute, row.attribute)
    if held:
        assert attribute in held
        assert any(each.effect == RESTART or "queue q" in each.note for each in rows), "a restart, and no row tells it"
        assert queue.own != wanted
        assert facts(broker) == made, "it needs a restart, and something has changed all the same"
        assert made != wanted_facts, "it needs no restart"
        return
    assert queue.own == wanted
    assert facts(broker) == wanted_facts, "it is not in force"
    if not rows or {each.effect for each in rows} == {NOTHING}:
        assert made == wanted_facts, "a difference that no row tells"


PAIRS: Final = ((0, 1), (None, 0), (1, None))


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("base", _BASES)
@pytest.mark.parametrize("attribute", _QUEUE_ROWS)
def test_each_attribute_of_a_queue(attribute: str, base: str, pair: tuple[int | None, int | None]) -> None:
    row = _QUEUE_ROWS[attribute]
    values = values_of(row)
    old, new = ({} if each is None else {attribute: values[each]} for each in pair)
    if attribute == "default_publish_target" and "underlying_address" not in {**_BASES[base], **old}:
        pytest.skip("only a view has one")
    before, after = (started(tuple({**_BASES[base], **each}.items())) for each in (old, new))
    if row.treatment != HONOURED:
        assert before[1] == after[1]
        return
    check(before, after, row)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("base", ["plain", "with backlogs"])
@pytest.mark.parametrize("setting", _ADDRESS_ROWS)
def test_each_setting_of_an_address(setting: str, base: str, pair: tuple[int | None, int | None]) -> None:
    row = _ADDRESS_ROWS[setting]
    values = values_of(row)
    if QUEUE_ATTRIBUTES.get(setting) in _BASES[base]:
        pytest.skip("the queue has it itself")
    old, new = ({} if each is None else {setting: values[each]} for each in pair)
    queue = tuple(_BASES[base].items())
    before, after = (started(queue, tuple(each.items())) for each in (old, new))
    check(before, after, row)
