"""Tables whose keys clients choose have a bound, in entries and in bytes, or shrink with what they are about."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

from artemis_py.core.addresses.routing_table import Route
from artemis_py.core.broker import Broker
from artemis_py.core.events import REJECTED, Event
from artemis_py.core.queue_reference import MessageAges
from artemis_py.message import Account, Head, Message, header_name
from artemis_py.record_log import MemoryLog
from artemis_py.server.operational_log import OperationalLog
from artemis_py.stomp.service import CHARACTERS_MAX, ENTRIES_MAX, TARGET_CHARACTERS_MAX, Routes
from artemis_py.stomp.wire.dialect import MEMO_BYTES_MAX, Dialect
from tests.kit.in_process import START_MS, configuration

COUNT = 12_000
MEBIBYTE = 1 << 20


@contextmanager
def less_is_kept_than(bytes_max: int) -> Iterator[None]:
    """Of what is done meanwhile."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < bytes_max
    finally:
        tracemalloc.stop()


def test_header_blocks_that_are_remembered() -> None:
    """Each comes twice: what never repeats is not remembered."""
    table = Dialect("1.2", configuration().acceptors[0])
    with less_is_kept_than(5 * MEMO_BYTES_MAX):
        for number in range(COUNT):
            block = b"SEND\ndestination:/queue/q\nx:" + b"%06d" % number + b"y" * 900
            for _ in range(2):
                frame = table.read(block)
                table.remember(block, frame)  # type: ignore[arg-type]
    assert table.memo


def test_shapes_that_are_remembered() -> None:
    table = Dialect("1.2", configuration().acceptors[0])
    with less_is_kept_than(5 * MEMO_BYTES_MAX):
        for number in range(COUNT):
            table.read(b"SEND\ndestination:/queue/%06d" % number + b"y" * 900)
    assert table._shapes


def test_routes_that_are_remembered() -> None:
    table = Routes()
    address = Broker(configuration(), MemoryLog(), START_MS).resolver.obtain_address("q", None)
    for length in (1, 900):
        with less_is_kept_than(3 * CHARACTERS_MAX):
            for number in range(COUNT):
                table.remember(f"/queue/{number:0{length}d}", Route(address, None, None))
        assert 0 < len(table.by_target) <= ENTRIES_MAX
    table.remember(f"/queue/{0:0{TARGET_CHARACTERS_MAX}d}", Route(address, None, None))
    assert all(len(target) <= TARGET_CHARACTERS_MAX for target in table.by_target)


def test_names_of_headers_in_selectors() -> None:
    with less_is_kept_than(8 * MEBIBYTE):
        for number in range(COUNT):
            header_name(f"{number:0250d}")
    with less_is_kept_than(MEBIBYTE):
        for number in range(1000):
            header_name("x" * 16_000 + str(number))


def test_settings_of_addresses() -> None:
    config = configuration("<address-settings><address-setting match='a.#'/></address-settings>")
    with less_is_kept_than(16 * MEBIBYTE):
        for number in range(COUNT):
            config.settings_for(f"a.{number}")


def test_lines_of_the_operational_log() -> None:
    log = OperationalLog()
    log._logger.disabled = True
    try:
        with less_is_kept_than(10 * MEBIBYTE):
            for number in range(COUNT):
                log.write([Event(REJECTED, f"{number}" + "q" * 10_000, {})], START_MS)
    finally:
        log._logger.disabled = False


def test_ages_behind_a_message_that_stays() -> None:
    ages = MessageAges(100)
    head = Head(b"\n", "a")

    def message(timestamp_ms: int) -> Message:
        return Message(head, b"", 1, timestamp_ms, 0, Account(), 0)

    ages.add([message(0)])
    for timestamp_ms in range(1, COUNT):
        ages.add([message(timestamp_ms)])
        ages.remove([message(timestamp_ms)])
    assert len(ages._numbers) <= 4
    assert len(ages._counts) == len(ages._numbers)
    assert ages.oldest_ms() == 0
    ages.remove([message(0)])
    assert ages.oldest_ms() is None
