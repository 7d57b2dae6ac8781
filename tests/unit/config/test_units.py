"""Byte sizes and durations."""

from __future__ import annotations

import pytest

from artemis_py.units import parse_bytes, parse_decimal, parse_long

ODD = ("1_0", "\u0663", "\uff11", "\xb2", " 1", "1 ", "1\n", "0x1", "", "+", "--1", "one")
"""What Python's own readers of numbers take, or nearly take."""


@pytest.mark.parametrize("text", [*ODD, "1.0", "1e3", str(2**63)])
def test_no_whole_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        parse_long(text)


@pytest.mark.parametrize("text", [*ODD, "nan", "inf", "infinity", "1e999", ".", "1e"])
def test_no_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        parse_decimal(text)


def test_plain_numbers() -> None:
    assert [parse_long(text) for text in ("0", "-1", "+5", "007", str(2**63 - 1))] == [0, -1, 5, 7, 2**63 - 1]
    assert [parse_decimal(text) for text in ("0", "-1.5", "+.5", "2.", "1e3")] == [0, -1.5, 0.5, 2, 1000]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("10", 10),
        ("10b", 10),
        ("10 b", 10),
        ("10K", 10240),
        ("10k", 10240),
        ("10kb", 10240),
        ("10KB", 10240),
        ("10 KiB", 10240),
        ("10Ki", 10240),
        (" 10 Mi ", 10 * 1024**2),
        ("10Mb", 10 * 1024**2),
        ("1 g", 1024**3),
        ("-1", -1),
        ("+5", 5),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_byte_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-1k",
        "+1k",
        "1.5G",
        "1T",
        "10 M b",
        " -1",
        "-1 ",
        "10i",
        "K",
        "1_000",
        "0x10",
        "١٠",
        "8589934592G",
        "lots",
    ],
)
def test_texts_that_are_no_byte_size(text: str) -> None:
    with pytest.raises(ValueError, match="byte size"):
        parse_bytes(text)
