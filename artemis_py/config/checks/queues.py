"""Checks of queues, and of what each address-setting makes of the queues that it creates: settings that exclude each
other (:mod:`artemis_py.config.tables.queue_conflicts`), types that contradict themselves, and settings that have no
effect, or a doubtful one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

from artemis_py.config.checks.addresses import Readers
from artemis_py.config.draft import Draft, Values
from artemis_py.config.settings import SettingsEntry, SettingsRepository
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.declarations import QUEUE_DEFAULTS, AddressConfig, Origin, QueueConfig
from artemis_py.config.tables.queue_conflicts import CONFLICTS, Conflict
from artemis_py.config.tables.queue_settings import (
    RECOVERY_POINTS,
    QueueSettings,
    queue_settings,
    recovery_point_of,
)
from artemis_py.config.tables.queue_types import (
    SORTED,
    TYPE_ATTRIBUTES,
    contradiction,
    said_by,
    types_meant,
    what_is_said,
)
from artemis_py.errors import SelectorError


class Case(NamedTuple):
    """A queue with what its checks need to know about its surroundings."""

    subject: str
    address: str
    """The address, or the match of an address-setting."""
    is_default: bool
    """Is it an address-setting?"""
    written: Mapping[str, Any]
    """What is written there, by the attribute of the queue."""
    place: Callable[[str], Origin]
    """Where an attribute is written."""
    own: QueueSettings
    settings: AddressSettings
    pages: bool
    """Does the file ask for paging on the address, or on one under a view?"""
    has_neighbours: bool
    """Do other queues get the same messages?"""

    def name(self, attribute: str) -> str:
        """The attribute as it is written there."""
        return (QUEUE_DEFAULTS[attribute] if self.is_default else attribute).replace("_", "-")


def cases(
    addresses: Sequence[AddressConfig],
    entries: Sequence[SettingsEntry],
    settings: SettingsRepository,
    readers: Readers,
) -> Iterator[Case]:
    """The queues of these addresses, and these address-settings."""
    for address in addresses:
        for queue in address.queues:
            merged = settings.settings_for(queue.address)
            yield Case(
                subject=f"queue {queue.name!r}",
                address=queue.address,
                is_default=False,
                written={attribute: getattr(queue, attribute) for attribute, _ in queue.origins},
                place=queue.origin_of,
                own=queue_settings(queue, merged),
                settings=merged,
                pages=readers.pages_under(queue),
                has_neighbours=readers.has_neighbours(queue),
            )
    for entry in entries:
        merged = settings.settings_for(entry.match)
        nobody = QueueConfig(name="", address=entry.match, routing_type="ANYCAST")
        yield Case(
            subject=f"each queue of {entry.match!r}",
            address=entry.match,
            is_default=True,
            written={name: entry.values[other] for name, other in QUEUE_DEFAULTS.items() if other in entry.values},
            place=lambda attribute, entry=entry: entry.origins.get(QUEUE_DEFAULTS[attribute], entry.origin),  # type: ignore[misc]
            own=queue_settings(nobody, merged, declared=False),
            settings=merged,
            pages=readers.pages_at(entry.match),
            has_neighbours=False,
        )


def check_queues(draft: Draft, cases: Sequence[Case]) -> None:
    """Refuse what makes no sense, and warn of what has no effect, or a doubtful one."""
    for case in cases:
        _check_first_key(draft, case)
        _check_type(draft, case)
    for conflict in CONFLICTS:
        _refuse(draft, conflict, [case for case in cases if conflict.concerns(case.own, pages=case.pages)])
    for case in cases:
        _doubt(draft, case)


# ---- what a queue may not have together ----------------------------------------------------------


def _refuse(draft: Draft, conflict: Conflict, cases: Sequence[Case]) -> None:
    """Tell it of the queues and address-settings that have one of the attributes. If none has, it follows from several
    address-settings together.
    """
    if conflict.queues_only:
        cases = [case for case in cases if not case.is_default]
    guilty = [case for case in cases if not case.written.keys().isdisjoint(conflict.written or conflict.attributes)]
    for case in guilty or (() if conflict.written else cases):
        first = next((each for each in conflict.attributes if each in case.written), conflict.attributes[0])
        draft.problems.error(case.place(first), f"{case.subject} {conflict.told(case.own)}", allowed=conflict.allowed)


# ---- what is doubtful ----------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Doubt:
    """``attributes`` are those of the queue that take part, ``applies`` says whether it applies, ``text`` what is
    doubtful, in which ``own`` stands for the queue's settings.
    """

    attributes: tuple[str, ...]
    applies: Callable[[Case], bool]
    text: str
    allowed: str | None = None
    code: str = "doubtful-value"


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
        tuple(TYPE_ATTRIBUTES),
        lambda case: case.own.has_an_order and case.pages,
        "has an order on an address with address-full-policy PAGE: a message in a page is ordered only once it is in "
        "memory, and it arrives there in arrival order",
        "DROP, FAIL or BLOCK keep all messages in memory",
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
    Doubt(
        ("group_rebalance", "group_rebalance_pause_dispatch"),
        lambda case: case.own.group_rebalance and bool(case.own.why_no_groups),
        "has group-rebalance, but {own.why_no_groups}: it has no effect",
        code="no-effect",
    ),
    Doubt(
        ("group_buckets",),
        lambda case: case.own.group_buckets > 0 and bool(case.own.why_no_groups),
        "has group-buckets, but {own.why_no_groups}: it has no effect",
        code="no-effect",
    ),
    Doubt(
        ("group_first_key",),
        lambda case: bool(case.own.group_first_key) and bool(case.own.why_no_groups),
        "has group-first-key, but {own.why_no_groups}: it has no effect",
        code="no-effect",
    ),
    Doubt(
        ("group_rebalance_pause_dispatch",),
        lambda case: case.own.group_rebalance_pause_dispatch and not case.own.group_rebalance,
        "has group-rebalance-pause-dispatch without group-rebalance: it has no effect",
        code="no-effect",
    ),
)  # fmt: skip


def _doubt(draft: Draft, case: Case) -> None:
    for doubt in DOUBTS:
        taking_part = [attribute for attribute in doubt.attributes if attribute in case.written]
        if not taking_part or not doubt.applies(case):
            continue
        origin = case.place(taking_part[0])
        if not draft.problems.has_error_at(origin):  # what was wrong there was left out, and may be what is missed
            text = f"{case.subject} {doubt.text.format(own=case.own)}"
            draft.problems.warning(doubt.code, origin, text, allowed=doubt.allowed)


# ---- types ---------------------------------------------------------------------------------------


def _check_type(draft: Draft, case: Case) -> None:
    """Refuse queues and address-settings that ask for two types, or for an incomplete one."""
    own = what_is_said(case.written)
    if not own:
        return
    subject = f"address-setting {case.address!r}" if case.is_default else case.subject
    pair = contradiction(own)
    if pair is not None:
        first, second = map(case.name, pair)
        draft.problems.error(
            case.place(pair[1]),
            f"{subject} has {first} and {second}, which ask for different queue types",
            allowed="one type: standard, priority (priority-levels), sorted (sort-key), priority-expression or "
            "last-value (last-value-key)",
        )
        return
    place = case.place(next(iter(own)))
    said = said_by(case.settings, default=True)
    meant = types_meant(said)
    if case.is_default and "queue_type" not in said and len(meant) > 1:
        draft.problems.error(
            place,
            f"{subject} and others that match the same addresses ask for different queue types: "
            f"{' and '.join(map(case.name, meant.values()))}",
            allowed="default-queue-type in the more specific one, which wins",
        )
        return
    if case.own.queue_type == SORTED and case.own.sort_key is None:
        draft.problems.error(
            place, f"{case.subject} is sorted but has no sort key", allowed="sort-key with the name of a header"
        )


# ---- groups --------------------------------------------------------------------------------------

_OF_MESSAGES: Final = frozenset(
    {
        "ack", "content-length", "destination", "expires", "message-id", "persistent", "priority", "redelivered",
        "subscription", "timestamp",
    }
)  # fmt: skip
"""Headers that the broker itself sets in every MESSAGE."""


def _check_first_key(draft: Draft, case: Case) -> None:
    """Refuse a ``group-first-key`` that says nothing, because every message has it."""
    name = "group_first_key"
    if name in case.written and case.own.group_first_key in _OF_MESSAGES:
        draft.problems.error(
            case.place(name),
            f"{case.subject} has {case.name(name)} {case.own.group_first_key!r}, which every MESSAGE already has",
            allowed="a header of your own",
        )


# ---- filters -------------------------------------------------------------------------------------


def check_filters(draft: Draft) -> None:
    """Parse every selector and expression of queues, diverts, bridges and address-settings."""
    for queue in draft.queues.values():
        _check_expression(draft, queue.written, "priority_expression", f"priority-expression of queue {queue.name!r}")
        _check_selector(draft, queue.written, "filter", f"filter of queue {queue.name!r}")
        _check_selector(draft, queue.written, "consumer_selector", f"consumer-selector of queue {queue.name!r}")
        _check_selector(draft, queue.written, "barrier_expression", f"barrier-expression of queue {queue.name!r}")
    for divert in draft.diverts.values():
        _check_selector(draft, divert.written, "filter", f"filter of divert {divert.name!r}")
    for bridge in draft.bridges.values():
        _check_selector(draft, bridge.written, "filter", f"filter of bridge {bridge.name!r}")
    for entry in draft.entries.values():
        name = f"default-consumer-selector of {entry.name!r}"
        _check_selector(draft, entry.written, "default_consumer_selector", name)
        name = f"default-barrier-expression of {entry.name!r}"
        _check_selector(draft, entry.written, "default_barrier_expression", name)
        name = f"default-priority-expression of {entry.name!r}"
        _check_expression(draft, entry.written, "default_priority_expression", name)


def _check_selector(draft: Draft, written: Values, attribute: str, name: str) -> None:
    text = written.values.get(attribute)
    if text is None or (text == "" and attribute.endswith("barrier_expression")):
        return
    from artemis_py.selector import compile_selector

    try:
        compile_selector(text)
    except SelectorError as error:
        draft.problems.error(written.origins[attribute], f"{name} is not a valid selector: {error.reason}", value=text)


def _check_expression(draft: Draft, written: Values, attribute: str, name: str) -> None:
    text = written.values.get(attribute)
    if text is None:
        return
    from artemis_py.selector import compile_expression

    try:
        compile_expression(text)
    except SelectorError as error:
        what = f"{name} is not a valid expression: {error.reason}"
        draft.problems.error(written.origins[attribute], what, value=text)


# ---- rings ---------------------------------------------------------------------------------------


def check_rings(
    draft: Draft, addresses: Sequence[AddressConfig], settings: SettingsRepository, readers: Readers
) -> None:
    """Warn of rings that keep nothing and of rings on addresses that page."""
    for address in addresses:
        merged = settings.settings_for(address.name)
        for queue in address.queues:
            ring = merged.default_ring_size if queue.ring_size is None else queue.ring_size
            pages = ring > 0 and readers.pages_under(queue)
            _check_ring(draft, ring, queue.origin_of("ring_size"), f"queue {queue.name!r}", pages=pages)
    for entry in settings.entries:
        ring = entry.values.get("default_ring_size", -1)
        origin = entry.origins.get("default_ring_size", entry.origin)
        pages = ring > 0 and readers.pages_at(entry.match)
        _check_ring(draft, ring, origin, f"each queue of {entry.match!r}", pages=pages)


def _check_ring(draft: Draft, ring: int, origin: Origin, subject: str, *, pages: bool) -> None:
    if ring == 0:
        draft.problems.warning(
            "loses-messages", origin, f"{subject} is a ring of size 0 and keeps no message; -1 means no ring"
        )
    elif pages:
        draft.problems.warning(
            "doubtful-value",
            origin,
            f"{subject} is a ring on an address with address-full-policy PAGE: in Artemis, paged messages do not "
            "count towards the ring",
            allowed="DROP, FAIL or BLOCK",
        )


# ---- recovery-point, which needs a log, and a queue that remembers how far it got ----------------


def check_recovery_points(draft: Draft, addresses: Sequence[AddressConfig]) -> None:
    """Refuse invalid recovery points, and those after which the log has nothing."""
    is_kept = draft.retention is not None and draft.core.values.get("persistence_enabled", True)
    for address in addresses:
        for queue in address.queues:
            if queue.recovery_point is not None:
                _check_recovery_point(draft, queue, queue.recovery_point, is_kept=is_kept)


def _check_recovery_point(draft: Draft, queue: QueueConfig, text: str, *, is_kept: bool) -> None:
    origin = queue.origin_of("recovery_point")
    try:
        point = recovery_point_of(text)
    except ValueError:
        draft.problems.error(
            origin,
            f"recovery-point of queue {queue.name!r} is not a place in the log",
            value=text,
            allowed=RECOVERY_POINTS,
        )
        return
    if point.is_past and not is_kept:
        draft.problems.error(
            origin,
            f"queue {queue.name!r} has recovery-point without journal-retention-directory: what queues are done with "
            "is not kept, so the past has gaps",
            value=text,
            allowed="journal-retention-directory, or recovery-point now or creation",
        )
