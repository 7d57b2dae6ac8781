"""Tables for people."""

from __future__ import annotations

import pytest

from artemis_py.text_table import Cell, Column, print_table, text_of

COLUMNS = [Column("queue"), Column("messages", is_number=True), Column("at", is_cut=True)]


def test_columns_are_as_wide_as_their_texts() -> None:
    rows = [("orders", "1,234", "noon"), ("日本", "5", ""), ("e\u0301", "6", "night")]
    assert text_of(COLUMNS, rows).splitlines() == [
        "queue   messages  at",
        "orders     1,234  noon",
        "日本           5",
        "e\u0301              6  night",
    ]


def test_without_a_heading_there_is_no_line_of_them() -> None:
    assert text_of([Column(), Column()], [("a", "1"), ("bc", "2")]) == "a   1\nbc  2"


def test_what_is_too_wide_is_broken_or_cut_and_numbers_stay_whole() -> None:
    long = "one two three four five six seven"
    lines = text_of(COLUMNS, [(long, "1,234,567", long)], 45).splitlines()
    assert max(map(len, lines)) <= 45
    assert len(lines) > 2, "the first column goes on in further lines"
    assert sum("1,234,567" in line for line in lines) == 1
    assert sum("…" in line for line in lines) == 1


def test_nothing_in_a_text_is_an_order_to_the_terminal() -> None:
    text = text_of([Column("[red]\x1b")], [("[bold]\x1b[31m\nforged",), (Cell(("one", "two\r")),)])
    assert text.splitlines() == [r"[red]\x1b", r"[bold]\x1b[31m\nforged", "one", r"two\r"]


def test_colours_are_for_those_who_want_them() -> None:
    rows = [(Cell("lost", "red"),)]
    assert text_of([Column("state")], rows) == "state\nlost"
    assert text_of([Column("state")], rows, has_colours=True) == "\x1b[1mstate\x1b[0m\n\x1b[31mlost \x1b[0m"


def test_where_nobody_reads_no_line_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([Column()], [("word " * 100,)], indent=2)
    assert capsys.readouterr().out == "  " + ("word " * 100).rstrip() + "\n"
