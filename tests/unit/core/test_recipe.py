"""From broker.xml's words to strategies: the queue's own attribute, else the address-setting, else the default."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from artemis_py.config.settings import AddressSettings, QueueConfig
from artemis_py.config.tables.queue_settings import queue_settings
from artemis_py.core.order.priority import PriorityOrder
from artemis_py.core.queue.distribution import RoundRobin
from artemis_py.core.queue.overflow import Ring, Unbounded
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.recipe import describe
from artemis_py.errors import BrokerError, LimitError, NotFoundError, SelectorError
from artemis_py.message import Account, Message
from artemis_py.record_log import RecoveredState, Survivor
from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.core import NOW_MS, broker_of, consumer_on, head_of, queue_config, send, with_queue
from tests.kit.crash.opening import SimStore
from tests.kit.disk import SimDisk


def made(attributes: dict[str, Any] | None = None, settings: dict[str, Any] | None = None) -> Queue:
    """A declared queue with these attributes under these settings."""
    return broker_of(queue_config(**attributes or {}), settings={"a": settings or {}}).queues["q"]


def seen(queue: Queue) -> dict[str, Any]:
    """What the queue got."""
    overflow = queue.flow.overflow
    return {
        "exclusive": isinstance(queue.distribution, RoundRobin) and queue.distribution._live_max == 1,
        "ring_size": overflow.size if isinstance(overflow, Ring) else -1,
        "non_destructive": queue.non_destructive,
        "max_consumers": queue.consumer_registry.consumers_max,
        "consumers_before_dispatch": queue.gate.consumers_min,
        "delay_before_dispatch": queue.gate.delay_ms,
        "purge_on_no_consumers": queue.purge_on_no_consumers,
        "enabled": queue.enabled,
    }


PLAIN = {
    "exclusive": False,
    "ring_size": -1,
    "non_destructive": False,
    "max_consumers": -1,
    "consumers_before_dispatch": 0,
    "delay_before_dispatch": -1,
    "purge_on_no_consumers": False,
    "enabled": True,
}
OTHER = {
    "exclusive": True,
    "ring_size": 5,
    "non_destructive": True,
    "max_consumers": 3,
    "consumers_before_dispatch": 2,
    "delay_before_dispatch": 700,
    "purge_on_no_consumers": True,
    "enabled": False,
}
DEFAULTS = {
    "exclusive": "default_exclusive_queue",
    "ring_size": "default_ring_size",
    "non_destructive": "default_non_destructive",
    "max_consumers": "default_max_consumers",
    "consumers_before_dispatch": "default_consumers_before_dispatch",
    "delay_before_dispatch": "default_delay_before_dispatch",
}


def test_a_plain_queue() -> None:
    """Artemis' defaults."""
    queue = made()
    assert seen(queue) == PLAIN
    assert isinstance(queue.distribution, RoundRobin)
    assert isinstance(queue.flow.overflow, Unbounded)
    assert queue.state.redelivery.attempts_max == 10


@pytest.mark.parametrize("attribute", sorted(OTHER))
def test_attribute_of_the_queue(attribute: str) -> None:
    """Each attribute changes what it names, and nothing else."""
    assert seen(made({attribute: OTHER[attribute]})) == {**PLAIN, attribute: OTHER[attribute]}


@pytest.mark.parametrize("attribute", sorted(DEFAULTS))
def test_default_of_the_address(attribute: str) -> None:
    """It counts where the queue has no attribute (also default-ring-size, also for declared queues) ..."""
    settings = {DEFAULTS[attribute]: OTHER[attribute]}
    assert seen(made(settings=settings)) == {**PLAIN, attribute: OTHER[attribute]}
    assert seen(made({attribute: PLAIN[attribute]}, settings)) == PLAIN, "the queue's own attribute beats it"


def test_purge_default_is_for_created_queues_only() -> None:
    """A declared queue that does not say so keeps its messages, as explain shows it."""
    settings = {"default_purge_on_no_consumers": True}
    assert not made(settings=settings).purge_on_no_consumers
    broker = broker_of(settings={"#": settings})
    assert broker.resolver.obtain_anycast_queue("auto").purge_on_no_consumers


def test_redelivery_of_the_address() -> None:
    """The address-setting's words."""
    queue = made(
        settings={
            "redelivery_delay": 100,
            "redelivery_delay_multiplier": 1.5,
            "redelivery_collision_avoidance_factor": 0.2,
            "max_delivery_attempts": 4,
        }
    )
    redelivery = queue.state.redelivery
    assert (redelivery.delay_ms, redelivery.multiplier, redelivery.collision_factor) == (100, 1.5, 0.2)
    assert (redelivery.attempts_max, redelivery.delay_ms_max) == (4, 1000)


def test_filter() -> None:
    """Compiled once; a text that does not parse is an error."""
    queue = made({"filter": "color = 'red'"})
    assert queue.selector is not None
    assert queue.selector.text == "color = 'red'"
    with pytest.raises(SelectorError):
        made({"filter": "color ="})


@pytest.mark.parametrize(("size", "kind"), [(-1, Unbounded), (0, Ring), (7, Ring)])
def test_overflow_for(size: int, kind: type) -> None:
    """-1 is no ring, 0 a ring that keeps nothing."""
    assert isinstance(made({"ring_size": size}).flow.overflow, kind)


def test_a_queue_that_the_file_forgot_is_what_it_was() -> None:
    """Its attributes are in the log: first those of its creation, then those that the file was changed to."""
    log = SimStore(SimDisk(Random(1)), JournalSettings()).records
    broker_of(queue_config(ring_size=5, max_consumers=3), log=log)
    broker_of(queue_config(ring_size=7), log=log, kept=RecoveredState(queues=[*log.of("queue_changed")[-1]]))
    (fields,) = log.of("queue_changed")[-1]
    assert fields["attributes"] == {"ring_size": 7}
    broker = broker_of(addresses=["a"], log=log, kept=RecoveredState(queues=[fields]))
    assert seen(broker.queues["q"]) == {**PLAIN, "ring_size": 7}


def test_recovered_messages_of_no_queue_are_told() -> None:
    """Of those of a queue that had its name taken, say: they are on no queue, and not silently so."""
    message = Message(head_of("a", persistent=True), b"x", 1, NOW_MS, 0, Account(), 0)
    broker = broker_of(queue_config(), kept=RecoveredState(messages={7: [Survivor(message)]}))
    (told,) = broker.lost
    assert told.message == "queue number 7: 1 message in the journal, on no queue: this one is not there any more"


def described(config: QueueConfig, settings: AddressSettings) -> list[tuple[str, str, str]]:
    """What explain shows of a declared queue."""
    return describe(queue_settings(config, settings), settings, "a")


def test_describe_says_what_is_built() -> None:
    """explain shows the same composition."""
    config = queue_config(exclusive=True, ring_size=4, non_destructive=True, consumers_before_dispatch=2)
    shown = {axis: choice for axis, choice, _ in described(config, AddressSettings())}
    assert shown == {
        "order": "priority",
        "distribution": "exclusive",
        "groups": "none",
        "acquisition": "non-destructive",
        "overflow": "ring of 4",
        "when full": "page",
        "dead letters": "discarded",
        "gates": "2 consumers before dispatch",
    }
    plain = {axis: choice for axis, choice, _ in described(queue_config(), AddressSettings())}
    assert plain == {
        "order": "priority",
        "distribution": "round-robin",
        "groups": "sticky, by JMSXGroupID",
        "acquisition": "hold until acknowledged",
        "overflow": "unbounded",
        "when full": "page",
        "dead letters": "discarded",
        "gates": "none",
    }


def test_describe_says_what_else_a_queue_does() -> None:
    config = queue_config(
        overflow_policy="PRODUCER_FLOW_CONTROL", max_depth_messages=10, max_depth_bytes=1000, flow_resume_percent=25.0,
        min_message_ttl=5, max_message_ttl=6, expiration=4, hold_on_publish=True, expiry_policy="DELETE",
        dead_letter_address="dead", max_delivery_attempts=3, alert_threshold_depth_messages=5,
    )  # fmt: skip
    rows = described(config, AddressSettings())
    assert ("overflow", "producer flow control beyond 10 messages and 1000 bytes") in [row[:2] for row in rows]
    assert "senders wait until the depth is 3 messages and 250 bytes" in [row[2] for row in rows]
    assert [row[:2] for row in rows if row[0] in ("time to live", "hold", "expired", "dead letters", "alerts")] == [
        ("time to live", "4 ms"),
        ("time to live", "at least 5 ms"),
        ("time to live", "at most 6 ms"),
        ("hold", "until x-qpid-not-valid-before"),
        ("expired", "DELETE"),
        ("dead letters", "dead"),
        ("alerts", "on"),
    ]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("NONE", "unbounded"),
        ("RING", "ring of 10 messages"),
        ("REJECT", "reject beyond 10 messages"),
        ("FLOW_TO_DISK", "flow to disk beyond 10 messages"),
    ],
)
def test_describe_says_what_a_full_queue_does(policy: str, words: str) -> None:
    rows = described(queue_config(overflow_policy=policy, max_depth_messages=10), AddressSettings())
    assert next(choice for axis, choice, _ in rows if axis == "overflow") == words


@pytest.mark.parametrize(
    ("attributes", "axis", "choice"),
    [
        ({"group_type": "NONE"}, "groups", "none"),
        ({"group_buckets": 0}, "groups", "none"),
        ({"group_key": "cart", "group_buckets": 8}, "groups", "sticky, by cart, in 8 buckets"),
        ({"group_type": "SHARED_GROUPS"}, "groups", "shared, by JMSXGroupID"),
        ({"max_live_consumers": 2}, "distribution", "2 live consumers"),
        ({"exclusivity_policy": "CONTAINER"}, "admits", "container"),
        ({"consumer_selector": "a = 1"}, "selector", "a = 1"),
        ({"consumer_replay_period": 60}, "replay", "60 s"),
        ({"barrier_expression": "a = 1"}, "barriers", "a = 1"),
        ({"barrier_expression": "a = 1"}, "order", "fifo"),
        ({"target_queue_depth": 5}, "active", "the first 5 messages"),
    ],
)
def test_describe_says_who_gets_what(attributes: dict[str, Any], axis: str, choice: str) -> None:
    shown = {axis: choice for axis, choice, _ in described(queue_config(**attributes), AddressSettings())}
    assert shown[axis] == choice


ANYBODY = "any consumer may acknowledge"
HOLDER = "only its holder may acknowledge"
NO_PERIOD = ("lease", "until the consumer leaves")
ONE = ("backlog", "one message, for each consumer")


@pytest.mark.parametrize(
    ("attributes", "rows", "reasons"),
    [
        ({}, [], []),
        ({"delivery_semantics": "at-least-once"}, [ONE, NO_PERIOD], ["no max-per-subscription-backlog", ANYBODY]),
        (
            {"delivery_semantics": "at-most-once"},
            [ONE, ("acquisition", "at most once"), ("dead letters", "none"), ("distribution", "round-robin")],
            ["an acknowledgement only frees the backlog", "so no delivery fails"],
        ),
        ({"lease_period": 700}, [ONE, ("lease", "700 ms")], ["then the message goes back", ANYBODY]),
        ({"lease_period": 700, "leasing": "strict"}, [("lease", "700 ms")], [HOLDER]),
        ({"leasing": "strict"}, [ONE, NO_PERIOD], [f"no lease-period; {HOLDER}"]),
        ({"leasing": "sublet"}, [ONE, NO_PERIOD], [f"no lease-period; {ANYBODY}"]),
        (
            {"max_backlog": 9},
            [ONE, ("backlog", "9 messages, for all"), NO_PERIOD, ("distribution", "proportional")],
            ["at the limit nothing more is delivered", ANYBODY, "the default with an attribute of AMPS"],
        ),
        (
            {"max_per_subscription_backlog": 5},
            [("backlog", "up to 5 messages, for each consumer"), NO_PERIOD],
            ["one message for consumers without max-backlog", ANYBODY],
        ),
        ({"max_per_subscription_backlog": 1}, [ONE, NO_PERIOD], ["that is max-per-subscription-backlog"]),
        (
            {"max_per_subscription_backlog": -1},
            [("backlog", "as many messages as it asks for, for each consumer"), NO_PERIOD],
            [],
        ),
        ({"max_deliveries": 4}, [ONE, NO_PERIOD, ("dead letters", "after 4 deliveries")], [ANYBODY]),
        ({"max_cancels": 1}, [ONE, NO_PERIOD, ("dead letters", "after 1 cancel")], [ANYBODY]),
        ({"fairness_model": "fast"}, [ONE, NO_PERIOD, ("distribution", "fast")], ["the first consumer with room"]),
        (
            {"file_backed_metadata": True},
            [ONE, NO_PERIOD, ("overflow", "flow to disk beyond 1000 messages")],
            ["go to pages of the address; that is file-backed-metadata"],
        ),
    ],
)
def test_describe_says_each_attribute_of_amps(
    attributes: dict[str, Any], rows: list[tuple[str, str]], reasons: list[str]
) -> None:
    """Also what follows from any of them: one message at a time, and leases that do not end."""
    found = described(queue_config(**attributes), AddressSettings())
    assert set(rows) <= {(axis, choice) for axis, choice, _ in found}
    assert all(any(reason in why for _, _, why in found) for reason in reasons)
    axes = {axis for axis, _, _ in found}
    assert ("backlog" in axes) == bool(attributes)
    assert ("lease" in axes) == (bool(attributes) and attributes.get("delivery_semantics") != "at-most-once")
    acquisition = next(choice for axis, choice, _ in found if axis == "acquisition")
    assert acquisition.startswith("lease") == ("lease" in axes)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (AddressSettings(), "when all addresses together reach global-max-size"),
        (AddressSettings(max_size_bytes=1000), "when the address has 1000 bytes in memory"),
        (
            AddressSettings(max_size_bytes=1000, max_size_messages=5),
            "when the address has 1000 bytes or 5 messages in memory",
        ),
    ],
)
def test_describe_says_when_an_address_is_full(settings: AddressSettings, why: str) -> None:
    assert [said for axis, _, said in described(queue_config(), settings) if axis == "when full"] == [why]


# ---- what can change, and limits -----------------------------------------------------------------


def test_set_ring_size() -> None:
    """While running: bigger, smaller, none, and what is refused."""
    broker = broker_of(queue_config(ring_size=2))
    send(broker, count=3)
    broker.queue_operations.set_ring_size("q", 4)
    send(broker, count=3)
    assert broker.queues["q"].message_count == 4
    broker.queue_operations.set_ring_size("q", -1)
    send(broker, count=3)
    assert broker.queues["q"].message_count == 7
    broker.queue_operations.set_ring_size("q", 1)
    assert broker.queues["q"].message_count == 7
    with pytest.raises(BrokerError):
        broker.queue_operations.set_ring_size("q", -2)
    with pytest.raises(NotFoundError):
        broker.queue_operations.set_ring_size("other", 1)


def test_max_consumers() -> None:
    """One more is refused, and leaves no trace; when one goes there is room again."""
    broker, queue = with_queue(max_consumers=2)
    first = consumer_on(broker, queue)
    consumer_on(broker, queue)
    with pytest.raises(LimitError):
        consumer_on(broker, queue, selector="color = 'red'")
    assert queue.consumer_count == 2
    assert isinstance(queue.contents.order, PriorityOrder)
    assert queue.contents.order.cursors == []
    broker.detach(queue, first, failed=False, now_ms=NOW_MS)
    consumer_on(broker, queue)
    assert queue.consumer_count == 2
    with pytest.raises(LimitError):
        consumer_on(broker_of(queue_config(max_consumers=0)), made({"max_consumers": 0}))
