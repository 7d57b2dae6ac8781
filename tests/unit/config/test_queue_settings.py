"""The attributes of queues: which value counts, what is refused, and what is remembered."""

from __future__ import annotations

from typing import Any

import pytest

from artemis_py.config.explain import explain
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.declarations import QUEUE_DEFAULTS, QueueConfig
from artemis_py.config.tables.fields import (
    BOOLEAN,
    BYTES,
    CHOICE,
    DOUBLE,
    INT,
    LONG,
    PERIOD,
    TEXT,
    Setting,
    settings_of,
)
from artemis_py.config.tables.queue_settings import always_waits, known_attributes, queue_settings, written_attributes
from tests.kit.core import queue_config
from tests.kit.documents import errors_of, load_core, queue, setting, settings

ROWS = {row.attribute: row for row in settings_of(QueueConfig).values()}
WITH_DEFAULT = [ROWS[attribute] for attribute in QUEUE_DEFAULTS]


TWO_BY_KIND: dict[str, tuple[Any, Any]] = {
    BOOLEAN: (True, False),
    INT: (3, 4),
    LONG: (5, 6),
    PERIOD: (11, 12),
    BYTES: (7, 8),
    DOUBLE: (9.5, 10.5),
    TEXT: ("k", "l"),
}


@pytest.mark.parametrize("row", WITH_DEFAULT, ids=lambda row: row.name)
def test_the_queue_beats_the_address_setting(row: Setting) -> None:
    """Attribute, else address-setting, else default."""
    words = [word for word in row.choices if word != row.default]
    two: Any = words[:2] if row.kind == CHOICE else TWO_BY_KIND[row.kind]
    own, other = two
    under = AddressSettings(**{QUEUE_DEFAULTS[row.attribute]: other})
    assert getattr(queue_settings(queue_config(**{row.attribute: own}), under), row.attribute) == own
    assert getattr(queue_settings(queue_config(), under), row.attribute) == other
    default = settings_of(AddressSettings)[QUEUE_DEFAULTS[row.attribute].replace("_", "-")].default
    assert getattr(queue_settings(queue_config(), AddressSettings()), row.attribute) == default


def test_what_has_no_address_setting() -> None:
    """Constants, and a default that only created queues ask for."""
    plain = queue_settings(queue_config(), AddressSettings(default_purge_on_no_consumers=True))
    assert plain.durable
    assert plain.enabled
    assert plain.filter is None
    assert not plain.purge_on_no_consumers
    created = queue_settings(queue_config(), AddressSettings(default_purge_on_no_consumers=True), declared=False)
    assert created.purge_on_no_consumers


@pytest.mark.parametrize(
    ("attribute", "allowed"),
    [
        ("priority-levels='0'", "1 to 10"),
        ("priority-levels='11'", "1 to 10"),
        ("sort-key=''", "a non-blank text"),
        ("sort-key=' '", "a non-blank text"),
        ("group-key=' '", "a non-blank text"),
        ("fallback-group=' '", "a non-blank text"),
        ("queue-type='fifo'", "standard, priority, sorted, last-value, lvq"),
        ("group-type='SHARED'", "NONE, STANDARD, SHARED_GROUPS"),
        ("min-message-ttl='-1'", "0 or more"),
        ("consumer-replay-period='-1'", "0 or more"),
        ("max-depth-messages='-2'", "-1, 0 or more"),
        ("max-depth-bytes='2 apples'", "a number of bytes, alone or with K, M or G (powers of 1024)"),
        ("flow-resume-percent='101'", "0 to 100"),
        ("max-live-consumers='-1'", "0 or more"),
        ("overflow-policy='ring'", "NONE, RING, PRODUCER_FLOW_CONTROL, FLOW_TO_DISK, REJECT"),
        ("alert-repeat-gap='-1'", "0 or more"),
    ],
)
def test_what_is_out_of_range_is_refused(attribute: str, allowed: str) -> None:
    (problem,) = errors_of(queue(attribute))
    assert (problem.line, problem.allowed) == (3, allowed)


def test_everything_that_is_wrong_with_one_queue_is_told() -> None:
    """Words that are none, names that are none, and numbers out of range, each once."""
    told = errors_of(queue('overflow-policy="RINGS" max-live-consumers="-2" grup-key="k" priority-levels="many"'))
    assert sorted(str(problem.value) for problem in told) == ["-2", "None", "RINGS", "many"]


def test_selectors_of_consumers_are_parsed() -> None:
    on_queue = [each.message for each in errors_of(queue("consumer-selector='color ='"))]
    assert any(message.startswith("consumer-selector of queue 'q' is not a valid selector") for message in on_queue)
    inside = "<default-consumer-selector>color =</default-consumer-selector>"
    in_settings = [each.message for each in errors_of(setting(inside))]
    assert any(
        message.startswith("default-consumer-selector of '#' is not a valid selector") for message in in_settings
    )


def test_explain_shows_what_counts() -> None:
    config = load_core(settings(("#", "<default-max-consumers>4</default-max-consumers>")) + queue("ring-size='5'"))
    rows = {row.setting.name: row for row in explain(config, "a::q").queue_attributes}
    assert (rows["max-consumers"].value, rows["max-consumers"].match) == (4, "#")
    assert (rows["ring-size"].value, rows["ring-size"].match) == (5, None)
    assert rows["ring-size"].value_text == "5 messages"
    assert rows["overflow-policy"].value == "NONE"
    assert rows["overflow-policy"].origin is None


def test_what_was_written_is_known_again() -> None:
    written = written_attributes(queue_config(ring_size=3, exclusive=True, filter="a = 1", durable=False))
    assert written == {"ring_size": 3, "exclusive": True}
    assert known_attributes({**written, "of_a_later_version": 1}) == written


def test_what_a_part_is_made_of_always_waits_for_a_restart() -> None:
    tried = ("durable", "sort_key", "last_value_key", "expiration", "max_backlog")
    waiting = [name for name in tried if always_waits(name)]
    assert waiting == ["durable", "sort_key", "last_value_key", "expiration"]
