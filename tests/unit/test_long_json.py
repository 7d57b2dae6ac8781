"""Long JSON, decoded a little at a time."""

from __future__ import annotations

import json
import random
import string
import sys
import threading
from typing import Any

import pytest

from artemis_py.storage.format.segment_index import AT_ONCE_BYTES, loads


def written(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def anything(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(7 if depth else 4)
    if kind > 4:
        return {f"k{number}é": anything(chance, depth - 1) for number in range(chance.randrange(6))}
    if kind == 4:
        return [anything(chance, depth - 1) for _ in range(chance.randrange(6))]
    text = "".join(chance.choices(string.printable + "é€😀", k=8))
    return (None, chance.random() < 0.5, chance.randrange(1 << 60), text)[kind]


@pytest.mark.parametrize("seed", range(20))
def test_it_is_what_json_makes_of_it(seed: int) -> None:
    chance = random.Random(seed)
    value = {"pad": "x" * AT_ONCE_BYTES, **{f"f{number}": anything(chance, 4) for number in range(40)}}
    assert loads(written(value)) == value
    assert loads(written(value) + b"\n") == value
    assert loads(written({"short": [1]})) == {"short": [1]}


@pytest.mark.parametrize("broken", [-1, -2, -9, AT_ONCE_BYTES + 3])
def test_a_torn_text(broken: int) -> None:
    text = written({"pad": "x" * AT_ONCE_BYTES, "list": [{"a": 1}, {"b": [2, 3]}], "map": {"c": 4}})
    with pytest.raises(ValueError, match=r"."):
        loads(text[:broken])


@pytest.mark.parametrize("end", ["x", ',"more":1', "]"])
def test_something_behind_it(end: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(written({"pad": "x" * AT_ONCE_BYTES}) + end.encode())


def test_others_have_their_turn() -> None:
    """A thread that waits for the interpreter gets it long before the text is decoded."""
    text = written(
        {"queues": [{"id": number, "name": f"queue {number}", "more": "x" * 200} for number in range(60_000)]}
    )
    before = sys.getswitchinterval()
    turns = 0
    is_over = threading.Event()

    def take_turns() -> None:
        nonlocal turns
        while not is_over.wait(0.0001):
            turns += 1

    other = threading.Thread(target=take_turns)
    sys.setswitchinterval(0.0005)
    try:
        other.start()
        begun = turns
        loads(text)
        seen = turns - begun
    finally:
        is_over.set()
        other.join()
        sys.setswitchinterval(before)
    assert seen > 10
