"""Reports in a real Chromium, wide and narrow, light and dark: no word is broken, no page scrolls sideways.

``--basetemp DIR`` keeps the pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from artemis_py.spark.jobs.result import BYTES, COUNT, MS, RATE, TIME, ZERO, Column, Plot, Result, Series, Table, Text
from artemis_py.spark.report.html import as_html
from artemis_py.spark.report.style import DARK, LIGHT
from tests.browser import Browser, chromium, why_no_browser

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_no_browser() is not None, reason=f"{why_no_browser()}")]

NOON: Final = datetime(2026, 1, 31, 12, 0, 0, 250_000, UTC)
WIDE, NARROW = 1280, 390
NAMES: Final = (
    "orders", "plant.5.line.75.sensor.temperature", "заказы.склад.входящие", "注文.東京.新規受注処理", "طلبات.جديدة",
    "com.example.enterprise.integration.warehouse.europe.central.orders.incoming.validated.priority.high",
    "VERY_LONG_NAME_" * 8, "x" * 180, "OrderManagementServiceIncomingQueueOfTheWarehouse", "🚚.deliveries.zürich",
)  # fmt: skip

BROKEN: Final = r"""
const broken = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const node = walk.currentNode;
  if (node.parentElement.closest('.endless, svg title')) continue;
  for (const word of node.data.matchAll(/[\p{L}\p{N}\p{M}]+/gu)) {
    if (/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u.test(word[0])) continue;
    const range = document.createRange();
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map(one => Math.round(one.top))).size > 1) broken.push(word[0]);
  }
}
return broken;
"""
TOO_WIDE: Final = """
return [...document.querySelectorAll('.wide')].filter(one => one.scrollWidth > one.clientWidth)
  .map(one => one.firstElementChild.tagName.toLowerCase());
"""
OUTSIDE: Final = """
const cut = [];
for (const text of document.querySelectorAll('svg text')) {
  const own = text.getBoundingClientRect(), whole = text.closest('svg').getBoundingClientRect();
  if (own.left < whole.left || own.right > whole.right || own.bottom > whole.bottom) cut.push(text.textContent);
}
return cut;
"""
COLOURS: Final = "return [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
LINES: Final = """
return [...document.querySelectorAll('figure polyline')].map(line => {
  const style = getComputedStyle(line);
  return [style.stroke, style.strokeDasharray];
});
"""


def a_wide_report() -> Result:
    """As wide as the widest of the jobs, with names of all kinds and two series that are the same."""
    times = [Column(f"t{number}", f"total p{number}", MS) for number in range(12)]
    losses = (
        Column("cause", "cause"), Column("reason", "reason"), Column("address", "address"), Column("queue", "queue"),
        Column("origin", "sent by"), Column("user", "user"), Column("messages", "messages", COUNT),
        Column("kept", "kept elsewhere", COUNT), Column("keptIn", "in"), Column("lost", "lost", COUNT),
        Column("bytes", "bytes", BYTES), Column("age50", "age p50", MS), Column("firstAt", "first", TIME),
        Column("lastAt", "last", TIME),
    )  # fmt: skip
    counts = [Column(name, name, COUNT) for name in ("messages", "delivered", "acked")]
    wide = (Column("address", "address"), Column("queue", "queue"), *counts, *times)
    rows = [(f"at.{name}", name, 1_234_567, 1_234_567, 1_234_567, *[9_999.0] * 12) for name in NAMES]
    gone = [
        ("replaced", "max_deliveries", f"at.{name}", name, "192.168.100.200:54321", "消費者", 12_345, 12_345,
         "DLQ.of.the.warehouse", 0, 10**9, 7_348, NOON, NOON)
        for name in NAMES
    ]  # fmt: skip
    begin = NOON.timestamp()
    points = [(begin + 2 * number, 1200.0 + number % 7) for number in range(90)]
    less = [points, points, *([(x, y / number) for x, y in points] for number in range(2, 8))]
    series = [Series(name, values) for name, values in zip(NAMES, less, strict=False)]
    bars = [(f"{name} · 127.0.0.1:38872/{name}", 10.0**number) for number, name in enumerate(NAMES)]
    run = Column("run", "run id"), "replay-" + "0123456789abcdef" * 4
    return Result(
        "latency", "Latency",
        facts=[run, (Column("n", "messages", COUNT), 1_234_567)],
        tables=[Table("queues", "Latency per queue", wide, rows), Table("losses", "Losses", losses, gone)],
        plots=[
            Plot("Published", RATE, series, interval_s=2, between=ZERO),
            Plot("Delivered", COUNT, bars=bars),
        ],
        texts=[Text("story", "Biography", f"message 1 to {NAMES[5]}\n" * 3)],
        notes=[f"consumers of {', '.join(NAMES)} kept up on 2026-01-31 12:00:00"],
    )  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("browser")) as window:
        yield window


@pytest.fixture(params=[(width, scheme) for width in (WIDE, NARROW) for scheme in ("light", "dark")], ids=str)
def drawn(request: pytest.FixtureRequest, browser: Browser, tmp_path: Path) -> Any:
    width, scheme = request.param
    file = tmp_path / "report.html"
    file.write_text(as_html(a_wide_report(), NOON), "utf-8")
    browser.show(file, width, scheme)
    browser.picture(tmp_path / f"report-{width}-{scheme}.png")
    return width, scheme, browser


def test_the_page_never_scrolls_sideways(drawn: Any) -> None:
    width, _, browser = drawn
    assert browser.run("return [document.documentElement.scrollWidth, innerWidth]") == [width, width]
    wide = set(browser.run(TOO_WIDE))
    assert wide == (set() if width == WIDE else {"table", "svg", "pre"})


def test_no_word_is_broken(drawn: Any) -> None:
    _, _, browser = drawn
    assert browser.run(BROKEN) == []
    heights = "return [...document.querySelectorAll('td.number')].map(cell => cell.getClientRects().length)"
    assert set(browser.run(heights)) == {1}


def test_marks_are_whole(drawn: Any) -> None:
    _, _, browser = drawn
    assert browser.run(OUTSIDE) == []


def test_light_and_dark(drawn: Any) -> None:
    _, scheme, browser = drawn
    colours = LIGHT if scheme == "light" else DARK
    wanted = ["rgb({}, {}, {})".format(*bytes.fromhex(colours[name][1:])) for name in ("paper", "ink")]
    assert browser.run(COLOURS) == wanted


def test_every_line_has_its_own_colour_and_dashes(drawn: Any) -> None:
    _, _, browser = drawn
    lines = [tuple(one) for one in browser.run(LINES)]
    assert len(lines) == len({stroke for stroke, _ in lines}) == len({dash for _, dash in lines}) == 8
