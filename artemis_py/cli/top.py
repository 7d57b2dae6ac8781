"""``artemis-py top``: the queues of a running broker, the busiest or deepest first, again and again."""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import sys
import termios
import time
import tty
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, final
from urllib.parse import urlencode

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from artemis_py.cli.broker_http import BrokerHttp
from artemis_py.cli.logins import add_http
from artemis_py.cli.options import count, seconds
from artemis_py.errors import ArtemisError
from artemis_py.terminal_output import as_json, escaped, say_made
from artemis_py.text_table import Cell, Column, print_table, table_of

HELP: Final = "watch the queues of a running broker, by rate or depth"
_ROWS_MAX: Final = 1_000
"""What one request may ask for; rates are of these."""
_TIMEOUT_S: Final = 10.0
_INTERVAL_S_MIN: Final = 0.2
_ROWS_AROUND: Final = 7
_BY_NAME: Final = {"depth": "d", "in": "i", "out": "o", "growth": "g", "consumers": "c", "unacked": "u", "name": "n"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``top [--sort WHAT] [--interval S] [--count N] [--json] …``."""
    parser.add_argument("--sort", choices=_BY_NAME, default="depth", help="the order: greatest first (default depth)")
    parser.add_argument("--reverse", action="store_true", help="smallest first")
    parser.add_argument(
        "--interval", metavar="S", type=seconds, default=2.0, help="seconds between two refreshes (default 2)"
    )
    parser.add_argument(
        "--count", metavar="N", type=count, help="end after so many refreshes; without a terminal the default is 1"
    )
    parser.add_argument("--where", metavar="TEXT", action="append", default=[], help="a condition, as in queue ls")
    parser.add_argument("--json", action="store_true", help="print a line of JSON at each refresh, until Ctrl-C")
    add_http(parser)
    keys = ", ".join(f"{order.key} {order.heading}" for order in ORDERS)
    parser.epilog = (
        f"keys: {keys}; the same key again turns the order round; + and - change the interval; space pauses; q quits. "
        "Without a terminal it prints one table, after one interval, and ends."
    )


def run(args: argparse.Namespace) -> int:
    """Watches until a key, Ctrl-C, or the last look ends it. Raises ArtemisError if there is no broker at first."""
    watch = _Watch(args)
    if args.json:
        return _print_lines(watch, args)
    if sys.stdin.isatty() and sys.stdout.isatty():
        return _live(watch, args)
    for number in range(1 if args.count is None else args.count):
        if number == 0:
            watch.look()
        time.sleep(watch.interval_s)
        watch.look()
        print_table(*watch.table(None))
    return 0


@final
class _Watch:
    """What was seen last, and how it is shown."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._broker = BrokerHttp.of(args, _TIMEOUT_S)
        self._where: Sequence[str] = args.where
        self.order = _BY_KEY[_BY_NAME[args.sort]]
        self.is_reversed: bool = args.reverse
        self.interval_s = max(args.interval, _INTERVAL_S_MIN)
        self.figures: list[Figures] = []
        self.total = 0
        self.problem = ""
        self.is_paused = False
        self._before: dict[str, Mapping[str, Any]] = {}
        self._before_s = 0.0

    def look(self) -> None:
        """Ask the broker. Raises ArtemisError."""
        query = [
            ("fields", ",".join(FIELDS)),
            ("size", str(_ROWS_MAX)),
            ("sort", f"{self.order.field}:desc" if self.order.is_number != self.is_reversed else self.order.field),
            *[("where", text) for text in self._where],
        ]
        answer = json.loads(self._broker.ask(f"/api/queues?{urlencode(query)}"))
        now_s = time.monotonic()
        self.figures = figures_of(answer["data"], self._before, now_s - self._before_s)
        self.total = answer["count"]
        self._before = {row["name"]: row for row in answer["data"]}
        self._before_s = now_s
        self.problem = ""

    def press(self, key: str) -> None:
        """Do what a key means, if anything."""
        order = _BY_KEY.get(key)
        if order is not None:
            self.is_reversed = not self.is_reversed if order is self.order else False
            self.order = order
        elif key == " ":
            self.is_paused = not self.is_paused
        elif key == "+":
            self.interval_s = min(self.interval_s * 2, 60.0)
        elif key == "-":
            self.interval_s = max(self.interval_s / 2, _INTERVAL_S_MIN)

    @property
    def sorted_figures(self) -> list[Figures]:
        """All that was seen, in order."""
        return in_order(self.figures, self.order, is_reversed=self.is_reversed)

    def table(self, rows_max: int | None) -> tuple[list[Column], list[list[str | Cell]]]:
        """The first of them as a table: its columns and rows."""
        columns: list[Column] = []
        for heading in ("queue", "address", "depth", "growth/s", "in/s", "out/s", "consumers", "unacked", ""):
            is_text = heading in ("queue", "address", "")
            arrow = "▲" if self.is_reversed == self.order.is_number else "▼"
            chosen = f"{heading}{arrow}" if heading == self.order.heading else heading
            columns.append(Column(chosen, is_number=not is_text, is_cut=is_text))
        return columns, [_cells(one) for one in self.sorted_figures[:rows_max]]

    def screen(self, console: Console) -> Group:
        """The whole terminal."""
        rows_max = max(console.height - _ROWS_AROUND, 3)
        shown = min(rows_max, len(self.figures))
        head = Text(f"{self._broker.url}  {datetime.now():%H:%M:%S}  every {self.interval_s:g} s", no_wrap=True)
        if self.is_paused:
            head.append("  paused", "bold yellow")
        if self.problem:
            head.append(f"  {escaped(self.problem)}", "bold red")
        note = f"{shown:,} of {self.total:,} queues" if self.total else "no queue"
        if self.total > len(self.figures):
            note += f"; rates are of the first {len(self.figures):,} by {self.order.field}"
        keys = Text(no_wrap=True, overflow="ellipsis")  # narrow terminals cut it: first how to leave
        keys.append("q", "bold").append(" quit  ").append("space", "bold").append(" pause  ")
        for order in ORDERS:
            keys.append(order.key, "bold").append(f" {order.heading}  ")
        keys.append("+ -", "bold").append(" interval")
        return Group(head, Text(""), table_of(*self.table(rows_max)), Text(""), Text(note, "dim", no_wrap=True), keys)


def _cells(one: Figures) -> list[str | Cell]:
    return [
        one.name,
        one.address if one.address != one.name else "",
        f"{one.depth:,}",
        Cell(f"{one.growth:+,.0f}" if abs(one.growth) >= 0.5 else "", "yellow" if one.growth > 0 else ""),
        _rate(one.rate_in),
        _rate(one.rate_out),
        Cell(f"{one.consumers:,}", "red" if one.depth and not one.consumers else ""),
        f"{one.delivering:,}",
        Cell("paused" if one.paused else "", "yellow"),
    ]


def _rate(value: float) -> str:
    return "" if value < 0.05 else f"{value:,.1f}" if value < 10 else f"{value:,.0f}"


def _live(watch: _Watch, args: argparse.Namespace) -> int:
    watch.look()
    console = Console(highlight=False)
    looks = 1
    with raw_keys() as keys, Live(console=console, screen=True, auto_refresh=False) as live:
        next_s = time.monotonic() + min(watch.interval_s, 1.0)
        while True:
            live.update(watch.screen(console), refresh=True)
            key = keys.wait(next_s - time.monotonic())
            if key is not None:
                if key in ("q", "Q", "\x03", "\x04"):
                    return 0
                watch.press(key)
                continue
            next_s = time.monotonic() + watch.interval_s
            if watch.is_paused:
                continue
            if args.count is not None and looks >= args.count:
                return 0
            looks += 1
            try:
                watch.look()
            except ArtemisError as error:  # it may come back
                watch.problem = str(error)


def _print_lines(watch: _Watch, args: argparse.Namespace) -> int:
    watch.look()
    number = 0
    while args.count is None or number < args.count:
        time.sleep(watch.interval_s)
        watch.look()
        number += 1
        rows = [_as_object(one) for one in watch.sorted_figures]
        say_made(as_json({"time": datetime.now().astimezone().isoformat("T", "milliseconds"), "queues": rows}))
        sys.stdout.flush()
    return 0


def _as_object(one: Figures) -> dict[str, Any]:
    return {
        "name": one.name,
        "address": one.address,
        "messageCount": one.depth,
        "growthPerSecond": round(one.growth, 3),
        "addedPerSecond": round(one.rate_in, 3),
        "ackedPerSecond": round(one.rate_out, 3),
        "consumerCount": one.consumers,
        "deliveringCount": one.delivering,
        "paused": one.paused,
    }


# ---- figures ---------------------------------------------------------------------------------------------------------
# Of queues at one moment, and rates from two moments.


FIELDS: Final = (
    "name", "address", "messageCount", "consumerCount", "deliveringCount", "messagesAdded", "messagesAcked", "paused",
)  # fmt: skip
"""What is asked for of each queue."""


@final
@dataclass(frozen=True, slots=True)
class Figures:
    """One queue. Rates are messages a second."""

    name: str
    address: str
    depth: int
    growth: float
    rate_in: float
    rate_out: float
    consumers: int
    delivering: int
    paused: bool


@final
@dataclass(frozen=True, slots=True)
class Order:
    """A way to sort: its key, its heading, the broker's field that is nearest to it, and where the greatest stand."""

    key: str
    heading: str
    field: str
    is_number: bool = True


ORDERS: Final = (
    Order("d", "depth", "messageCount"),
    Order("i", "in/s", "messagesAdded"),
    Order("o", "out/s", "messagesAcked"),
    Order("g", "growth/s", "messageCount"),
    Order("c", "consumers", "consumerCount"),
    Order("u", "unacked", "deliveringCount"),
    Order("n", "queue", "name", is_number=False),
)
_BY_KEY: Final = {order.key: order for order in ORDERS}
_ATTRIBUTES: Final = {
    "d": "depth", "i": "rate_in", "o": "rate_out", "g": "growth", "c": "consumers", "u": "delivering", "n": "name",
}  # fmt: skip


def figures_of(
    now: Iterable[Mapping[str, Any]], before: Mapping[str, Mapping[str, Any]], passed_s: float
) -> list[Figures]:
    """The figures of the rows of a list; rates since ``before``, the rows of ``passed_s`` ago by name."""
    return [_figures(row, before.get(row["name"]), passed_s) for row in now]


def _figures(row: Mapping[str, Any], before: Mapping[str, Any] | None, passed_s: float) -> Figures:
    def rate(field: str) -> float:
        return 0.0 if before is None or passed_s <= 0 else (row[field] - before[field]) / passed_s

    return Figures(
        name=row["name"],
        address=row["address"],
        depth=row["messageCount"],
        growth=rate("messageCount"),
        rate_in=max(rate("messagesAdded"), 0.0),
        rate_out=max(rate("messagesAcked"), 0.0),
        consumers=row["consumerCount"],
        delivering=row["deliveringCount"],
        paused=row["paused"],
    )


def in_order(figures: Sequence[Figures], order: Order, *, is_reversed: bool) -> list[Figures]:
    """The greatest first, or names from A to Z; ``is_reversed``: the other way. Equal ones by name."""
    by_name = sorted(figures, key=lambda one: one.name)
    attribute = _ATTRIBUTES[order.key]
    return sorted(by_name, key=lambda one: getattr(one, attribute), reverse=order.is_number != is_reversed)


# ---- keys ------------------------------------------------------------------------------------------------------------
# Single ones from a terminal, as they are pressed.


_SEQUENCES: Final = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z])?")


@final
class Keys:
    """The keys of a terminal that hands them on at once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pressed = ""
        """Keys that were pressed and not taken yet."""

    def wait(self, seconds: float) -> str | None:
        """The next key, None if none is pressed in time. At the end of the input it is ``q``. Keys that send more than
        a character, such as arrows, are no key.
        """
        if not self._pressed:
            ready, _, _ = select.select([self._descriptor], [], [], max(seconds, 0.0))
            if not ready:
                return None
            data = os.read(self._descriptor, 64)
            self._pressed = _SEQUENCES.sub("", data.decode("ascii", "replace")) if data else "q"
        key, self._pressed = self._pressed[:1], self._pressed[1:]
        return key


@contextmanager
def raw_keys() -> Iterator[Keys]:
    """The terminal of standard input, without echo and line editing; as it was afterwards, whatever happens."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield Keys(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
