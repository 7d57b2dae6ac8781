"""Every pair of features of a queue: it is refused, with line and reason, or it works, also over a restart."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from artemis_py.config.checks.queues import DOUBTS
from artemis_py.config.tables import queue_conflicts
from artemis_py.config.tables.queue_conflicts import CONFLICTS, Conflict
from artemis_py.config.tables.queue_settings import NAMES, QueueSettings
from artemis_py.errors import ConfigError
from tests.kit.bench import declared
from tests.kit.documents import errors_of, load_core, problems_of
from tests.kit.life import Life

pytestmark = pytest.mark.wire

FEATURES = {
    "standard": "queue-type='standard'",
    "priority": "priority-levels='3'",
    "sorted": "sort-key='k'",
    "by-value": "priority-expression='rank * 10 - AMQPriority'",
    "last-value": "last-value-key='k'",
    "lvq": "queue-type='lvq' last-value-key='k'",
    "ring-size": "ring-size='2'",
    "exclusive": "exclusive='true'",
    "non-destructive": "non-destructive='true'",
    "purge": "purge-on-no-consumers='false'",
    "gate": "consumers-before-dispatch='1'",
    "consumers": "max-consumers='5'",
    "min-ttl": "min-message-ttl='600000'",
    "max-ttl": "max-message-ttl='600000'",
    "expiration": "expiration='10m'",
    "hold": "hold-on-publish='true'",
    "expiry-policy": "expiry-policy='ROUTE_TO_ALTERNATE'",
    "ring": "overflow-policy='RING' max-depth-messages='2'",
    "ring-bytes": "overflow-policy='RING' max-depth-bytes='400'",
    "flow-control": "overflow-policy='PRODUCER_FLOW_CONTROL' max-depth-messages='3' flow-resume-percent='50'",
    "to-disk": "overflow-policy='FLOW_TO_DISK' max-depth-messages='2'",
    "reject": "overflow-policy='REJECT' max-depth-messages='4'",
    "dead-letter": "dead-letter-address='dead'",
    "attempts": "max-delivery-attempts='2'",
    "alerts": "alert-threshold-depth-messages='2' alert-threshold-message-age='1000' alert-repeat-gap='10'",
    "sticky": "group-type='STANDARD'",
    "shared": "group-type='SHARED_GROUPS' fallback-group='rest'",
    "group-key": "group-key='cart'",
    "buckets": "group-buckets='2'",
    "rebalance": "group-rebalance='true' group-rebalance-pause-dispatch='true'",
    "first-key": "group-first-key='first'",
    "live": "max-live-consumers='1'",
    "fast": "fairness-model='fast' max-per-subscription-backlog='3'",
    "proportional": "fairness-model='proportional' max-per-subscription-backlog='3'",
    "backlog": "max-backlog='2'",
    "tries": "max-deliveries='3' max-cancels='2'",
    "lease": "lease-period='10s' leasing='strict'",
    "at-most-once": "delivery-semantics='at-most-once'",
    "barrier": "barrier-expression=\"k = 'a2'\"",
    "target": "target-queue-depth='2'",
    "file-backed": "file-backed-metadata='true' max-depth-messages='2'",
    "owner": "exclusivity-policy='CONNECTION'",
    "link": "exclusivity-policy='LINK'",
    "selector": "consumer-selector='k IS NOT NULL'",
    "replay": "consumer-replay-period='3600'",
    "delay": "delay-before-dispatch='0'",
    "view": "underlying-address='under,under.#' default-publish-target='under'",
    "paging": "",
    "redelivery": "",
    "retroactive": "",
}
PAGES = "<max-size-messages>2</max-size-messages>"
OF_THE_ADDRESS = {
    "paging": PAGES,
    "redelivery": "<redelivery-delay>1000</redelivery-delay>",
    "retroactive": "<retroactive-message-count>2</retroactive-message-count>",
}
"""Features that an address-setting gives."""
SETTINGS = "<page-size-bytes>500</page-size-bytes>"
KINDS = ("standard", "priority", "sorted", "by-value", "last-value", "lvq")
OVERFLOWS = ("ring", "ring-bytes", "flow-control", "to-disk", "reject")
IN_ORDER = ("barrier", "target")
GROUPINGS = ("sticky", "shared", "group-key")
REFUSED = {
    *(frozenset(pair) for pair in itertools.combinations(KINDS, 2)),
    *(frozenset((policy, "ring-size")) for policy in OVERFLOWS),
    *(frozenset(pair) for pair in itertools.combinations(OVERFLOWS, 2)),
    *(frozenset(pair) for pair in itertools.product(GROUPINGS, ("exclusive", "non-destructive"))),
    *(frozenset(("shared", other)) for other in ("sticky", "buckets", "rebalance", "first-key")),
    frozenset(("owner", "link")),
    frozenset(("fast", "proportional")),
    *(
        frozenset((name, "non-destructive"))
        for name in ("fast", "proportional", "backlog", "at-most-once", "tries", "lease")
    ),
    *(frozenset((name, "at-most-once")) for name in ("fast", "proportional")),
    frozenset(("barrier", "hold")),
    frozenset(IN_ORDER),
    *(
        frozenset(pair)
        for pair in itertools.product(IN_ORDER, (*KINDS[1:], "ring-size", "ring", "ring-bytes", "non-destructive"))
    ),
    *(frozenset((name, "file-backed")) for name in ("ring-size", *OVERFLOWS)),
}
"""Pairs that nobody can have: two types, two answers to a full queue, groups where nothing can be grouped, two kinds of
groups, two owners, an order where messages become active as they arrive.
"""
PAIRS = [pair for pair in itertools.combinations(FEATURES, 2) if frozenset(pair) not in REFUSED]
TRIPLES = [
    ("non-destructive", "last-value", "to-disk"),
    ("non-destructive", "lvq", "file-backed"),
    ("non-destructive", "lvq", "paging"),
]
"""What is refused only with three."""


def featured(*names: str) -> tuple[str, str]:
    """The attributes of a queue with these features (of two that say the same thing, each says its own), and the
    address-setting that they need.
    """
    attributes = " ".join(FEATURES[name] for name in names)
    return attributes, SETTINGS + "".join(OF_THE_ADDRESS.get(name, "") for name in names)


@pytest.mark.parametrize("pair", sorted(map(sorted, REFUSED)), ids="-".join)
def test_a_pair_that_is_refused(pair: list[str]) -> None:
    """With line and reason; two values for one attribute are no XML."""
    first, second = (FEATURES[name] for name in pair)
    if {word.partition("=")[0] for word in first.split()} & {word.partition("=")[0] for word in second.split()}:
        with pytest.raises(ConfigError, match=r"broker.xml:[0-9]+: .*(not well-formed|redefined)"):
            load_core(declared(f"{first} {second}"))
        return
    errors = errors_of(declared(f"{first} {second}"))
    assert errors
    assert all(each.line == 5 and each.allowed for each in errors)


@pytest.mark.parametrize("names", TRIPLES, ids="-".join)
def test_three_that_are_refused(names: tuple[str, ...]) -> None:
    errors = errors_of(declared(*featured(*names)))
    assert len(errors) == 1
    assert errors[0].line == 5
    assert "never be replaced" in errors[0].message


def counts_agree(life: Life) -> None:
    """What came is there or has left in one of the known ways, and every count tells the same."""
    queue = life.queue()
    counters = queue.contents.counters
    left = counters.acknowledged + counters.expired + counters.killed + counters.replaced
    assert counters.added - left == queue.message_count, "a message is there and not counted, or the other way round"
    assert (counters.size_bytes > 0) == (queue.message_count > 0)
    if queue.contents.last_values is None and not queue.non_destructive:
        assert (
            queue.message_count
            == queue.contents.order.count
            + (0 if queue.contents.pending is None else queue.contents.pending.count)
            + counters.held_count
            + len(queue.contents.scheduled)
            + queue.contents.paged.count
        )


@pytest.mark.thirds
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_a_pair_that_works(pair: tuple[str, str]) -> None:
    """Some messages are sent, one is read and acknowledged, one lost with its reader; then a restart, and the rest is
    read: nothing is lost or comes again that must not, and all counts agree at every step.
    """
    attributes, settings = featured(*pair)
    life = Life(attributes, settings=settings)
    sent = ["a1", "b1", "a2", "c1"]
    for body in sent:
        priority = f"priority:{len(body) + ord(body[0]) % 7}"
        groups = f"JMSXGroupID:{body[0]}", f"cart:{body[0]}"
        others = "x-qpid-not-valid-before:1", "expires:99999999", f"rank:{body[1]}"
        life.send(body, f"k:{body}", priority, *groups, *others)
    queue = life.queue()
    waits = queue.flow.stopped
    assert queue.message_count > 0
    counts_agree(life)
    first = life.read("reader", count_max=2)
    assert len(first) == len(set(first)) == 2
    counts_agree(life)
    life.lose("reader")
    counts_agree(life)
    life.broker.advance(20_000)
    counts_agree(life)
    life = life.again()
    life.broker.advance(20_000)  # the clock of a life begins where that of the first did
    rest = life.read()
    counts_agree(life)
    assert set(first) | set(rest) <= set(sent)
    assert len(rest) == len(set(rest))
    queue = life.queue()
    if queue.non_destructive:
        assert queue.message_count == len(rest)
    else:
        assert queue.message_count == 0
        assert first[0] not in rest, "what was acknowledged came again"
        if "at-most-once" in pair:
            assert first[1] not in rest, "what was sent came again"
        else:
            assert first[1] in rest or "ring" in "".join(pair), "what was not acknowledged is lost"
    gives_up = {"ring-size", "ring", "ring-bytes"} & set(pair)
    if not (gives_up or waits):
        assert set(first) | set(rest) == set(sent)


WARNINGS = {
    "overflow-policy='RING'": "is never full",
    "max-depth-bytes='5'": "nothing happens at that depth",
    "flow-resume-percent='50'": "has no effect",
    "min-message-ttl='5' max-message-ttl='4'": "wins",
    "consumers-before-dispatch='3' max-consumers='2'": "nothing is ever delivered",
    "max-live-consumers='3' max-consumers='2'": "has no effect",
    "expiry-policy='ROUTE_TO_ALTERNATE'": "are discarded",
    "non-destructive='true' max-delivery-attempts='2'": "no dead messages",
    "alert-repeat-gap='5'": "has no effect",
    "overflow-policy='FLOW_TO_DISK' max-depth-messages='5' sort-key='k'": "only once it is in memory",
    "overflow-policy='FLOW_TO_DISK' max-depth-messages='5' priority-expression='k'": "flows to disk, but not in",
    "file-backed-metadata='true' sort-key='x'": "is ordered only once it is in memory",
}


@pytest.mark.parametrize(("attributes", "said"), WARNINGS.items(), ids=list(WARNINGS.values()))
def test_what_has_no_effect_is_told(attributes: str, said: str) -> None:
    core = declared(attributes)
    config = load_core(core)
    found = [notice for notice in config.notices if "queue 'q'" in notice.message and said in notice.message]
    assert [(notice.severity, notice.line) for notice in found] == [("warning", 5)]


def test_what_follows_from_a_mistake_is_not_told_too() -> None:
    """The policy is misspelt, so the queue has none: nobody need hear of a depth without a policy."""
    told = problems_of(declared("overflow-policy='BLOCK' max-depth-messages='1'"))
    assert [(each.severity, each.value) for each in told if "queue" in each.message] == [("error", "BLOCK")]


def test_a_ring_that_pages_and_a_flow_that_is_shared_are_told() -> None:
    core = f"""<addresses><address name="a"><multicast>
    <queue name="ring" overflow-policy="RING" max-depth-messages="5"/>
    <queue name="disk" overflow-policy="FLOW_TO_DISK" max-depth-messages="5" queue-type="standard"/>
    </multicast></address></addresses>
    <address-settings><address-setting match="a">{PAGES}</address-setting></address-settings>"""
    config = load_core(core)
    told = {notice.line: notice.message for notice in config.notices if notice.message.startswith("queue ")}
    assert "messages in pages do not count" in told[4]
    assert "all of them go to pages" in told[5]


def test_the_same_is_refused_in_an_address_setting() -> None:
    settings = "<default-overflow-policy>REJECT</default-overflow-policy><default-ring-size>5</default-ring-size>"
    assert any(
        "each queue of '#' has overflow-policy REJECT and ring-size 5" in each.message
        for each in problems_of(declared("", settings))
    )


def test_a_queue_that_is_its_own_dead_letter_address_is_warned_of() -> None:
    """Artemis takes it."""
    queue = "<address name='q'><anycast><queue name='q' dead-letter-address='q'/></anycast></address>"
    config = load_core(f"<addresses>{queue}</addresses>")
    assert any("return to it for ever" in notice.message for notice in config.notices)


def test_every_rule_names_attributes_that_exist() -> None:
    from artemis_py.config.tables.declarations import QueueConfig
    from artemis_py.config.tables.fields import settings_of as rows_of

    known = {row.attribute for row in rows_of(QueueConfig).values()}
    assert all(set(rule.attributes) <= known for rule in (*CONFLICTS, *DOUBTS))


def fields_read(function: Callable[..., object]) -> set[str]:
    """The attributes of a queue that a function and all that it calls read, whichever way it goes."""
    found: set[str] = set()
    for name in function.__code__.co_names:
        member = vars(QueueSettings).get(name)
        if name in NAMES:
            found.add(name)
        elif isinstance(member, property):
            assert member.fget is not None
            found |= fields_read(member.fget)
        elif callable(helper := vars(queue_conflicts).get(name)):
            found |= fields_read(helper)
    return found


@pytest.mark.parametrize("conflict", CONFLICTS, ids=lambda conflict: conflict.text[:40])
def test_a_conflict_names_every_attribute_that_it_reads(conflict: Conflict) -> None:
    """It counts where one of them is written, and a reload holds back each of them."""
    assert fields_read(conflict.applies) <= set(conflict.attributes)
    assert conflict.on_pages is None or fields_read(conflict.on_pages) <= set(conflict.attributes)
    assert set(conflict.written) <= set(conflict.attributes)
