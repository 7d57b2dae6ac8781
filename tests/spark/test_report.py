"""What people and programs see of a result: text, JSON, HTML; without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from lxml import etree

from artemis_py.spark.jobs.result import (
    BYTES,
    COUNT,
    MS,
    RATE,
    SECONDS,
    SHARE,
    TEXT,
    TIME,
    Column,
    Plot,
    Result,
    Series,
    Table,
    Text,
    lines,
)
from artemis_py.spark.report.axes import ticks
from artemis_py.spark.report.html import as_html
from artemis_py.spark.report.machine import as_json
from artemis_py.spark.report.svg import plot_svg
from artemis_py.spark.report.terminal import as_text
from artemis_py.spark.report.units import shown

NOON = datetime(2026, 1, 31, 12, 0, 0, 250_000, UTC)
EVIL = "<script>alert('x')</script>\x1b[31m"


def a_result() -> Result:
    """With one of everything."""
    columns = (
        Column("broker", "broker"),
        Column("queue", "queue"),
        Column("count", "messages", COUNT),
        Column("at", "at", TIME),
    )
    rows = [("b", "orders", 1234, NOON), ("b", EVIL, 5, None)]
    return Result(
        "losses", "Losses & more",
        facts=[(Column("size", "size", BYTES), 3 * 1024**2)],
        tables=[Table("lost", "What went", columns, rows, count=12)],
        plots=[Plot("Lost", COUNT, [Series(EVIL, [(0, 1), (60, 3)])]),
               Plot("Bars", MS, bars=[(EVIL, 3.0), ("b", 0.0)])],
        texts=[Text("xml", "Fragment", "<core>\n</core>")],
        notes=["look & see"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (COUNT, 1234567, "1,234,567"), (COUNT, 2.5, "2.5"), (BYTES, 100, "100 B"), (BYTES, 1536, "1.5 KiB"),
        (BYTES, 5 * 1024**4, "5.0 TiB"), (MS, 950, "950 ms"), (MS, 61_000, "61.0 s"), (MS, 7_300_000, "2.0 h"),
        (SECONDS, 600, "10.0 min"), (SECONDS, 7, "7.0 s"),
        (RATE, 12345.6, "12,346"), (RATE, 0.25, "0.2"),
        (RATE, 0.0031, "0.003"), (RATE, 0, "0.0"), (SHARE, 0.5, "0.500"), (TEXT, "a", "a"), (COUNT, None, ""),
        (TIME, NOON, "2026-01-31 12:00:00.250"), (TIME, NOON.replace(microsecond=0), "2026-01-31 12:00:00"),
    ],
)  # fmt: skip
def test_units(kind: str, value: object, text: str) -> None:
    assert shown(kind, value) == text


def test_text() -> None:
    text = as_text(a_result(), 1000, lambda _colour, text: text)
    assert "Losses & more\n\n  size: 3.0 MiB\n\nFragment\n\n<core>\n</core>" in text
    assert "  orders" in text
    assert "1,234  2026-01-31 12:00:00.250" in text
    assert "… and 10 more" in text
    assert "note: look & see" in text
    assert "\x1b" not in text
    assert "broker" not in text.splitlines()[text.splitlines().index("What went") + 1]


def test_text_fits_a_narrow_terminal() -> None:
    text = as_text(a_result(), 60, lambda _colour, text: text)
    table = text[text.index("What went") :].splitlines()
    assert all(len(line) <= 60 for line in table[:4])
    assert "1,234  2026-01-31" in text.replace("…", "")[:10_000] or "1,234" in text
    assert "…" in text


def test_json() -> None:
    value = json.loads(as_json(a_result()))
    assert value["facts"] == {"size": 3 * 1024**2}
    assert value["tables"]["lost"][0] == {
        "broker": "b",
        "queue": "orders",
        "count": 1234,
        "at": "2026-01-31T12:00:00.250Z",
    }
    assert value["missing"] == {"lost": 10}
    assert value["texts"] == {"xml": "<core>\n</core>"}


class Page(HTMLParser):
    """Collects tags and what they refer to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.data: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attributes if name in ("src", "href", "xlink:href", "action")]

    def handle_data(self, data: str) -> None:
        self.data.append(data)


def test_html_needs_nothing_else_and_escapes_all() -> None:
    text = as_html(a_result(), NOON)
    page = Page(text)
    assert page.links == []
    assert "script" not in page.tags
    assert "url(" not in text
    assert "@import" not in text
    assert "prefers-color-scheme: dark" in text
    assert page.tags.count("svg") == 2  # a plot, and the sample in its legend
    assert page.tags.count("li") == 1 + 2
    assert page.tags.count("tr") == 3
    assert "and 10 more, in Parquet" in page.data
    assert "1,234" in page.data
    assert '<span class="whole">2026-01-31</span> 12:00:00 UTC' in text


def test_plots_are_whole_svg_with_every_point_inside() -> None:
    [drawn, legend] = etree.fromstring(f"<x>{plot_svg(a_result().plots[0])}</x>".encode())
    assert (drawn.tag, legend.tag) == ("svg", "ul")
    [line] = drawn.iter("polyline")
    points = [tuple(map(float, point.split(","))) for point in str(line.get("points")).split()]
    assert [0 <= x <= 1000 and 0 <= y <= 290 for x, y in points] == [True, True]
    assert points[0][0] < points[1][0]
    assert points[0][1] > points[1][1]
    assert plot_svg(Plot("none", COUNT)) == '<p class="none">nothing to plot</p>'


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0, 3, [0, 1, 2, 3]),
        (0, 97, [0, 20, 40, 60, 80, 100]),
        (0, 0.04, [0, 0.01, 0.02, 0.03, 0.04]),
        (0, 5, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_ticks_are_round_and_reach_the_top(low: float, high: float, wanted: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(wanted)


def test_the_largest_series_come_first() -> None:
    rows = [("small", 1.0, 1.0), ("large", 2.0, 9.0), ("large", 1.0, 8.0), ("none", 1.0, 0.0)]
    assert lines(rows, 2) == [Series("large", [(1.0, 8.0), (2.0, 9.0)]), Series("small", [(1.0, 1.0)])]
