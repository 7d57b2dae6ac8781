"""Numbers and words that are out of range, and what an element may say at most."""

from __future__ import annotations

import pytest

from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.declarations import QueueConfig
from artemis_py.config.tables.fields import (
    BOOLEAN,
    BYTES,
    CHOICE,
    DOUBLE,
    INT,
    LONG,
    PERIOD,
    REFUSED,
    Setting,
    ValueTextError,
    make_setting,
    parse_value,
    settings_of,
)
from tests.kit.documents import errors_of, load_core, queue, setting

CORE = {
    "max-disk-usage": (["-1", "0", "100"], ["-2", "101", "x", "1.5"]),
    "memory-warning-threshold": (["0", "100"], ["-1", "101"]),
    "message-expiry-scan-period": (["-1", "1"], ["0", "-2"]),
    "address-queue-scan-period": (["-1", "1"], ["0", "-2"]),
    "connection-ttl-override": (["-1", "1"], ["0", "-2"]),
    "id-cache-size": (["0", "2147483647"], ["-1", "2147483648"]),
    "global-max-size": (["-1", "10M", "10 KiB"], ["0", "-2", "10 M b", "1.5G", "8589934592G"]),
    "journal-file-size": (["1", "1073741824", "10M", "1G"], ["0", "1073741825", "2G"]),
    "journal-min-files": (["1", "1000"], ["0", "1001", "2147483647"]),
    "journal-pool-files": (["-1", "1"], ["0"]),
    "max-redelivery-records": (["-1", "0", "1"], ["-2"]),
    "global-max-size-percent-of-jvm-max-memory": (["1", "1000"], ["0", "-1"]),
    "transaction-timeout": (["1"], ["0"]),
    "uuid-namespace": (["x"], [""]),
    "literal-match-markers": (["()"], ["(", "", "((("]),
    "management-address": (["x"], [""]),
    "journal-type": (["NIO"], ["nio", ""]),
}

SETTINGS = {
    "max-size-bytes": (["-1", "0", "10M", "10kb"], ["x", "", "-1k", "1T"]),
    "max-size-messages": (["-1", "2147483647", "+5"], ["2147483648", "1_000", "0x10"]),
    "page-size-bytes": (["1", "2147483647"], ["0", "-1", "2147483648"]),
    "page-limit-bytes": (["-1", "1K"], ["0", "-2"]),
    "page-limit-messages": (["-1", "1"], ["0"]),
    "max-read-page-messages": (["-1", "1"], ["0"]),
    "prefetch-page-messages": (["-1", "1"], ["0"]),
    "redelivery-collision-avoidance-factor": (["0", "0.5", "1.0", "1e-3"], ["1.1", "-0.1", "NaN", "INF"]),
    "redelivery-delay-multiplier": (["2", "1.5"], ["two", "NaN", "1_0"]),
    "slow-consumer-threshold": (["-1", "1"], ["0"]),
    "slow-consumer-check-period": (["1"], ["0"]),
    "auto-delete-queues-delay": (["0"], ["-1"]),
    "auto-delete-queues-message-count": (["-1", "0"], ["-2"]),
    "auto-delete-addresses-delay": (["0"], ["-1"]),
    "retroactive-message-count": (["0"], ["-1"]),
    "id-cache-size": (["0"], ["-1"]),
    "initial-queue-buffer-size": (["1", "8192"], ["0", "3", "-2"]),
    "default-ring-size": (["-1", "0", "1"], ["-2"]),
    "default-queue-routing-type": (["ANYCAST"], ["anycast", "BOTH"]),
    "max-delivery-attempts": (["-1", "0", "1"], ["x"]),
    "expiry-delay": (["-1", "-5", "0"], ["1s", ""]),
}

QUEUES = {
    "max-consumers": (["-1", "0", "1"], ["-2", "x"]),
    "ring-size": (["-1", "0", "1"], ["-2", "10K"]),
    "consumers-before-dispatch": (["0", "2147483647"], ["2147483648"]),
    "delay-before-dispatch": (["-1", "9223372036854775807"], ["9223372036854775808"]),
}


FORMS = {"<{0}>{1}</{0}>": CORE, setting("<{0}>{1}</{0}>"): SETTINGS, queue('{0}="{1}"'): QUEUES}
GOOD = [form.format(name, text) for form, table in FORMS.items() for name, (good, _) in table.items() for text in good]
BAD = [form.format(name, text) for form, table in FORMS.items() for name, (_, bad) in table.items() for text in bad]


def test_what_is_in_range_is_accepted() -> None:
    assert {core: found for core in GOOD if (found := errors_of(core))} == {}


def test_what_is_out_of_range_is_refused() -> None:
    for core in BAD:
        problems = errors_of(core)
        assert [problem.line for problem in problems] == [3], core
        assert problems[0].allowed is not None or core.startswith("<literal-match-markers>"), core


SAMPLES = {BOOLEAN: "true", INT: "7", LONG: "7", DOUBLE: "0.5", BYTES: "8K", PERIOD: "9s"}


def sample(row: Setting) -> str:
    if row.name == "initial-queue-buffer-size":
        return "8"
    if row.name == "literal-match-markers":
        return "[]"
    return row.choices[-1] if row.kind == CHOICE else SAMPLES.get(row.kind, "text")


def test_every_element_of_core_is_read() -> None:
    for row in settings_of(CoreSettings).values():
        line_break = "" if row.kind in (CHOICE, BOOLEAN) else "\n"
        config = load_core(f"<{row.name}>{line_break}{sample(row)}</{row.name}>")
        assert getattr(config, row.attribute) == parse_value(row, sample(row)), row.name
        assert config.origins[row.attribute].line == 3, row.name


def test_every_element_of_an_address_setting_is_read() -> None:
    for row in settings_of(AddressSettings).values():
        for name in () if row.treatment == REFUSED else (row.name, *row.aliases):
            config = load_core(setting(f"<{name}>{sample(row)}</{name}>"))
            assert getattr(config.settings_for("any"), row.attribute) == parse_value(row, sample(row)), name


def test_every_attribute_of_a_queue_is_read() -> None:
    for row in settings_of(QueueConfig).values():
        if row.treatment == REFUSED:
            continue
        text = {"filter": "a = 1", "recovery-point": "creation"}.get(row.name) or sample(row)
        inside = {
            "filter": f'<filter string="{text}"/>',
            **{name: f"<{name}>{text}</{name}>" for name in ("durable", "user")},
        }
        attribute = "" if row.name in inside else f'{row.name}="{text}"'
        if row.name == "fallback-group":
            attribute += ' group-type="SHARED_GROUPS"'
        (declared,) = load_core(queue(attribute, inside.get(row.name, ""))).addresses[0].queues
        assert getattr(declared, row.attribute) == parse_value(row, text), row.name


def test_defaults_of_the_file_are_those_of_the_table() -> None:
    config = load_core("")
    assert {row.attribute: getattr(config, row.attribute) for row in settings_of(BrokerConfig).values()} == {
        row.attribute: row.default for row in settings_of(BrokerConfig).values()
    }
    effective = config.settings_for("any")
    plain = {row.attribute: row.default for row in settings_of(AddressSettings).values() if row.shown is None}
    assert {name: getattr(effective, name) for name in plain} == plain


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (BOOLEAN, " True ", True),
        (BOOLEAN, "TRUE", True),
        (BOOLEAN, "1", False),
        (BOOLEAN, "", False),
        (BOOLEAN, "yes", False),
        (INT, " +5\n", 5),
        (LONG, "-9223372036854775808", -(2**63)),
        (DOUBLE, " 1. ", 1.0),
        (DOUBLE, ".5e1", 5.0),
        (BYTES, " 1 k ", 1024),
        (PERIOD, " 1 s ", 1000),
        (PERIOD, "700ms", 700),
        (PERIOD, "5", 5),
        (PERIOD, "2h", 7_200_000),
    ],
)
def test_lexical_rules(kind: str, text: str, value: object) -> None:
    assert parse_value(make_setting(kind, "x", None, ""), text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [(INT, "1_0"), (INT, "0x1"), (INT, "2147483648"), (INT, "١"), (LONG, "1k"), (DOUBLE, "1f"), (DOUBLE, "1e999")],
)
def test_lexical_rules_refuse(kind: str, text: str) -> None:
    with pytest.raises(ValueTextError):
        parse_value(make_setting(kind, "x", None, ""), text)


def test_texts_of_elements_are_trimmed_and_those_of_attributes_are_not() -> None:
    config = load_core("<name> x </name>" + queue('last-value-key=" k "'))
    assert config.name == "x"
    assert config.addresses[0].queues[0].last_value_key == " k "
