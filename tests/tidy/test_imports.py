"""Import floors, cycles and banned imports; each rule is also shown a bad example."""

from __future__ import annotations

import pytest

from tests.kit.sources import package_sources
from tests.tidy.imports import (
    CORE_MAY_NOT_IMPORT,
    banned_imports,
    floor_violations,
    import_cycles,
    room_cycles,
    unused_modules,
)

ENTRIES = frozenset({"artemis_py.__main__", "artemis_py.spark.discovery.pyspark_artemis", "artemis_py.testing.plugin"})
"""Where Python, Spark and pytest begin."""
WITH_ROOMS = frozenset({"config", "core", "management", "security", "server", "spark", "stomp", "storage"})


def test_every_module_imports_lower_floors_only() -> None:
    assert floor_violations(package_sources()) == []


def test_no_modules_import_each_other() -> None:
    assert import_cycles(package_sources()) == []


def test_every_module_is_used() -> None:
    """A merge may bring back what was deleted."""
    assert unused_modules(package_sources(), ENTRIES) == []


def test_a_module_that_nobody_uses_is_found() -> None:
    sources = {"artemis_py": "", "artemis_py.one": "TABLE = {'x': 'artemis_py.two'}", "artemis_py.two": ""}
    assert unused_modules(sources, frozenset()) == ["artemis_py.one"]
    assert unused_modules(sources | {"artemis_py.two": "from artemis_py import one"}, frozenset()) == []


def test_no_folders_import_each_other() -> None:
    assert room_cycles(package_sources(), WITH_ROOMS) == []


def test_core_has_no_clock_and_asyncio_and_spark_have_one_home() -> None:
    assert banned_imports(package_sources()) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("artemis_py.core.queue", "from artemis_py.stomp.frames import Frame"),
        ("artemis_py.core.queue", "import artemis_py.server.turns"),
        ("artemis_py.core.queue", "from artemis_py.storage.format import codec"),
        ("artemis_py.core.queue", "from artemis_py import storage"),
        ("artemis_py.core.queue", "from ..storage import codec"),
        ("artemis_py.storage.format.codec", "def late():\n    from artemis_py.core.queue.queue import Queue"),
        ("artemis_py.selector", "from artemis_py.config.settings import BrokerConfig"),
        ("artemis_py.errors", "from artemis_py.selector import Selector"),
        ("artemis_py.metrics", "from artemis_py.management.table import TABLE"),
        ("artemis_py.stomp.parser", "from artemis_py.storage.format import codec"),
        ("artemis_py.stomp.session.session", "def late():\n    import artemis_py.storage.format.codec"),
        ("artemis_py.odds.ends", "x = 1"),
    ],
)
def test_an_import_upward_is_found(module: str, source: str) -> None:
    others = ("core.queue", "storage", "storage.codec", "stomp.frames", "server.turns", "config.settings", "selector")
    sources = {f"artemis_py.{name}": "" for name in ("management.table", *others)} | {module: source}
    assert len(floor_violations(sources)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("artemis_py.core.queue", "from artemis_py.core.order.entry import Entry"),
        ("artemis_py.core.queue", "from artemis_py.message import Message"),
        ("artemis_py.core.queue", "from .entry import Entry"),
        ("artemis_py.config.reader", "from artemis_py.selector import compile_selector"),
        ("artemis_py.message", "from artemis_py.units import parse_bytes"),
        ("artemis_py.server.turns", "import os\nfrom artemis_py.stomp import session"),
    ],
)
def test_an_import_downward_is_fine(module: str, source: str) -> None:
    others = ("core.entry", "message", "units", "selector", "stomp.session")
    assert floor_violations({f"artemis_py.{name}": "" for name in others} | {module: source}) == []


def test_a_cycle_is_found_even_when_an_import_is_inside_a_function() -> None:
    sources = {
        "artemis_py.core.a": "from artemis_py.core.b import B",
        "artemis_py.core.b": "from artemis_py.core import c",
        "artemis_py.core.c": "def late():\n    from artemis_py.core.a import A",
        "artemis_py.core.d": "from artemis_py.core.a import A",
    }
    assert import_cycles(sources) == ["artemis_py.core.a ↔ artemis_py.core.b ↔ artemis_py.core.c"]


def test_a_cycle_is_found_even_when_an_import_is_for_typing_alone() -> None:
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from artemis_py.core.a import A"
    sources = {"artemis_py.core.a": "from artemis_py.core.b import B", "artemis_py.core.b": typed}
    assert import_cycles(sources) == ["artemis_py.core.a ↔ artemis_py.core.b"]


def test_folders_that_import_each_other_are_found() -> None:
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from artemis_py.config.xml.c import C"
    sources = {
        "artemis_py.config": "from artemis_py.config.reader import load",
        "artemis_py.config.reader": "from artemis_py.config.xml.a import A",
        "artemis_py.config.xml.a": "from artemis_py.config.tables.b import B",
        "artemis_py.config.xml.c": "",
        "artemis_py.config.tables.b": "",
        "artemis_py.config.tables.d": "",
    }
    assert room_cycles(sources, frozenset({"config"})) == []
    circle = sources | {"artemis_py.config.tables.d": typed}
    assert room_cycles(circle, frozenset({"config"})) == ["artemis_py.config.tables ↔ artemis_py.config.xml"]
    assert room_cycles(circle, frozenset({"core"})) == []


@pytest.mark.parametrize("banned", sorted(CORE_MAY_NOT_IMPORT))
def test_a_banned_import_in_core_is_found(banned: str) -> None:
    assert banned_imports({"artemis_py.core.queue": f"import {banned}"})
    assert banned_imports({"artemis_py.core.order.fifo": f"def late():\n    from {banned} import anything"})


def test_asyncio_outside_its_home_is_found() -> None:
    assert banned_imports({"artemis_py.stomp.session": "import asyncio"})
    assert banned_imports({"artemis_py.server.tcp": "import asyncio"}) == []


@pytest.mark.parametrize("module", ["artemis_py.core.queue", "artemis_py.cli.main", "artemis_py.storage.format.reader"])
def test_spark_outside_the_pipeline_is_found(module: str) -> None:
    assert len(banned_imports({module: "def late():\n    from pyspark.sql import SparkSession"})) == 1
    assert len(banned_imports({module: "import pyarrow as pa"})) == 1
    assert banned_imports({"artemis_py.spark.write.sink": "import pyarrow as pa\nfrom pyspark.sql import types"}) == []
