"""Checks every queue for settings that exclude each other (:mod:`artemis_py.config.tables.queue_conflicts`), and for
those that have no effect, or a doubtful one: the table here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

from artemis_py.config.checks.cases import Case
from artemis_py.config.draft import Draft
from artemis_py.config.tables.queue_conflicts import CONFLICTS, Conflict


@final
@dataclass(frozen=True, slots=True)
class Doubt:
    """``attributes`` are those of the queue that take part, ``applies`` says whether it applies, ``text`` what is
    doubtful.
    """

    attributes: tuple[str, ...]
    applies: Callable[[Case], bool]
    text: str
    allowed: str | None = None


def _has_policy(case: Case, policy: str) -> bool:
    return case.own.limits_depth and case.own.policy == policy


_TO_DISK: Final = ("overflow_policy", "file_backed_metadata")

DOUBTS: Final = (
    Doubt(
        ("max_delivery_attempts", "max_deliveries", "max_cancels", "lease_period", "leasing", "dead_letter_address"),
        lambda case: case.own.at_most_once,
        "sends messages at most once: nothing is leased and no delivery fails, so it has no dead messages",
    ),
    Doubt(
        ("fairness_model",),
        lambda case: case.own.fairness_model is not None and (case.own.exclusive or case.own.max_live_consumers == 1),
        "has a fairness-model and serves only one consumer: it has no effect",
    ),
    Doubt(
        ("max_backlog", "max_per_subscription_backlog"),
        lambda case: 0 <= case.own.max_backlog < (case.own.max_per_subscription_backlog or 0),
        "has max-per-subscription-backlog above max-backlog: no consumer ever holds as much",
    ),
    Doubt(  # Artemis takes it
        ("dead_letter_address",),
        lambda case: case.own.dead_letter_address == case.address,
        "has its own address for dead-letter-address: dead messages would return to it for ever",
        "another address, or the empty text to discard them",
    ),
    Doubt(
        ("overflow_policy",),
        lambda case: case.own.overflow_policy != "NONE" and not case.own.limits_depth,
        "has overflow-policy without max-depth-messages or max-depth-bytes: it is never full",
    ),
    Doubt(
        ("max_depth_messages", "max_depth_bytes"),
        lambda case: case.own.limits_depth and case.own.policy == "NONE",
        "has a max-depth without overflow-policy: nothing happens at that depth",
        "overflow-policy RING, PRODUCER_FLOW_CONTROL, FLOW_TO_DISK or REJECT",
    ),
    Doubt(
        ("overflow_policy",),
        lambda case: _has_policy(case, "RING") and case.pages,
        "is a ring on an address with address-full-policy PAGE: messages in pages do not count towards the ring",
        "DROP, FAIL or BLOCK",
    ),
    Doubt(
        _TO_DISK,
        lambda case: _has_policy(case, "FLOW_TO_DISK")
        and ((case.own.queue_type or "standard") != "standard" or case.own.priority_expression is not None),
        "flows to disk, but not in arrival order: a message in a page is ordered only once it is in memory",
        "queue-type standard, or a max-depth that memory can hold",
    ),
    Doubt(
        _TO_DISK,
        lambda case: _has_policy(case, "FLOW_TO_DISK") and case.has_neighbours,
        "flows to disk on an address with other queues: meanwhile messages for all of them go to pages",
        "a separate address, fed by a divert",
    ),
    Doubt(
        ("flow_resume_percent",),
        lambda case: case.own.flow_resume_percent != 80 and not _has_policy(case, "PRODUCER_FLOW_CONTROL"),
        "has flow-resume-percent without overflow-policy PRODUCER_FLOW_CONTROL and a max-depth: it has no effect",
    ),
    Doubt(
        ("consumers_before_dispatch", "max_consumers"),
        lambda case: 0 <= case.own.max_consumers < case.own.consumers_before_dispatch
        and case.own.delay_before_dispatch < 0,
        "waits for more consumers (consumers-before-dispatch) than it admits (max-consumers): nothing is ever "
        "delivered",
        "delay-before-dispatch, or more max-consumers",
    ),
    Doubt(
        ("max_live_consumers",),
        lambda case: 0 <= case.own.max_consumers < case.own.max_live_consumers,
        "has max-live-consumers above max-consumers: it has no effect",
    ),
    Doubt(
        ("min_message_ttl", "max_message_ttl"),
        lambda case: case.own.min_message_ttl > case.own.max_message_ttl > 0,
        "has a min-message-ttl above max-message-ttl, which is applied last and wins",
    ),
    Doubt(
        ("expiry_policy",),
        lambda case: case.own.expiry_policy == "ROUTE_TO_ALTERNATE"
        and not (case.settings.expiry_address or case.own.dead_letter_address),
        "has expiry-policy ROUTE_TO_ALTERNATE and neither expiry-address nor dead-letter-address: expired messages "
        "are discarded",
    ),
    Doubt(
        ("max_delivery_attempts", "dead_letter_address"),
        lambda case: case.own.non_destructive,
        "is non-destructive: no delivery is ever the last, so it has no dead messages",
    ),
    Doubt(
        ("alert_repeat_gap",),
        lambda case: not case.own.has_alerts,
        "has alert-repeat-gap without any alert-threshold: it has no effect",
    ),
)  # fmt: skip


def check_queue_combinations(draft: Draft, cases: Sequence[Case]) -> None:
    """Refuse what a queue may not have together, and warn of what is doubtful where one of its attributes is
    written.
    """
    for conflict in CONFLICTS:
        _refuse(draft, conflict, [case for case in cases if conflict.applies(case.own)])
    for case in cases:
        _warn(draft, case)


def _refuse(draft: Draft, conflict: Conflict, cases: Sequence[Case]) -> None:
    """Tell it of the queues and address-settings that have one of the attributes. If none has, it follows from several
    address-settings together.
    """
    guilty = [case for case in cases if not case.written.keys().isdisjoint(conflict.attributes)]
    for case in guilty or cases:
        first = next((each for each in conflict.attributes if each in case.written), conflict.attributes[0])
        draft.problems.error(case.place(first), f"{case.subject} {conflict.told(case.own)}", allowed=conflict.allowed)


def _warn(draft: Draft, case: Case) -> None:
    for doubt in DOUBTS:
        taking_part = [attribute for attribute in doubt.attributes if attribute in case.written]
        if not taking_part or not doubt.applies(case):
            continue
        origin = case.place(taking_part[0])
        if not draft.problems.has_error_at(origin):  # what was wrong there was left out, and may be what is missed
            draft.problems.warning("doubtful-value", origin, f"{case.subject} {doubt.text}", allowed=doubt.allowed)
