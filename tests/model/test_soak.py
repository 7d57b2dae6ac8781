"""The soak itself: it repeats itself, it finds what is broken, and it says so in a few steps."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import islice, starmap
from typing import Any, Final

import pytest

from artemis_py.core.addresses.routing_table import Views
from artemis_py.core.clock import Clock
from artemis_py.core.consumer import Consumer, ConsumerDefaults
from artemis_py.core.order.last_value import LastValues
from artemis_py.core.order.priority import LevelCursor, PriorityOrder
from artemis_py.core.order.sorted import RankCursor, SortedOrder, ValueRank
from artemis_py.core.queue.acknowledge import AcknowledgeByFilter
from artemis_py.core.queue.barriers import BarrierRule, Broadcast, PendingActivator, TargetDepth
from artemis_py.core.queue.consumers import Exclusivity
from artemis_py.core.queue.delivery import AfterRemoval
from artemis_py.core.queue.distribution import Distribution, Ranked
from artemis_py.core.queue.expiry import ForcedExpiry
from artemis_py.core.queue.gate import Gate
from artemis_py.core.queue.groups import GroupOwners, GroupRule, GroupTable, Parking
from artemis_py.core.queue.lease_expiry import LeaseExpiry
from artemis_py.core.queue.leases import Leases
from artemis_py.core.queue.messages import Contents
from artemis_py.core.queue.overflow import DepthLimit, DepthRing, Flow, FlowControl, Reject, Ring
from artemis_py.core.queue.redelivery import DeliveryAttempts, Redelivery
from artemis_py.core.queue.state import QueueState
from artemis_py.core.queue_reference import Lifetime, MessageAges
from artemis_py.core.transactions import Transaction
from artemis_py.message import Account
from tests.model.axes import IN_MEMORY, PAGED, Space, refusals
from tests.model.plans import NO_VIEW, ROUND_ROBIN, QueuePlan
from tests.model.soak import fails, main, run_world, shrink, worlds

pytestmark = pytest.mark.model

SEED = 7
STEPS = 150_000


def test_same_seed_same_worlds() -> None:
    """A run can be repeated, and another seed is another run."""
    first, again, other = (list(worlds(seed, 3000)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert sum(len(taken) for _, taken in first) == 3000


@pytest.mark.parametrize("space", [IN_MEMORY, PAGED], ids=["in memory", "paged"])
def test_every_base_and_every_pair_is_drawn_and_accepted(space: Space) -> None:
    """As many worlds as bases: each is met once, and every two choices that ``check`` accepts; and all that is drawn is
    accepted.
    """
    chosen = list(islice(space.drawn(random.Random(SEED)), len(space.bases)))
    of_base = [{axis: one[axis] for axis in space.base} for one in chosen]
    assert all(base in of_base for base in space.bases)
    assert not space.apart(chosen)
    assert space.apart(chosen[:20])
    assert refusals([space.queue_plan(one) for one in chosen], space.setting) == {}


def test_what_is_not_drawn_is_refused() -> None:
    """Two answers to a full queue, and values in pages that nobody would replace, for example."""
    assert "both define what a full queue does" in IN_MEMORY.all_pairs[("policy", "ring-1"), ("ring-size", "3")]
    assert IN_MEMORY.all_pairs[("policy", "ring-1"), ("ring-size", "none")] == ""
    refused = PAGED.all_pairs[("type", "lvq"), ("acquisition", "non-destructive")]
    assert "never be replaced" in refused


def test_a_good_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints its seed and how to repeat it."""
    assert main(["--seed", "5", "--steps", "1500"]) == 0
    assert "python -m tests.model.soak --seed 5 --steps 1500" in capsys.readouterr().out


@pytest.mark.interpreted
def test_a_failure_is_made_small(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A ring that gives up the wrong message is told in at most three steps."""
    monkeypatch.setattr(PriorityOrder, "pop_least", PriorityOrder.pop)
    plan, taken = next(world for world in worlds(SEED, STEPS) if fails(*world))
    small = shrink(plan, taken)
    assert len(small) <= 3
    with pytest.raises(AssertionError):
        run_world(plan, small)
    assert main(["--seed", str(SEED), "--steps", str(STEPS)]) == 1
    told = capsys.readouterr().err
    assert "publish(" in told
    assert f"--seed {SEED} --steps {STEPS}" in told


# ---- what it must find ---------------------------------------------------------------------------


_credit = Account.credit
_on_time = Clock.ring
_lifetime_of = Lifetime.expires_ms
_views_over = Views.over


def _nothing(*_: Any, **__: Any) -> None:
    return None


_MISTAKES: Final[list[tuple[type, str, Any]]] = [
    (Ring, "excess", lambda ring, ready_count, _: max(ready_count - ring.size, 0)),
    (Redelivery, "is_exhausted", lambda rule, attempts: 0 < rule.attempts_max < attempts),
    (Redelivery, "delay_after", lambda *_: 0),
    (LevelCursor, "revisit", _nothing),
    (RankCursor, "revisit", _nothing),
    (SortedOrder, "pop_least", SortedOrder.pop),
    (ValueRank, "rank_of", lambda rank, message: str(-rank.value_of(message))),
    (ValueRank, "decides_who_goes", property(lambda _: False)),
    (PriorityOrder, "pop_least", PriorityOrder.pop),
    (LastValues, "is_outdated", lambda *_: False),
    (LastValues, "forget", _nothing),
    (Gate, "consumer_left", _nothing),
    (GroupTable, "admits", lambda *_: True),
    (Parking, "_offer", _nothing),
    (GroupOwners, "settle", _nothing),
    (GroupOwners, "put_aside", _nothing),
    (GroupOwners, "leave_aside", _nothing),
    (GroupOwners, "_free", _nothing),
    (Distribution, "is_served", lambda *_: True),
    (Ranked, "pick", lambda who: next((one for one in who.consumers[::-1] if one.has_room and not one.parked), None)),
    (Gate, "lets_out", lambda *_: True),
    (QueueState, "confirm", _nothing),
    (QueueState, "expire_held", QueueState.acknowledge),
    (ForcedExpiry, "_next", lambda *_: []),
    (DeliveryAttempts, "note", lambda *_, refused: ""),
    (LeaseExpiry, "_take", _nothing),
    (AcknowledgeByFilter, "_look_among_ready", lambda command, _: command.__setattr__("_ready_is_done", True)),
    (AcknowledgeByFilter, "_look_aside", lambda *_: False),
    (AcknowledgeByFilter, "_holder_of", _nothing),
    (Consumer, "choose", _nothing),
    (Leases, "end", _nothing),
    (Leases, "holder_of", _nothing),
    (Leases, "note_back", _nothing),
    (Ranked, "put_last", _nothing),
    (BarrierRule, "lets_in", lambda *_: True),
    (TargetDepth, "lets_in", lambda rule, _, active_count: active_count <= rule.target),
    (Contents, "active_count", property(lambda of: of.order.count + len(of.scheduled) - len(of.held_back))),
    (PendingActivator, "_is_first", lambda *_: True),
    (PendingActivator, "note_left", _nothing),
    (Broadcast, "wait_for", _nothing),
    (Broadcast, "note_room", _nothing),
    (Broadcast, "note_left", _nothing),
    (ConsumerDefaults, "backlog_for", lambda usual, asked: usual.backlog if asked is None else asked),
    (Distribution, "wake_all", _nothing),
    (Account, "credit", lambda account, count, _: _credit(account, count, 0)),
    (Consumer, "wants", lambda *_: True),
    (Consumer, "let_go", lambda consumer, message_id: consumer.held.pop(message_id)),
    (Clock, "ring", lambda clock, steady_ms, count_max: _on_time(clock, steady_ms - 1, count_max)),
    (DepthRing, "sheds", property(lambda _: False)),
    (Reject, "refuses", property(lambda _: False)),
    (FlowControl, "resumes_at", property(lambda policy: policy.depth)),
    (DepthLimit, "holds", lambda limit, count, _: not 0 <= limit.messages_max < count),
    (Flow, "stop", _nothing),
    (Flow, "resume", _nothing),
    (Flow, "admits", lambda *_: True),
    (Contents, "append_held", lambda contents, entry, _: contents.append_value(entry)),
    (MessageAges, "add", _nothing),
    (AfterRemoval, "run", _nothing),
    (GroupRule, "closes", lambda *_: False),
    (GroupRule, "group_of", lambda rule, message: message.head.first("JMSXGroupID") or rule.fallback),
    (GroupOwners, "rebalance", _nothing),
    (Lifetime, "expires_ms", lambda _, message: message.expires_ms),
    (Lifetime, "expires_ms", lambda life, message: _lifetime_of(Lifetime(life.shortest_ms, life.longest_ms), message)),
    (ConsumerDefaults, "replay", lambda *_: (0, 0)),
    (Exclusivity, "admit", _nothing),
    (Views, "over", lambda *_: []),
    (Views, "over", lambda views, name: [queue for queue in _views_over(views, name) for _ in range(2)]),
    (Transaction, "abort", _nothing),
]


_NEEDS: Final[dict[type, Callable[[QueuePlan], bool]]] = {
    LeaseExpiry: lambda queue: queue.leases,
    Leases: lambda queue: queue.leases,
    AcknowledgeByFilter: lambda queue: queue.is_like_amps,
    Ranked: lambda queue: queue.fair != ROUND_ROBIN,
    GroupOwners: lambda queue: queue.is_grouped,
    PendingActivator: lambda queue: queue.activates_in_order,
    Broadcast: lambda queue: queue.barriers,
    Views: lambda queue: queue.view != NO_VIEW,
}
"""Mistakes in these show only on such queues, and some of them late: they get many worlds with one."""


_SEEDS: Final = {
    (Consumer, "choose"): 1,
    (GroupOwners, "leave_aside"): 2,
    (GroupOwners, "put_aside"): 12,
    (GroupOwners, "rebalance"): 5,
    (Leases, "end"): 2,
    (Leases, "holder_of"): 2,
    (Leases, "note_back"): 23,
    (Parking, "_offer"): 4,
    (PendingActivator, "note_left"): 4,
    (QueueState, "expire_held"): 1,
    (Ranked, "put_last"): 15,
    (Redelivery, "is_exhausted"): 5,
    (Ring, "excess"): 1,
    (ValueRank, "decides_who_goes"): 5,
}
"""Worlds that show these mistakes sooner than the others', which is all that is special about them."""


@pytest.mark.thirds
@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    _MISTAKES,
    ids=[f"{owner.__name__}-{name}" for owner, name, _ in _MISTAKES],
)
def test_it_finds_what_is_broken(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, broken: Callable[..., Any]
) -> None:
    """A model that agrees with everything is worth nothing: each of these mistakes has to be seen."""
    monkeypatch.setattr(owner, name, broken)
    seed, needs = _SEEDS.get((owner, name), SEED), _NEEDS.get(owner)
    wanted = None if needs is None else lambda plan: any(map(needs, plan.queues))
    with pytest.raises(Exception) as found:  # noqa: PT011 - whatever it leads to
        list(starmap(run_world, worlds(seed, STEPS if wanted is None else 10 * STEPS, wanted)))
    assert not isinstance(found.value, TypeError), "a stand-in that does not fit is seen by Python, not by the model"
