"""Addresses that page: what expires there, what all of them together may have in memory, and how much pages take."""

from __future__ import annotations

import pytest

from tests.kit.core import NOW_MS, broker_of, queue_config, send
from tests.kit.paged_bench import PagedBench

SCAN_MS = 30_000


def test_what_expires_in_a_page_goes_although_nobody_reads() -> None:
    bench = PagedBench()
    for number in range(30):
        send(bench.broker, "q", now_ms=bench.now_ms, expires_ms=NOW_MS + 1 if 10 <= number < 20 else 0)
    bench.settle()
    assert bench.queue.message_count == 30
    bench.now_ms += 2 * SCAN_MS
    bench.settle()
    assert bench.queue.message_count == 20
    assert bench.broker.queues["late"].message_count == 10


@pytest.mark.parametrize("policy", ["DROP", "FAIL"])
def test_pages_have_a_limit(policy: str) -> None:
    """So many, no more; what is consumed makes room for as many."""
    bench = PagedBench(settings={"page_limit_messages": 30, "page_full_policy": policy})
    address = bench.broker.addresses["q"]
    for _ in range(2):
        while address.refusal is None:
            send(bench.broker, "q", now_ms=bench.now_ms)
        assert address.refusal == policy
        assert bench.queue.message_count == 5 + 30
        bench.queue.purge("acked", bench.now_ms)
        bench.settle()
        assert address.refusal is None


def test_what_all_addresses_hold_together_is_limited() -> None:
    """The next message finds no room, even if its address is small."""
    names = ("a", "b", "c")
    broker = broker_of(
        *(queue_config(name, name) for name in names),
        settings={"#": {"address_full_policy": "DROP"}},
        global_max_size=1 << 30,
        global_max_messages=10,
    )
    for name in names:
        for _ in range(4):
            send(broker, name)
    assert [broker.queues[name].message_count for name in names] == [4, 4, 2]
