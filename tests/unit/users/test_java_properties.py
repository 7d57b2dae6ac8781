"""Java itself reads files of users and roles as we do, those that we write included."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from artemis_py.security.users.tables import PropertiesText, TableError, entries_of, text_of
from tests.kit.java import java_says

PROGRAM = Path(__file__).with_name("Properties.java")
PIECES = ["\\", "\\", "\n", "\r\n", "\r", "=", ":", " ", "\t", "\f", "#", "!", "a", "b", "u", "u0041", "\xe9", "\x85"]
NAMES = ["bob", "my user", " x ", "=", ":", "#", "!", "a\\b", "é", "日本", "\U0001f600", "tab\t", "\n", "|SHA256", "-"]


def shown(values: Mapping[str, str]) -> str:
    """As the Java program prints it: UTF-16, in the order of Java's strings."""
    keys = sorted(values, key=lambda key: key.encode("utf-16-be"))
    return "".join(f"{key}\0{values[key]}\1".encode("utf-16-be").hex() for key in keys)


def we_read(text: bytes) -> str:
    try:
        return shown({entry.key: entry.value for entry in entries_of(text_of(text))})
    except TableError:
        return "refused"


def test_any_text() -> None:
    """But for a last line of nothing but a backslash: Java takes it for a key without a name."""
    dice = random.Random(7)
    texts = ["".join(dice.choices(PIECES, k=dice.randrange(16))).encode("latin-1") + b"\nend" for _ in range(5_000)]
    assert [we_read(text) for text in texts] == java_says(PROGRAM, texts)


def test_what_we_write() -> None:
    dice = random.Random(8)
    texts: list[bytes] = []
    meant: list[str] = []
    for _ in range(800):
        text = PropertiesText(b"# users\r\nfirst = 1 \\\n  2\nlast=x")
        values = {"first": "1 2", "last": "x"}
        for _ in range(dice.randrange(6)):
            key, value = "".join(dice.choices(NAMES, k=2)), "".join(dice.choices(NAMES, k=2))
            text.put(key, value)
            values[key] = value
        texts.append(text.data)
        meant.append(shown(values))
    assert java_says(PROGRAM, texts) == meant
    assert [we_read(text) for text in texts] == meant
