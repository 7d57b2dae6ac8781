"""Page files that are not as they were written: what is whole comes, the rest is told, and nobody waits for it."""

from __future__ import annotations

import random

import pytest

from artemis_py.storage import pages as page_files
from artemis_py.version import IS_COMPILED
from tests.kit.disk import File
from tests.kit.selection import is_of_ci
from tests.model.letters import Spec
from tests.model.paging_model import PICKED
from tests.model.paging_world import PagingWorld
from tests.model.plans import PagePlan, Plan

pytestmark = pytest.mark.model

COUNT = 5
BODY_BYTES = 40
STRIDE = 1 if is_of_ci() and not IS_COMPILED else 3
"""One of so many bytes, others in each run."""
CHUNKS = (60, 230, 1 << 20)
"""Less than a message, about two, and the whole page."""


def written(page_bytes: int = 1 << 20) -> PagingWorld:
    """A world with messages in pages, all on the disk."""
    world = PagingWorld(Plan(pages=PagePlan(messages_max=0, page_bytes=page_bytes)))
    world.publish(*[Spec("red" if number % 2 else "blue", body_bytes=BODY_BYTES) for number in range(COUNT)])
    world.turn()
    world.writer.stop()
    world.turn()
    return world


def page_file(world: PagingWorld) -> File:
    """The first page's file."""
    return world.disk.files[min(world.disk.names())]


def read_all(world: PagingWorld) -> list[int]:
    """What a consumer gets, by number; afterwards nothing may be left to wait for."""
    first = min(world.pairs[0].model.slots)
    world.is_damaged = True
    found: list[int] = []
    seat = world.subscribe(settles=True)

    def note(message_id: int, *, is_barrier: bool) -> None:
        assert not is_barrier
        found.append(message_id - first)
        world.pairs[0].model.slots[message_id].state = PICKED

    seat.consumer.tell = note
    world.rest()
    counters = world.pairs[0].queue.contents.counters
    counts = world.pairs[0].queue.message_count, counters.size_bytes, counters.durable_count, counters.held_count
    assert counts == (0, 0, 0, 0), "something is waited for"
    assert world.address.number_of_pages == 0, "a page stays"
    assert world.address.account.message_count == 0
    return found


def after(data: bytes | bytearray, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch) -> tuple[set[int], int]:
    """Which numbers are missing when the file is this, and how many lines tell of damage."""
    monkeypatch.setattr(page_files, "CHUNK_BYTES", chunk_bytes)
    world = written()
    page_file(world).data[:] = data
    found = read_all(world)
    assert found == sorted(set(found)), "order, and nothing twice"
    return set(range(COUNT)) - set(found), len(world.said)


@pytest.mark.parametrize("chunk_bytes", CHUNKS)
def test_any_damaged_byte_costs_one_message_at_most(
    chunk_bytes: int, monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    """One of its bits, or all of them."""
    whole = page_file(written()).data
    lost: list[set[int]] = []
    for offset in range(rng.randrange(STRIDE), len(whole), STRIDE):
        data = bytearray(whole)
        data[offset] ^= rng.choice((0x01, 0xFF))
        missing, told = after(data, chunk_bytes, monkeypatch)
        assert len(missing) <= 1, f"byte {offset}: {missing} are missing"
        assert told == 1, f"byte {offset}: damage is told {told} times"
        lost.append(missing)
    assert set().union(*lost) == set(range(COUNT)), "each byte of a message counts"


@pytest.mark.parametrize("chunk_bytes", CHUNKS)
def test_a_page_cut_off_anywhere_gives_what_is_whole(
    chunk_bytes: int, monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    whole = page_file(written()).data
    before, most = COUNT, len(whole) - 1
    for length in (*range(rng.randrange(STRIDE), most, STRIDE), most):
        missing, told = after(whole[:length], chunk_bytes, monkeypatch)
        assert missing == set(range(COUNT - len(missing), COUNT)), f"cut at {length}: {missing} are missing"
        assert len(missing) <= before, f"cut at {length}: a longer file gives less"
        assert told >= 1
        before = len(missing)
    assert before == 1


@pytest.mark.parametrize("chunk_bytes", CHUNKS)
def test_zeros_and_a_lost_file_are_told(chunk_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sector that was never written, or a page that is nothing but zeros."""
    missing, told = after(bytes(len(page_file(written()).data)), chunk_bytes, monkeypatch)
    assert missing == set(range(COUNT))
    assert told >= 1
    world = written(page_bytes=300)
    del world.disk.files[min(world.disk.names())]
    found = read_all(world)
    assert 0 < len(found) < COUNT
    assert world.said


def test_damage_is_kept_for_whoever_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The damaged page is not deleted with the others: it gets another name."""
    world = written(page_bytes=300)
    name = min(world.disk.names())
    page_file(world).data[-1] ^= 1
    read_all(world)
    assert world.disk.names() == [f"quarantined-{name}"]
