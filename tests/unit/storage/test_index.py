"""What lives, in which segment, and in which order a restart gives it back."""

from __future__ import annotations

from artemis_py.message import Account, Head, LargeBody, Message
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.journal.index import Index, Segment

A, B = 1, 2


def _kept(message_id: int, *queue_ids: int, lsn: int | None = None) -> Kept:
    message = Message(Head(b"\n", "a", persistent=True), b"body", message_id, 0, 0, Account(), 0)
    return Kept(message, message_id if lsn is None else lsn, list(queue_ids))


def _index(*kept: Kept) -> tuple[Index, Segment]:
    index, segment = Index(), Segment(1, "one", 1)
    for queue_id in (A, B):
        index.set_queue({"id": queue_id, "name": str(queue_id)})
    for one in kept:
        index.add(one, segment)
    return index, segment


def _order(index: Index, queue_id: int = A) -> list[int]:
    return [one.message.id for one in index.recovered_state().messages.get(queue_id, [])]


def test_a_message_lives_until_its_last_queue_is_done_with_it() -> None:
    index, segment = _index(_kept(1, A, B))
    index.settle(A, 1)
    assert (_order(index, A), _order(index, B)) == ([], [1])
    assert segment.live_bytes > 0
    index.settle(A, 1)
    assert _order(index, B) == [1], "settling twice in one queue must not count for the other"
    index.settle(B, 1)
    assert (segment.live, segment.live_bytes, index.find(1)) == ({}, 0, None)


def test_what_is_unknown_is_ignored() -> None:
    index, _ = _index(_kept(1, A))
    index.settle(A, 7)
    index.settle(B, 1)
    index.attempt(A, 7, 1, 0)
    index.put_at_head(9, A, [7])
    assert _order(index) == [1]


def test_a_copy_moves_the_message_and_keeps_its_place() -> None:
    index, first = _index(_kept(1, A), _kept(2, A))
    second = Segment(2, "two", 10)
    index.add(_kept(1, A), second)
    assert (list(first.live), list(second.live)) == ([2], [1])
    assert first.live_bytes == second.live_bytes
    assert _order(index) == [1, 2]


def test_a_run_counts_like_its_messages_alone() -> None:
    run = [_kept(number, A) for number in (3, 1, 2)]
    index, segment = _index(_kept(4, A, B))
    alone, other = _index(_kept(4, A, B), *run)
    index.add_run(run, segment)
    assert (index.message_id_max, segment.live_bytes, _order(index)) == (4, other.live_bytes, _order(alone))
    index.settle_run(A, [2, 9, 4, 3])
    index.settle_run(B, [1])
    for message_id in (2, 9, 4, 3):
        alone.settle(A, message_id)
    assert (_order(index, A), _order(index, B)) == (_order(alone, A), _order(alone, B)) == ([1], [4])
    assert (list(segment.live), segment.live_bytes) == (list(other.live), other.live_bytes)


def test_a_body_in_a_file_of_its_own_is_no_part_of_what_lives_in_a_segment() -> None:
    """It was taken off when its message was settled: less than nothing lived then, and compaction never rested."""
    large, small = _kept(1, A), _kept(2, A)
    large.message.body = LargeBody(1, 100_000_000)
    index, segment = _index(large, small)
    index.settle_run(A, [1, 2])
    assert segment.live_bytes == 0


def test_a_message_without_queues_does_not_live() -> None:
    index, segment = _index(_kept(1))
    assert (segment.live, segment.live_bytes, index.find(1)) == ({}, 0, None)


def test_attempts_and_delays_belong_to_one_queue() -> None:
    index, _ = _index(_kept(1, A, B))
    index.attempt(A, 1, 3, 500)
    kept = index.recovered_state().messages
    assert [(one.attempts, one.due_ms) for one in kept[A]] == [(3, 500)]
    assert [(one.attempts, one.due_ms) for one in kept[B]] == [(0, 0)]


def test_due_messages_stand_at_the_head_the_latest_round_first() -> None:
    index, _ = _index(*(_kept(number, A) for number in range(1, 6)))
    index.put_at_head(10, A, [4, 5])
    index.put_at_head(11, A, [3])
    assert _order(index) == [3, 4, 5, 1, 2]


def test_orphans_die_with_their_queue() -> None:
    index, segment = _index(_kept(1, A), _kept(2, A, B))
    index.delete_queue(A)
    index.drop_orphans()
    assert (_order(index, A), _order(index, B)) == ([], [2])
    assert list(segment.live) == [2]


def test_numbers_given_once_are_remembered() -> None:
    index, _ = _index(_kept(41, A))
    index.settle(A, 41)
    index.delete_queue(B)
    kept = index.recovered_state()
    assert (kept.message_id, kept.queue_id) == (41, B)


def test_duplicate_ids_are_bounded_and_end_with_their_address() -> None:
    index, _ = _index()
    index.set_address({"name": "a"})
    for number in range(100):
        index.add_duplicate_id("a", str(number), 10)
        assert index.duplicate_ids["a"][-min(number + 1, 10) :] == [
            str(one) for one in range(max(number - 9, 0), number + 1)
        ]
    assert len(index.duplicate_ids["a"]) <= 20
    index.set_address({"name": "a", "deleted": True})
    assert (index.duplicate_ids, index.addresses) == ({}, {})


def test_one_of_very_many_queues_is_done_with_a_message_at_the_same_cost() -> None:
    """Each of a hundred thousand subscribers acknowledges a message: that was a search among all of them."""
    costs = []
    for count in (50, 5000):
        index, segment = _index(_kept(1, *range(1, count + 1)))
        before = Compared.comparisons
        for queue_id in (count, count // 2, 2):
            segment.live[1].queue_ids[:] = [Compared(each) for each in segment.live[1].queue_ids]
            index.settle(queue_id, 1)
        costs.append(Compared.comparisons - before)
    assert costs[1] <= 3 * costs[0], costs


def test_queues_of_a_message_may_stand_in_any_order() -> None:
    index, _ = _index(_kept(1, 5, 3, 9, 1))
    for queue_id in (9, 9, 4, 1, 5):
        index.settle(queue_id, 1)
    kept = index.find(1)
    assert kept is not None
    assert kept.queue_ids == [3]


class Compared(int):
    """A number; counts how often one is compared."""

    comparisons = 0

    def __lt__(self, other: int) -> bool:
        Compared.comparisons += 1
        return int(self) < int(other)

    def __eq__(self, other: object) -> bool:
        Compared.comparisons += 1
        return isinstance(other, int) and int(self) == int(other)

    __hash__ = int.__hash__
