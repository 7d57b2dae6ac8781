"""The names of journal files, for those who write them and for readers that are no broker."""

from __future__ import annotations


def segment_name(number: int) -> str:
    """The file name of a journal segment."""
    return f"artemis-journal-{number:012}.log"


def segment_number(name: str) -> int | None:
    """The number in a segment's file name; None for other files."""
    stem = name.removeprefix("artemis-journal-").removesuffix(".log")
    return int(stem) if stem.isdecimal() and name == segment_name(int(stem)) else None
