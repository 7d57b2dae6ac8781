"""Leftovers, machine paths, numbers; each rule is also shown a bad example."""

from __future__ import annotations

import re

import pytest

from tests.kit.sources import PACKAGE, python_files, shown, text_files
from tests.tidy.shape import LEFTOVER, MACHINE_PATH, POSSESSIVE_GROUP, lax_numbers, marks

READ_NUMBERS = (
    "artemis_py/selector/", "artemis_py/cli/data/", "artemis_py/spark/", "artemis_py/storage/disk/lock.py",
)  # fmt: skip
"""What reads numbers that it has matched before, or has written itself."""


def test_numbers_are_read_strictly() -> None:
    paths = [path for path in python_files(PACKAGE) if not shown(path).startswith(READ_NUMBERS)]
    assert [text for path in paths for text in lax_numbers(shown(path), path.read_text("utf-8"))] == []
    lax = "try:\n    int(text)\nexcept ValueError:\n    pass\nadd('--n', type=float)"
    assert lax_numbers("x.py", lax) == ["x.py:2: int(text)", "x.py:5: type=float"]


@pytest.mark.parametrize("pattern", [LEFTOVER, MACHINE_PATH], ids=["leftover", "path"])
def test_nothing_is_left_for_later_and_no_path_is_of_a_machine(pattern: re.Pattern[str]) -> None:
    """But in this folder, which must show what it forbids."""
    texts = {shown(path): path for path in text_files() if not shown(path).startswith("tests/tidy/")}
    assert [found for name, path in texts.items() for found in marks(pattern, name, path.read_text("utf-8"))] == []


def test_a_leftover_is_found() -> None:
    for word in ("TODO", "FIXME", "XXX"):
        assert marks(LEFTOVER, "x.py", f"fine\n# {word}: later\n") == [f"x.py:2: {word}"]
    assert marks(LEFTOVER, "x.py", "TODOS fixme\n") == []


def test_a_path_of_a_machine_is_found() -> None:
    for folder in ("root", "home", "Users"):
        assert marks(MACHINE_PATH, "x.md", f"see /{folder}/somebody/file\n") == [f"x.md:1: /{folder}/somebody"]
        assert marks(MACHINE_PATH, "x.md", f"./{folder}/x/y docs/{folder}/z https://example.org/{folder}/page") == []
    assert marks(MACHINE_PATH, "x.md", "/var/lib/artemis") == []


def test_no_group_repeats_possessively() -> None:
    paths = list(python_files(PACKAGE))
    assert [text for path in paths for text in marks(POSSESSIVE_GROUP, shown(path), path.read_text("utf-8"))] == []
    for repeat in ("*", "+", "?", "{1,%d}"):
        assert marks(POSSESSIVE_GROUP, "x.py", f"fine\n'(?:ab){repeat}+'") == [f"x.py:2: ){repeat}+"]
        assert marks(POSSESSIVE_GROUP, "x.py", f"'[ab]{repeat}+(?:ab){repeat}'") == []
