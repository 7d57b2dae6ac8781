"""Tables whose keys clients choose have a bound, in entries and in bytes, or shrink with what they are about."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

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


def grown_bytes(step: Callable[[int], object], count: int = COUNT) -> int:
    """What is kept after ``count`` steps."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(count):
            step(number)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_header_blocks_that_are_remembered() -> None:
    """Each comes twice: what never repeats is not remembered."""
    table = Dialect("1.2", configuration().acceptors[0])

    def remember(number: int) -> None:
        block = b"SEND\ndestination:/queue/q\nx:" + b"%06d" % number + b"y" * 900
        for _ in range(2):
            frame = table.read(block)
            table.remember(block, frame)  # type: ignore[arg-type]

    assert grown_bytes(remember) < 5 * MEMO_BYTES_MAX
    assert table.memo


def test_shapes_that_are_remembered() -> None:
    table = Dialect("1.2", configuration().acceptors[0])
    assert grown_bytes(lambda number: table.read(b"SEND\ndestination:/queue/%06d" % number + b"y" * 900)) < (
        5 * MEMO_BYTES_MAX
    )
    assert table._shapes


def test_routes_that_are_remembered() -> None:
    table = Routes()
    address = Broker(configuration(), MemoryLog(), START_MS).resolver.obtain_address("q", None)

    def remember(number: int, length: int) -> None:
        table.remember(f"/queue/{number:0{length}d}", Route(address, None, None))

    for length in (1, 900):
        assert grown_bytes(lambda number, length=length: remember(number, length)) < 3 * CHARACTERS_MAX  # type: ignore[misc]
        assert 0 < len(table.by_target) <= ENTRIES_MAX
    remember(0, TARGET_CHARACTERS_MAX)
    assert all(len(target) <= TARGET_CHARACTERS_MAX for target in table.by_target)


def test_names_of_headers_in_selectors() -> None:
    assert grown_bytes(lambda number: header_name(f"{number:0250d}")) < 8 * MEBIBYTE
    assert grown_bytes(lambda number: header_name("x" * 16_000 + str(number)), 1000) < MEBIBYTE


def test_settings_of_addresses() -> None:
    config = configuration("<address-settings><address-setting match='a.#'/></address-settings>")
    assert grown_bytes(lambda number: config.settings_for(f"a.{number}")) < 16 * MEBIBYTE


def test_lines_of_the_operational_log() -> None:
    log = OperationalLog()
    log._logger.disabled = True
    try:
        grown = grown_bytes(lambda number: log.write([Event(REJECTED, f"{number}" + "q" * 10_000, {})], START_MS))
    finally:
        log._logger.disabled = False
    assert grown < 10 * MEBIBYTE


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
