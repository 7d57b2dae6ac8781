"""Byte sizes and durations."""

from __future__ import annotations

import pytest

from artemis_py.units import format_bytes, parse_bytes, parse_duration_ms


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


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("700", 700),
        ("700ms", 700),
        ("1s", 1000),
        ("0.5s", 500),
        ("1.25 s", 1250),
        ("2m", 120_000),
        ("1h", 3_600_000),
        ("1d", 86_400_000),
        ("0", 0),
        ("-1", -1),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "s", "1 year", "-2", "-1s", "1.5", "0.0001s", "1e3", "99999999999999999999"])
def test_texts_that_are_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|milliseconds"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0"), (1000, "1000"), (1024, "1KiB"), (10 * 1024**2, "10MiB"), (3 * 1024**3, "3GiB")]
)
def test_sizes_are_written_with_the_largest_unit(size: int, text: str) -> None:
    assert format_bytes(size) == text
