"""Leftovers, machine paths, numbers; each rule is also shown a bad example."""

from __future__ import annotations

from pathlib import Path

from tests.kit.sources import PACKAGE, python_files, shown, text_files
from tests.tidy.shape import lax_numbers, leftovers, machine_paths, possessive_groups

READ_NUMBERS = (
    "artemis_py/selector/", "artemis_py/cli/data/", "artemis_py/spark/", "artemis_py/storage/disk/lock.py",
)  # fmt: skip
"""What reads numbers that it has matched before, or has written itself."""


def texts_under_the_rule() -> list[Path]:
    """Every text but those of this folder, which must show what they forbid."""
    return [path for path in text_files() if not shown(path).startswith("tests/tidy/")]


def test_numbers_are_read_strictly() -> None:
    paths = [path for path in python_files(PACKAGE) if not shown(path).startswith(READ_NUMBERS)]
    assert [text for path in paths for text in lax_numbers(shown(path), path.read_text("utf-8"))] == []
    lax = "try:\n    int(text)\nexcept ValueError:\n    pass\nadd('--n', type=float)"
    assert lax_numbers("x.py", lax) == ["x.py:2: int(text)", "x.py:5: type=float"]


def test_nothing_is_left_for_later() -> None:
    assert [text for path in texts_under_the_rule() for text in leftovers(shown(path), path.read_text("utf-8"))] == []


def test_no_path_of_a_machine() -> None:
    assert [
        text for path in texts_under_the_rule() for text in machine_paths(shown(path), path.read_text("utf-8"))
    ] == []


def test_a_leftover_is_found() -> None:
    for word in ("TODO", "FIXME", "XXX"):
        assert leftovers("x.py", f"fine\n# {word}: later\n") == [f"x.py:2: {word}"]
    assert leftovers("x.py", "TODOS fixme\n") == []


def test_a_path_of_a_machine_is_found() -> None:
    for folder in ("root", "home", "Users"):
        assert machine_paths("x.md", f"see /{folder}/somebody/file\n") == [f"x.md:1: /{folder}/somebody"]
        assert machine_paths("x.md", f"./{folder}/x/y docs/{folder}/z https://example.org/{folder}/page") == []
    assert machine_paths("x.md", "/var/lib/artemis") == []


def test_no_group_repeats_possessively() -> None:
    paths = list(python_files(PACKAGE))
    assert [text for path in paths for text in possessive_groups(shown(path), path.read_text("utf-8"))] == []
    for repeat in ("*", "+", "?", "{1,%d}"):
        assert possessive_groups("x.py", f"fine\n'(?:ab){repeat}+'") == [f"x.py:2: ){repeat}+"]
        assert possessive_groups("x.py", f"'[ab]{repeat}+(?:ab){repeat}'") == []
