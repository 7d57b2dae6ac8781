"""What the test of each operation needs to know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.management.told import Told


@dataclass
class Scene:
    """What is there before, the arguments, and what is right afterwards."""

    arguments: dict[str, str]
    check: Callable[[Told, Any], object]
    before: Callable[[Told], object] = lambda _: None
    after: Callable[[Told], object] = lambda _: None
    stores: bool = field(default=False, kw_only=True)
    """Does it need a broker with a journal?"""
    by_bean: Callable[[Told, Any], object] | None = field(default=None, kw_only=True)
    """What is right if a bean of Artemis did it, whose answer may be another, or none; None: what ``check`` says."""


def rows(kind: str, names: set[str]) -> Callable[[Told, Any], None]:
    def check(_told: Told, answer: Any) -> None:
        assert {row[kind] for row in answer["data"]} == names
        assert answer["count"] == len(names)

    return check


def holds(**values: object) -> Callable[[Told, Any], None]:
    def check(_told: Told, answer: Any) -> None:
        assert {name: answer[name] for name in values} == values

    return check
