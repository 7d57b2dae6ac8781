"""How a report looks, as far as can be told without drawing it: words, columns, colours, marks, lines, captions."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree, html

from artemis_py.spark.jobs.capacity import _held
from artemis_py.spark.jobs.commands import JOBS
from artemis_py.spark.jobs.intervals import INTERVALS_MAX, interval_for, interval_of
from artemis_py.spark.jobs.result import (
    BYTES,
    COUNT,
    GAP,
    JOINED,
    MS,
    RATE,
    TIME,
    ZERO,
    Column,
    Plot,
    Result,
    Series,
    Table,
    Text,
)
from artemis_py.spark.jobs.source import LogTables, Span
from artemis_py.spark.report.axes import time_marks, value_marks
from artemis_py.spark.report.captions import PLOTS, TABLES
from artemis_py.spark.report.html import as_html, shown_columns
from artemis_py.spark.report.style import DARK, DASHES, LIGHT, style_sheet
from artemis_py.spark.report.svg import COLOURS, equals, plot_svg, runs
from artemis_py.spark.report.words import WORD_MAX, broken
from tests.spark.made_log import START_MS, MadeLog

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOON_S = NOON.timestamp()


def page(result: Result) -> Any:
    return html.fromstring(as_html(result, NOON))


def pieces(text: str) -> list[str]:
    """What is left whole of a text."""
    plain = re.sub("</?span[^>]*>", "", broken(text))
    return [unescape(piece) for piece in re.split("<wbr/>| ", plain)]


# ---- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("orders", ["orders"]),
        ("com.example.Orders", ["com.", "example.", "Orders"]),
        ("OrderManagementService", ["Order", "Management", "Service"]),
        ("a_long_name/of-several:words", ["a_", "long_", "name/", "of-", "several:", "words"]),
        ("127.0.0.1:38872/reader", ["127.0.0.1:", "38872/", "reader"]),
        ("plant.5.line.12.sensor", ["plant.", "5.", "line.", "12.", "sensor"]),
        ("at 2026-01-31 12:00:00.123 UTC", ["at", "2026-01-31", "12:00:00.123", "UTC"]),
        ("заказы.склад.входящие", ["заказы.", "склад.", "входящие"]),
        ("<b>&amp;</b> " + "y" * 40, ["<b>&amp;</b>", "y" * 40]),
    ],
)
def test_where_a_line_may_end(text: str, whole: list[str]) -> None:
    assert pieces(text) == whole
    assert "".join(whole) == text.replace(" ", "")


def test_only_a_word_without_an_end_is_broken_anywhere() -> None:
    assert "endless" not in broken("x" * WORD_MAX)
    assert 'class="endless"' in broken("x" * (WORD_MAX + 1))
    assert '<span class="whole">2026-01-31</span>' in broken("on 2026-01-31")
    sheet = style_sheet()
    assert re.findall(r"([^{}]*)\{[^{}]*overflow-wrap: anywhere[^{}]*\}", sheet) == ["\n.endless "]
    assert "word-break" not in sheet


# ---- tables --------------------------------------------------------------------------------------


def table(rows: list[tuple[Any, ...]]) -> Table:
    columns = (
        Column("broker", "broker"), Column("address", "address"), Column("queue", "queue"),
        Column("user", "user"), Column("bytes", "bytes", BYTES), Column("at", "at", TIME),
    )  # fmt: skip
    return Table("queues", "Queues", columns, rows)


def test_columns_that_say_nothing_are_left_out() -> None:
    names = [column.name for column in table([]).columns]

    def seen(*rows: tuple[Any, ...]) -> list[str]:
        return [names[place] for place in shown_columns(table(list(rows)))]

    assert seen(("b", "x", "x", None, 1, NOON), ("b", "y", "y", "", 2, None)) == ["queue", "bytes", "at"]
    assert seen(("b", "x", "x", "ann", 1, NOON), ("c", "y", "z", None, 2, None)) == names
    assert "Each queue has the name of its address." in as_html(
        Result("latency", "L", tables=[table([("b", "x", "x", None, 1, NOON)])]), NOON
    )


def test_numbers_stand_at_the_right_with_separators_and_units() -> None:
    drawn = page(Result("latency", "L", tables=[table([("b", "x", "y", "u", 12_345_678, NOON)])]))
    assert [cell.text_content() for cell in drawn.iter("td")] == ["x", "y", "u", "11.8 MiB", "2026-01-31 12:00:00"]
    assert [cell.get("class") for cell in drawn.iter("td")] == [None, None, None, "number", None]
    assert [head.get("scope") for head in drawn.iter("th")] == ["col"] * 5
    assert re.search(r"\.number \{[^}]*text-align: right;[^}]*tabular-nums", style_sheet())


def test_what_is_wide_scrolls_within_itself_and_can_be_reached() -> None:
    plot = Plot("Lines", COUNT, [Series("a", [(0, 1), (60, 2)])])
    long, short = Text("x", "Long", "line\n" * 100), Text("y", "Short", "one")
    shown = table([("b", "x", "y", "u", 1, NOON)])
    drawn = page(Result("losses", "L", tables=[shown], plots=[plot], texts=[long, short]))
    inside = {each.tag: each.getparent() for each in drawn.iter("table", "pre")}
    inside["svg"] = drawn.find(".//figure/svg").getparent()
    for around in inside.values():
        assert "wide" in around.get("class").split()
        assert (around.get("role"), around.get("tabindex")) == ("region", "0")
        assert around.get("aria-label")
    assert ".wide { overflow-x: auto; }" in style_sheet()
    assert [each.text for each in drawn.iter("h2")] == ["Lines", "Short", "Queues", "Long"]


# ---- colours -------------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast(colours: dict[str, str]) -> None:
    """As WCAG asks for: 4.5 for text, 3 for lines."""
    for ground in ("paper", "card", "row"):
        for text in ("ink", "faint"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for number in range(COLOURS):
        assert contrast(colours[f"c{number}"], colours["card"]) >= 3


def test_both_schemes_have_all_colours() -> None:
    sheet = style_sheet()
    assert LIGHT.keys() == DARK.keys()
    assert set(re.findall(r"var\(--(\w+)\)", sheet)) - {"share"} <= LIGHT.keys()
    assert sheet.index(LIGHT["card"]) < sheet.index("@media (prefers-color-scheme: dark)") < sheet.index(DARK["card"])


# ---- plots ---------------------------------------------------------------------------------------


def test_lines_of_equal_values_are_all_seen() -> None:
    """Each has dashes of its own and only the lowest none, so that there is always a gap to see it through."""
    assert len(set(DASHES)) == len(DASHES) == COLOURS
    assert DASHES[0] == "none"
    same = [(0.0, 1.0), (60.0, 2.0)]
    series = [Series("a", same), Series("b", [(0.0, 3.0), (60.0, 1.0)]), Series("c", same)]
    assert equals(series) == ["", "", "a"]
    text = plot_svg(Plot("Lines", COUNT, series))
    assert [re.search(r"line (c\d)", line)[1] for line in re.findall("<polyline[^>]*>", text)[:3]] == ["c0", "c1", "c2"]  # type: ignore[index]
    assert "(as a)" in text
    for number, dash in enumerate(DASHES):
        assert f".line.c{number} {{ stroke-dasharray: {dash}; }}" in style_sheet()


def test_lone_points_upon_each_other_are_rings_around_each_other() -> None:
    series = [Series(name, [(60.0, 5.0)]) for name in "abc"]
    ring = r'<circle class="ring c\d" cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"'
    rings = re.findall(ring, plot_svg(Plot("P", COUNT, series)))
    assert len({(x, y) for x, y, _ in rings}) == 1
    assert all(abs(float(one) - float(other)) > 2 for one, other in combinations([r for _, _, r in rings], 2))


def test_intervals_without_a_value() -> None:
    series = Series("a", [(0.0, 4.0), (10.0, 4.0), (50.0, 2.0)])
    assert runs(series, ZERO, 10) == [[(0, 4), (10, 4), (20, 0), (40, 0), (50, 2)]]
    assert runs(series, GAP, 10) == [[(0, 4), (10, 4)], [(50, 2)]]
    assert runs(series, JOINED, 10) == [list(series.points)]


def test_a_depth_lasts_until_it_changes() -> None:
    points = [("q", 0.0, 9.0, 3.0), ("q", 50.0, 5.0, 0.0), ("r", 0.0, 1.0, 1.0)]
    assert _held(points, 10) == [
        ("q", 0.0, 9.0), ("q", 10.0, 3.0), ("q", 40.0, 3.0), ("q", 50.0, 5.0),
        ("r", 0.0, 1.0), ("r", 10.0, 1.0), ("r", 40.0, 1.0), ("r", 50.0, 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "highest", "texts"),
    [
        (COUNT, 1, ["0", "1"]),
        (COUNT, 3, ["0", "1", "2", "3"]),
        (COUNT, 45_000, ["0", "10,000", "20,000", "30,000", "40,000", "50,000"]),
        (RATE, 0.4, ["0.0/s", "0.1/s", "0.2/s", "0.3/s", "0.4/s"]),
        (MS, 1800, ["0 ms", "500 ms", "1,000 ms", "1,500 ms", "2,000 ms"]),
        (MS, 30_000, ["0 s", "10 s", "20 s", "30 s"]),
        (MS, 7_200_000, ["0.0 h", "0.5 h", "1.0 h", "1.5 h", "2.0 h"]),
        (COUNT, 0, ["0", "1"]),
    ],
)
def test_marks_of_values_are_in_one_unit(kind: str, highest: float, texts: list[str]) -> None:
    marks = value_marks(kind, highest)
    assert [text for _, text in marks] == texts
    assert marks[-1][0] >= highest


@pytest.mark.parametrize(
    ("span_s", "texts"),
    [
        (3, ["12:00:00", "12:00:01", "12:00:02", "12:00:03"]),
        (180, ["12:00:00", "12:00:30", "12:01:00", "12:01:30", "12:02:00", "12:02:30", "12:03:00"]),
        (3600, ["12:00", "12:10", "12:20", "12:30", "12:40", "12:50", "13:00"]),
        (86_400, ["12:00", "18:00", "02-01", "06:00", "12:00"]),
        (5 * 86_400, ["2026-02-01", "2026-02-02", "2026-02-03", "2026-02-04", "2026-02-05"]),
    ],
)
def test_marks_of_times_are_round(span_s: int, texts: list[str]) -> None:
    assert [text for _, text in time_marks(NOON_S, NOON_S + span_s)] == texts


def test_plots_say_what_is_seen() -> None:
    plot = Plot("Published", RATE, [Series("a", [(NOON_S, 5.0), (NOON_S + 170, 2500.0)])], interval_s=10, between=ZERO)
    bars = Plot("Shares", COUNT, bars=[("a queue · a consumer", 1234.0), ("b", 0.0)])
    drawn = page(Result("throughput", "T", plots=[plot, bars]))
    [about, _] = [each.text_content() for each in drawn.find_class("about")]
    assert about.endswith("From 2026-01-31 12:00:00 to 12:03:00, in intervals of 10 s.")
    [picture] = [each for each in drawn.iter("svg") if each.get("role") == "img"]
    assert picture.get("aria-label") == f"Published. {about}"
    assert "a, 2026-01-31 12:02:50: 2,500/s" in [each.text for each in picture.iter("title")]
    [listed] = drawn.iter("ol")
    assert listed.get("aria-label") == "Shares"
    assert [item.text_content() for item in listed] == ["a queue · a consumer1,234", "b0"]
    etree.fromstring(etree.tostring(picture))


def test_every_table_and_plot_of_every_job_has_a_caption() -> None:
    from pathlib import Path

    import artemis_py.spark.jobs as package

    folder = Path(next(iter(package.__path__)))
    for job in JOBS:
        source = (folder / f"{job.replace('-', '_')}.py").read_text("utf-8")
        names = re.findall(r'(?:\bTable|collected)\(\s*"(\w+)"', source)
        assert names
        assert [name for name in names if not TABLES.get((job, name))] == []
        assert ("Plot(" in source) is (job in PLOTS)


# ---- intervals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("span_s", "interval_s"),
    [
        (0, 1), (60, 1), (180, 2), (600, 5), (3600, 30), (7200, 60), (86_400, 900), (30 * 86_400, 21_600),
        (365 * 86_400, 345_600),
    ],
)  # fmt: skip
def test_an_interval_suits_the_span(span_s: int, interval_s: int) -> None:
    assert interval_for(span_s) == interval_s
    assert span_s / interval_s <= INTERVALS_MAX


def test_the_span_of_a_log_chooses_the_interval(tmp_path: Path) -> None:
    log = MadeLog(tmp_path)
    log.segment(START_MS)
    log.publish(START_MS, 5)
    log.publish(START_MS + 180_000, 5)
    log.close()
    source = LogTables({"journal": str(tmp_path), "broker": "b"})
    assert source.times_ms() == (START_MS, START_MS + 180_000)
    assert interval_of(source, None) == 2
    assert interval_of(source, 3600) == 3600
    first_minute = LogTables(source.options, Span(START_MS - 5, START_MS + 60_000))
    assert interval_of(first_minute, None) == 1
