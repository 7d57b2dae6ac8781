"""Every element and attribute of the XSD has exactly one row in the tables, and the tables name nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any

import pytest

from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.bridges import BridgeConfig
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.declarations import QUEUE_CONSTANTS, QUEUE_DEFAULTS, DivertConfig, QueueConfig
from artemis_py.config.tables.fields import HONOURED, IGNORED, REFUSED, Setting, names_of, settings_of
from artemis_py.config.tables.queue_settings import QueueSettings
from artemis_py.config.tables.structured_elements import PARTS, Part
from artemis_py.config.xml.schema_errors import explaining_schema

QUEUE_PLACES = ("addresses/address/anycast/queue", "addresses/address/multicast/queue", "queues/queue")
AS_CHILDREN = ("durable", "filter", "user")
NOT_IN_OLD_QUEUES = ("ring-size", "enabled")


def walk(declaration: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yields the path and declaration of everything below an element."""
    for name, attribute in declaration.attributes.items():
        if name is not None and not name.startswith("{"):
            yield f"{path}/@{name}".lstrip("/"), attribute
    if declaration.type.is_simple() or declaration.type.has_simple_content():
        return
    for child in declaration.type.content.iter_elements():
        below = f"{path}/{child.local_name}".lstrip("/")
        yield below, child
        yield from walk(child, below)


@cache
def xsd_paths() -> dict[str, Any]:
    core = explaining_schema().maps.elements["{urn:activemq:core}core"]
    return dict(walk(core, ""))


ROWS: dict[str, Setting] = {
    **names_of(CoreSettings),
    **{f"address-settings/address-setting/{name}": row for name, row in names_of(AddressSettings).items()},
    **{f"diverts/divert/{name}": row for name, row in settings_of(DivertConfig).items()},
    **{f"bridges/bridge/{name}": row for name, row in settings_of(BridgeConfig).items()},
    **{
        f"{place}/{name}" if name in AS_CHILDREN else f"{place}/@{name}": row
        for place in QUEUE_PLACES
        for name, row in settings_of(QueueConfig).items()
        if place != "queues/queue" or name not in NOT_IN_OLD_QUEUES
    },
}


def test_every_element_and_attribute_has_exactly_one_row() -> None:
    """Its own, or that of a part around it that stands for all inside."""
    for path in xsd_paths():
        names = path.split("/")
        around = ["/".join(names[:count]) for count in range(1, len(names))]
        own = [path for rows in (ROWS, PARTS) if path in rows]
        assert len(own + [each for each in around if each in PARTS and PARTS[each].whole]) == 1, path


def test_every_row_is_in_the_xsd() -> None:
    assert [path for path in (*ROWS, *PARTS) if path not in xsd_paths()] == []


def test_the_walk_sees_the_whole_xsd() -> None:
    settings = [path for path in xsd_paths() if path.startswith("address-settings/address-setting/")]
    assert len([path for path in settings if "@" not in path]) == len(names_of(AddressSettings))
    assert "bridges/bridge/static-connectors/connector-ref" in xsd_paths()
    assert "broker-connections/amqp-connection/bridge/bridge-to-queue/transformer/property/@value" in xsd_paths()
    assert len(xsd_paths()) > 600


def test_every_row_is_in_one_class_with_a_meaning_and_a_reason() -> None:
    rows: dict[str, Setting | Part] = {**ROWS, **PARTS}
    for path, row in rows.items():
        assert row.treatment in (HONOURED, IGNORED, REFUSED), path
        assert bool(row.reason) is (row.treatment != HONOURED), path
        assert row.meaning, path
        assert not row.meaning.endswith("."), path


DERIVED = {"max-read-page-bytes", "prefetch-page-bytes", "prefetch-page-messages", "id-cache-size"}
JAVA_ONLY = {"password-codec", "mask-password", "journal-device-block-size", "literal-match-markers"}


PREFIXES = {CoreSettings: "", AddressSettings: "address-settings/address-setting/", BridgeConfig: "bridges/bridge/"}


@pytest.mark.parametrize("table", PREFIXES)
def test_defaults_of_the_xsd_are_those_of_the_tables(table: type) -> None:
    prefix = PREFIXES[table]
    for name, row in names_of(table).items():
        default = xsd_paths()[prefix + name].default
        derived = table is AddressSettings and name in DERIVED
        if default is None or derived or name in JAVA_ONLY:
            continue
        assert default == ("" if row.default == "" else row.default_text if row.shown is None else str(row.default))


def test_choices_of_the_xsd_are_those_of_the_tables() -> None:
    for path, row in ROWS.items():
        words = getattr(xsd_paths()[path].type, "enumeration", None)
        assert sorted(words or ()) == sorted(row.choices), path


def test_defaults_of_queues_name_attributes_and_settings_that_exist() -> None:
    attributes = {row.attribute for row in settings_of(QueueConfig).values()}
    settings = {row.attribute for row in settings_of(AddressSettings).values()}
    assert set(QUEUE_DEFAULTS) <= attributes
    assert set(QUEUE_DEFAULTS.values()) <= settings
    assert set(QUEUE_CONSTANTS) <= attributes
    assert not set(QUEUE_CONSTANTS) & set(QUEUE_DEFAULTS)
    assert [field.name for field in fields(QueueSettings)] == [
        row.attribute for row in settings_of(QueueConfig).values()
    ]
    shown = {row.attribute: row.shown for row in settings_of(QueueConfig).values() if row.shown}
    assert {name: setting.replace("_", "-") for name, setting in QUEUE_DEFAULTS.items()} == {
        name: text for name, text in shown.items() if name not in QUEUE_CONSTANTS
    }
