"""Long JSON, decoded a little at a time."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.storage.format.segment_index import AT_ONCE_BYTES, loads


def written(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 1 << 60) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=40,
)


@given(st.dictionaries(st.text(), _values, max_size=40))
def test_it_is_what_json_makes_of_it(fields: dict[str, Any]) -> None:
    value = {"pad": "x" * AT_ONCE_BYTES, **fields}
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
