"""Settings of a queue that exclude each other or have no effect: one table, checked for every queue.

All other settings work together; ``tests/queues/test_combinations.py`` tries every pair. Types that exclude each other
are in :mod:`artemis_py.config.checks.queue_types`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from artemis_py.config.checks.readers import Readers
from artemis_py.config.draft import Draft
from artemis_py.config.merging import SettingsEntry, SettingsRepository
from artemis_py.config.problems import ERROR, WARNING
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.entities import QUEUE_DEFAULTS, AddressConfig, Origin, QueueConfig
from artemis_py.config.tables.queue_settings import QueueSettings, queue_settings
from artemis_py.config.tables.queue_types import STANDARD, TYPE_ATTRIBUTES


class Case(NamedTuple):
    """A queue with what its checks need to know about its surroundings."""

    own: QueueSettings
    settings: AddressSettings
    address: str
    """The address, or the match of an address-setting."""
    pages: bool
    """Does the file ask for paging on the address, or on one under a view?"""
    has_neighbours: bool
    """Do other queues get the same messages?"""


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """A row. ``attributes`` are the queue attributes involved, ``applies`` says when the rule applies, ``text`` what is
    wrong.
    """

    severity: str
    attributes: tuple[str, ...]
    applies: Callable[[Case], bool]
    text: str
    allowed: str | None = None


def _gives_up_messages(case: Case) -> bool:
    """Is it a ring?"""
    return case.own.ring_size >= 0 or _has_policy(case, "RING")


def _has_an_order(case: Case) -> bool:
    """Does anything but the arrival decide about the order of messages, or about which of them stay?"""
    own = case.own
    return own.queue_type not in (None, STANDARD) or own.last_value or own.priority_expression is not None


def _has_policy(case: Case, *policies: str) -> bool:
    return case.own.limits_depth and case.own.policy in policies


_IN_ORDER: Final = ("barrier_expression", "target_queue_depth")
_TO_DISK: Final = ("overflow_policy", "file_backed_metadata")

RULES: Final = (
    Rule(
        ERROR,
        _IN_ORDER,
        lambda case: bool(case.own.barrier_expression) and case.own.target_queue_depth > 0,
        "has barrier-expression and target-queue-depth, which both define when a message becomes active",
        "one of them",
    ),
    Rule(
        ERROR,
        (*_IN_ORDER, *TYPE_ATTRIBUTES),
        lambda case: case.own.activates_in_order and _has_an_order(case),
        "has barrier-expression or target-queue-depth, with which messages become active in order of arrival, and "
        "another order",
        "queue-type standard, or no order",
    ),
    Rule(
        ERROR,
        (*_IN_ORDER, "ring_size", "overflow_policy"),
        lambda case: case.own.activates_in_order and _gives_up_messages(case),
        "has barrier-expression or target-queue-depth and is a ring, which gives up the oldest messages: a barrier "
        "among them would be lost, or all that is active",
        "overflow-policy REJECT, PRODUCER_FLOW_CONTROL or FLOW_TO_DISK",
    ),
    Rule(
        ERROR,
        ("barrier_expression", "hold_on_publish"),
        lambda case: bool(case.own.barrier_expression) and case.own.hold_on_publish,
        "has barrier-expression and hold-on-publish: others overtake a message that is held, and nothing may overtake "
        "a barrier",
        "one of them; AMQ_SCHEDULED_TIME works with barriers",
    ),
    Rule(
        ERROR,
        ("overflow_policy", "ring_size"),
        lambda case: case.own.overflow_policy != "NONE" and case.own.ring_size >= 0,
        "has overflow-policy and ring-size, which both define what a full queue does",
        "one of them; overflow-policy RING counts what is in delivery, ring-size does not",
    ),
    Rule(
        ERROR,
        ("file_backed_metadata", "overflow_policy", "ring_size"),
        lambda case: case.own.file_backed_metadata and (case.own.policy != "FLOW_TO_DISK" or case.own.ring_size >= 0),
        "has file-backed-metadata, with which messages beyond a depth go to pages, and something else that it does "
        "when it is full",
        "overflow-policy FLOW_TO_DISK or none, and no ring-size",
    ),
    Rule(
        ERROR,
        (*_TO_DISK, "non_destructive", "last_value", "last_value_key", "queue_type"),
        lambda case: _has_policy(case, "FLOW_TO_DISK") and case.own.non_destructive and case.own.last_value,
        "is a non-destructive last-value queue that flows to disk: values in pages would never be replaced, because "
        "no consumer removes them",
        "overflow-policy RING, REJECT or PRODUCER_FLOW_CONTROL",
    ),
    Rule(
        ERROR,
        (
            "non_destructive", "delivery_semantics", "fairness_model", "max_backlog", "max_per_subscription_backlog",
            "max_deliveries", "max_cancels", "lease_period", "leasing", *_IN_ORDER,
        ),
        lambda case: case.own.non_destructive and case.own.limits_backlogs,
        "is non-destructive and has an attribute of AMPS: every consumer gets every message, so there is nothing to "
        "share out, nothing comes back, and nothing is ever done",
        "non-destructive, or delivery-semantics, fairness-model, max-backlog, max-per-subscription-backlog, "
        "lease-period, leasing, max-deliveries, max-cancels, barrier-expression and target-queue-depth",
    ),
    Rule(
        ERROR,
        ("fairness_model", "delivery_semantics"),
        lambda case: case.own.at_most_once and case.own.fairness != "round-robin",
        "sends messages at most once and has another fairness-model than round-robin: AMPS knows no other there",
        "round-robin",
    ),
    Rule(
        WARNING,
        ("max_delivery_attempts", "max_deliveries", "max_cancels", "lease_period", "leasing", "dead_letter_address"),
        lambda case: case.own.at_most_once,
        "sends messages at most once: nothing is leased and no delivery fails, so it has no dead messages",
    ),
    Rule(
        WARNING,
        ("fairness_model",),
        lambda case: case.own.fairness_model is not None and (case.own.exclusive or case.own.max_live_consumers == 1),
        "has a fairness-model and serves only one consumer: it has no effect",
    ),
    Rule(
        WARNING,
        ("max_backlog", "max_per_subscription_backlog"),
        lambda case: 0 <= case.own.max_backlog < (case.own.max_per_subscription_backlog or 0),
        "has max-per-subscription-backlog above max-backlog: no consumer ever holds as much",
    ),
    Rule(
        WARNING,  # Artemis takes it
        ("dead_letter_address",),
        lambda case: case.own.dead_letter_address == case.address,
        "has its own address for dead-letter-address: dead messages would return to it for ever",
        "another address, or the empty text to discard them",
    ),
    Rule(
        WARNING,
        ("overflow_policy",),
        lambda case: case.own.overflow_policy != "NONE" and not case.own.limits_depth,
        "has overflow-policy without max-depth-messages or max-depth-bytes: it is never full",
    ),
    Rule(
        WARNING,
        ("max_depth_messages", "max_depth_bytes"),
        lambda case: case.own.limits_depth and case.own.policy == "NONE",
        "has a max-depth without overflow-policy: nothing happens at that depth",
        "overflow-policy RING, PRODUCER_FLOW_CONTROL, FLOW_TO_DISK or REJECT",
    ),
    Rule(
        WARNING,
        ("overflow_policy",),
        lambda case: _has_policy(case, "RING") and case.pages,
        "is a ring on an address with address-full-policy PAGE: messages in pages do not count towards the ring",
        "DROP, FAIL or BLOCK",
    ),
    Rule(
        WARNING,
        _TO_DISK,
        lambda case: _has_policy(case, "FLOW_TO_DISK")
        and ((case.own.queue_type or "standard") != "standard" or case.own.priority_expression is not None),
        "flows to disk, but not in arrival order: a message in a page is ordered only once it is in memory",
        "queue-type standard, or a max-depth that memory can hold",
    ),
    Rule(
        WARNING,
        _TO_DISK,
        lambda case: _has_policy(case, "FLOW_TO_DISK") and case.has_neighbours,
        "flows to disk on an address with other queues: meanwhile messages for all of them go to pages",
        "a separate address, fed by a divert",
    ),
    Rule(
        WARNING,
        ("flow_resume_percent",),
        lambda case: case.own.flow_resume_percent != 80 and not _has_policy(case, "PRODUCER_FLOW_CONTROL"),
        "has flow-resume-percent without overflow-policy PRODUCER_FLOW_CONTROL and a max-depth: it has no effect",
    ),
    Rule(
        WARNING,
        ("consumers_before_dispatch", "max_consumers"),
        lambda case: 0 <= case.own.max_consumers < case.own.consumers_before_dispatch
        and case.own.delay_before_dispatch < 0,
        "waits for more consumers (consumers-before-dispatch) than it admits (max-consumers): nothing is ever "
        "delivered",
        "delay-before-dispatch, or more max-consumers",
    ),
    Rule(
        WARNING,
        ("max_live_consumers",),
        lambda case: 0 <= case.own.max_consumers < case.own.max_live_consumers,
        "has max-live-consumers above max-consumers: it has no effect",
    ),
    Rule(
        WARNING,
        ("min_message_ttl", "max_message_ttl"),
        lambda case: case.own.min_message_ttl > case.own.max_message_ttl > 0,
        "has a min-message-ttl above max-message-ttl, which is applied last and wins",
    ),
    Rule(
        WARNING,
        ("expiry_policy",),
        lambda case: case.own.expiry_policy == "ROUTE_TO_ALTERNATE"
        and not (case.settings.expiry_address or case.own.dead_letter_address),
        "has expiry-policy ROUTE_TO_ALTERNATE and neither expiry-address nor dead-letter-address: expired messages "
        "are discarded",
    ),
    Rule(
        WARNING,
        ("max_delivery_attempts", "dead_letter_address"),
        lambda case: case.own.non_destructive,
        "is non-destructive: no delivery is ever the last, so it has no dead messages",
    ),
    Rule(
        WARNING,
        ("alert_repeat_gap",),
        lambda case: not any(
            (
                case.own.alert_threshold_message_age, case.own.alert_threshold_message_size,
                case.own.alert_threshold_depth_messages, case.own.alert_threshold_depth_bytes,
            )
        ),
        "has alert-repeat-gap without any alert-threshold: it has no effect",
    ),
)  # fmt: skip


def check_queue_combinations(
    draft: Draft, addresses: Sequence[AddressConfig], settings: SettingsRepository, readers: Readers
) -> None:
    """Refuse or warn of bad combinations, in each queue and in each address-setting for the queues it creates. A rule
    applies only where one of its attributes is written.
    """
    check_combinations_of_queues(draft, addresses, settings, readers)
    for entry in settings.entries:
        _check_entry(draft, entry, settings, readers)


def check_combinations_of_queues(
    draft: Draft, addresses: Sequence[AddressConfig], settings: SettingsRepository, readers: Readers
) -> None:
    """The same in queues alone."""
    for address in addresses:
        for queue in address.queues:
            merged = settings.settings_for(address.name)
            own = queue_settings(queue, merged)
            case = Case(own, merged, address.name, readers.pages_under(queue), readers.has_neighbours(queue))
            written = [attribute for attribute, _ in queue.origins]
            _check(draft, f"queue {queue.name!r}", case, written, queue.origin_of)


def _check_entry(draft: Draft, entry: SettingsEntry, settings: SettingsRepository, readers: Readers) -> None:
    merged = settings.settings_for(entry.match)
    own = queue_settings(QueueConfig(name="", address=entry.match, routing_type="ANYCAST"), merged, declared=False)
    written = [attribute for attribute, other in QUEUE_DEFAULTS.items() if other in entry.values]
    case = Case(own, merged, entry.match, readers.pages_at(entry.match), False)

    def place(attribute: str) -> Origin:
        return entry.origins.get(QUEUE_DEFAULTS[attribute], entry.origin)

    _check(draft, f"each queue of {entry.match!r}", case, written, place)


def _check(draft: Draft, subject: str, case: Case, written: Sequence[str], place: Callable[[str], Origin]) -> None:
    for rule in RULES:
        taking_part = [attribute for attribute in rule.attributes if attribute in written]
        if not taking_part or not rule.applies(case):
            continue
        origin = place(taking_part[0])
        if rule.severity == WARNING and draft.problems.has_error_at(origin):
            continue  # what was wrong there was left out, and may be what is missed
        draft.problems.add(
            rule.severity,
            "" if rule.severity == ERROR else "doubtful-value",
            origin,
            f"{subject} {rule.text}",
            allowed=rule.allowed,
        )
