"""The sample broker.xml and the generated reference."""

from __future__ import annotations

import re
from pathlib import Path

from artemis_py.cli.init import STARTER
from artemis_py.config.reader import load
from artemis_py.config.tables.acceptor import PARAMS
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.declarations import QueueConfig
from artemis_py.config.tables.fields import settings_of
from artemis_py.config.tables.structured_elements import PARTS
from tools.docs.configuration import page

ROOT = Path(__file__).resolve().parents[3]


def test_the_sample_has_nothing_to_complain_of() -> None:
    config = load(ROOT / "broker.xml", environ={})
    assert config.notices == ()
    assert [(each.name, each.port, each.protocols, each.refused) for each in config.acceptors] == [
        ("stomp", 61613, ("STOMP",), None),
        ("http", 8161, ("HTTP",), None),
    ]


def test_init_writes_the_same() -> None:
    sample = (ROOT / "broker.xml").read_text("utf-8")
    assert STARTER.read_text("utf-8") == sample, "run: cp broker.xml artemis_py/cli/broker.xml"


def test_the_sample_shows_what_its_comments_say() -> None:
    config = load(ROOT / "broker.xml", environ={"STOMP_PORT": "61700", "BROKER_NAME": "green"})
    stomp = config.acceptors[0]
    assert (config.name, stomp.port) == ("green", 61700)
    assert (stomp.list_param("anycastPrefix"), stomp.list_param("multicastPrefix")) == (("/queue/",), ("/topic/",))
    rings = {queue.name: queue.ring_size for address in config.addresses for queue in address.queues}
    assert rings["ticker.last100"] == 100
    assert config.settings_for("DLQ").default_ring_size == 10000
    assert config.settings_for("anything").dead_letter_address == "DLQ"
    assert config.settings_for("anything").address_full_policy == "BLOCK"
    assert str(config.diverts[0].filter).endswith("amount >= 1000")


def test_the_examples_of_the_reference_have_nothing_to_complain_of(tmp_path: Path) -> None:
    for language in ("xml", "properties"):
        [code] = re.findall(rf"^```{language}\n(.*?)^```", page(), re.MULTILINE | re.DOTALL)
        (tmp_path / f"broker.{language}").write_text(code, encoding="utf-8")
    for properties in ([], [tmp_path / "broker.properties"]):
        config = load(tmp_path / "broker.xml", properties=properties, environ={})
        assert [notice.code for notice in config.notices] == []


def test_the_reference_names_everything() -> None:
    text = page()
    rows = [row for table in (CoreSettings, AddressSettings, QueueConfig) for row in settings_of(table).values()]
    for name in [*(row.name for row in rows), *(row.name for row in PARAMS if not row.silent), *PARTS]:
        assert f"`{name}`" in text
