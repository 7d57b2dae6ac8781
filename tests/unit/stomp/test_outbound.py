"""Output leaves in order, each part once what it depends on is durable."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from artemis_py.pending_output import PendingOutput


def test_what_depends_on_nothing_leaves_at_once() -> None:
    out = PendingOutput()
    assert not out
    out.parts().append(b"a")
    out.parts(0).append(b"b")
    assert out
    assert out.take(0) == [b"a", b"b"]
    assert not out
    assert out.take(99) == []


def test_a_part_waits_for_its_lsn_and_holds_back_what_follows() -> None:
    out = PendingOutput()
    out.parts().append(b"a")
    out.parts(5).append(b"b")
    out.parts().append(b"c")
    out.parts(3).append(b"d")
    out.parts(7).append(b"e")
    assert out.take(4) == [b"a"]
    assert out.take(4) == []
    assert out.take(5) == [b"b", b"c", b"d"]
    assert out
    assert out.take(6) == []
    assert out.take(7) == [b"e"]
    assert not out


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(min_value=0, max_value=20)),
            st.tuples(st.just("take"), st.integers(min_value=0, max_value=20)),
        )
    )
)
def test_order_and_durability(steps: list[tuple[str, int]]) -> None:
    """Beside a list: what leaves is the longest beginning of which every part is durable."""
    out = PendingOutput()
    waiting: list[tuple[int, bytes]] = []
    durable_lsn = 0
    for number, (verb, lsn) in enumerate(steps):
        if verb == "put":
            out.parts(lsn).append(b"%d" % number)
            waiting.append((lsn, b"%d" % number))
            continue
        durable_lsn = max(durable_lsn, lsn)
        leaving = 0
        while leaving < len(waiting) and waiting[leaving][0] <= durable_lsn:
            leaving += 1
        assert out.take(durable_lsn) == [part for _, part in waiting[:leaving]]
        del waiting[:leaving]
        assert bool(out) == bool(waiting)
