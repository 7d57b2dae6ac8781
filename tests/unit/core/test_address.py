"""An address: the expiry it gives, when it is full, and which duplicate ids it remembers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from artemis_py.config.settings import AddressSettings
from artemis_py.core.addresses.address import Address, Divert, DuplicateIds
from artemis_py.core.addresses.full_policy import why_dropped
from artemis_py.core.memory import Holdings
from artemis_py.core.order.entry import PURGED
from artemis_py.message import MESSAGE_OVERHEAD_BYTES, Account
from tests.kit.core import NOW_MS, broker_of, head_of, queue_config, send

# ---- expiry (tests/queues/rows.py, 2.8: the first rule that applies) ----------------------------


@pytest.mark.parametrize(
    ("settings", "asked", "given"),
    [
        ({}, None, None),
        ({}, 300, 300),
        ({"no_expiry": True}, None, None),
        ({"no_expiry": True}, 300, None),
        ({"no_expiry": True, "expiry_delay": 500}, None, None),
        ({"expiry_delay": 500}, None, 500),
        ({"expiry_delay": 500}, 60_000, 60_000),
        ({"expiry_delay": 0}, None, 0),
        ({"expiry_delay": 500, "max_expiry_delay": 100, "min_expiry_delay": 50}, None, 500),
        ({"expiry_delay": 500, "max_expiry_delay": 100, "min_expiry_delay": 50}, 900, 900),
        ({"min_expiry_delay": 1000, "max_expiry_delay": 5000}, None, 5000),
        ({"min_expiry_delay": 1000, "max_expiry_delay": 5000}, 100, 1000),
        ({"min_expiry_delay": 1000, "max_expiry_delay": 5000}, 9000, 5000),
        ({"min_expiry_delay": 1000, "max_expiry_delay": 5000}, 3000, 3000),
        ({"min_expiry_delay": 1000}, None, 1000),
        ({"min_expiry_delay": 1000}, 10, 1000),
        ({"min_expiry_delay": 1000}, 10_000, 10_000),
        ({"max_expiry_delay": 1000}, None, 1000),
        ({"max_expiry_delay": 1000}, 10, 10),
        ({"max_expiry_delay": 1000}, 10_000, 1000),
        ({"max_expiry_delay": 0}, None, 0),
        ({"max_expiry_delay": 0}, 10, 0),
    ],
)
def test_expiry_rules(settings: dict[str, Any], asked: int | None, given: int | None) -> None:
    """All times from now on; None is never. A delay of 0 means at once, not never."""
    broker = broker_of(queue_config(), settings={"a": settings})
    send(broker, expires_ms=0 if asked is None else NOW_MS + asked)
    entry = next(iter(broker.queues["q"].contents.order))
    assert entry.message.expires_ms == (0 if given is None else NOW_MS + given)
    assert (
        Address("a", AddressSettings(**settings)).expiry_of(0 if asked is None else NOW_MS + asked, NOW_MS)
        == entry.message.expires_ms
    )


# ---- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["DROP", "FAIL", "BLOCK"])
def test_limit_of_n_messages_keeps_n(policy: str) -> None:
    """Sent one by one or all at once."""
    for batches in ([5], [1] * 5, [2, 3]):
        broker = broker_of(queue_config(), settings={"a": {"max_size_messages": 3, "address_full_policy": policy}})
        taken = sum(send(broker, count=count) for count in batches)
        assert taken == (5 if policy == "DROP" else 3)
        assert broker.queues["q"].message_count == 3
        assert broker.addresses["a"].account.message_count == 3


def test_limit_in_bytes_is_overdrawn_by_one_message() -> None:
    """A message is taken while the address is under its limit."""
    one = head_of("a").size_bytes + 1 + MESSAGE_OVERHEAD_BYTES
    settings = {"a": {"max_size_bytes": 2 * one + 1, "address_full_policy": "FAIL"}}
    broker = broker_of(queue_config(), settings=settings)
    assert send(broker, count=5) == 3
    assert broker.addresses["a"].size_bytes == 3 * one
    assert broker.addresses["a"].limit_percent == 3 * one * 100 // (2 * one + 1)


def test_without_a_limit_nothing_is_refused() -> None:
    """A policy alone does nothing, and PAGE keeps everything in memory."""
    broker = broker_of(queue_config(), settings={"a": {"address_full_policy": "DROP"}})
    assert send(broker, count=1000) == 1000
    broker = broker_of(queue_config(), settings={"a": {"max_size_messages": 1, "address_full_policy": "PAGE"}})
    assert send(broker, count=10) == 10
    assert broker.queues["q"].message_count == 10
    assert broker.addresses["a"].limit_percent == 1000


def test_the_percentage_is_that_of_the_fuller_limit() -> None:
    """Without a limit it is 0."""
    one = head_of("a").size_bytes + 1 + MESSAGE_OVERHEAD_BYTES
    for limits, percent in (
        ({}, 0),
        ({"max_size_messages": 4}, 75),
        ({"max_size_messages": 4, "max_size_bytes": 4 * one}, 75),
        ({"max_size_messages": 300, "max_size_bytes": 6 * one}, 50),
        ({"max_size_messages": 5, "max_size_bytes": 300 * one}, 60),
    ):
        broker = broker_of(queue_config(), settings={"a": {**limits, "address_full_policy": "FAIL"}})
        assert send(broker, count=3) == 3
        assert broker.addresses["a"].limit_percent == percent


def test_dropped_messages_count_as_routed() -> None:
    """As in Artemis: the sender gets its receipt, the queue never sees the message."""
    broker = broker_of(queue_config(), settings={"a": {"max_size_messages": 1, "address_full_policy": "DROP"}})
    assert send(broker, count=3) == 3
    address = broker.addresses["a"]
    assert (address.routed_message_count, address.dropped_message_count) == (3, 2)
    assert broker.queues["q"].contents.counters.added == 1


def test_several_queues_charge_a_message_once() -> None:
    """And it is given back when the last of them is done with it."""
    broker = broker_of(queue_config("x"), queue_config("y"), settings={"a": {"max_size_messages": 2}})
    send(broker, count=2)
    account = broker.addresses["a"].account
    assert account.message_count == 2
    broker.queues["x"].purge(PURGED, NOW_MS)
    assert account.message_count == 2
    broker.queues["y"].purge(PURGED, NOW_MS)
    assert (account.message_count, account.size_bytes) == (0, 0)


def test_a_ring_leaves_room_on_its_address() -> None:
    """What a ring gave up is no longer held."""
    broker = broker_of(queue_config(ring_size=2))
    send(broker, count=10)
    assert broker.addresses["a"].account.message_count == 2


# ---- duplicates ----------------------------------------------------------------------------------


def test_duplicate_ids_forget_the_oldest() -> None:
    """The cache is a ring."""
    ids = DuplicateIds(2, Holdings(Account()))
    for id in ("1", "2", "3"):
        ids.add(id)
    assert ["1" in ids, "2" in ids, "3" in ids] == [False, True, True]


def test_duplicate_ids_of_size_zero_remember_nothing() -> None:
    """Detection is off."""
    ids = DuplicateIds(0, Holdings(Account()))
    ids.add("1")
    assert "1" not in ids


def test_duplicates_are_dropped_silently() -> None:
    """Taken, so that the sender gets its receipt, and not added."""
    broker = broker_of(queue_config())
    head = head_of("a", duplicate_id="7")
    assert [send(broker, head=head), send(broker, head=head), send(broker, count=2, head=head)] == [1, 1, 2]
    assert broker.queues["q"].contents.counters.added == 1
    assert broker.addresses["a"].account.message_count == 1


def test_duplicates_are_kept_apart_by_address() -> None:
    """Each address has its own cache, of its own size."""
    broker = broker_of(queue_config(), queue_config("r", "b"), settings={"b": {"id_cache_size": 1}}, id_cache_size=5)
    for address in ("a", "b"):
        for id in ("1", "2", "1"):
            send(broker, address, head=head_of(address, duplicate_id=id))
    assert broker.queues["q"].contents.counters.added == 2
    assert broker.queues["r"].contents.counters.added == 3


def test_a_refused_message_is_not_remembered() -> None:
    """Sent again when there is room, it arrives."""
    broker = broker_of(queue_config(), settings={"a": {"max_size_messages": 1, "address_full_policy": "FAIL"}})
    send(broker)
    head = head_of("a", duplicate_id="7")
    assert send(broker, head=head) == 0
    broker.queues["q"].purge(PURGED, NOW_MS)
    assert send(broker, head=head) == 1
    assert broker.queues["q"].message_count == 1


# ---- copies ------------------------------------------------------------------------------------


def test_whether_a_message_may_bring_forth_copies_follows_every_change() -> None:
    address = Address("a", AddressSettings())
    divert = Divert("d", "d", ("b",), exclusive=False, selector=None, routing_type="STRIP")
    seen = [address.may_forward]
    changes: list[Callable[[], None]] = [
        lambda: address.add_divert(divert),
        lambda: address.use_diverts([]),
        lambda: address.use_retention(divert),
        lambda: address.use_retention(None),
        lambda: address.use_settings(AddressSettings(send_to_dla_on_no_route=True)),
        lambda: address.use_settings(AddressSettings()),
    ]
    for change in changes:
        change()
        seen.append(address.may_forward)
    assert seen == [False, True, False, True, False, True, False]


# ---- words -------------------------------------------------------------------------------------


def test_the_setting_that_drops_messages_is_named() -> None:
    """On a full disk it is another one."""
    address = Address("a", AddressSettings(address_full_policy="DROP", max_size_messages=0, disk_full_policy="DROP"))
    told = [why_dropped(address)]
    address.memory.disk_full = True
    told.append(why_dropped(address))
    assert told == [
        f"address a is full, and drops messages ({setting} DROP)"
        for setting in ("address-full-policy", "disk-full-policy")
    ]
