"""The soak itself: it repeats itself, it finds what is broken, and it says so in a few steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from artemis_py.core.consumer import Consumer
from artemis_py.core.distribution import Distribution, Exclusive
from artemis_py.core.entry import Entry
from artemis_py.core.gate import Gate
from artemis_py.core.order.last_value import LastValues
from artemis_py.core.order.priority import LevelCursor, PriorityOrder
from artemis_py.core.order.sorted import RankCursor, SortedOrder
from artemis_py.core.overflow import Ring
from artemis_py.core.redelivery import Redelivery
from artemis_py.core.schedule import Schedule
from artemis_py.core.transaction import Transaction
from artemis_py.message import Account, Message
from tests.model.plans import all_plans
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


def test_every_combination_has_its_share() -> None:
    """As many worlds as combinations: each is met once."""
    wanted = {plan.queues[0] for plan in all_plans()}
    met = {
        (
            queue.kind,
            queue.exclusive,
            queue.non_destructive,
            queue.ring_size,
            queue.depth,
            queue.consumers_before,
            queue.delay_before,
        )
        for plan, _ in worlds(SEED, 150 * len(all_plans()))
        for queue in plan.queues[:1]
    }
    assert met == {
        (
            queue.kind,
            queue.exclusive,
            queue.non_destructive,
            queue.ring_size,
            queue.depth,
            queue.consumers_before,
            queue.delay_before,
        )
        for queue in wanted
    }


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


def _all_over(self: Ring, ready_count: int, added_count: int) -> int:
    return max(ready_count - self.size, 0)


def _one_more_attempt(self: Redelivery, attempts: int) -> bool:
    return 0 < self.attempts_max < attempts


def _no_delay(self: Redelivery, attempts: int, message_id: int) -> int:
    return 0


def _nothing(self: Any, *_: Any, **__: Any) -> None:
    return None


def _never(self: LastValues, entry: Entry) -> bool:
    return False


def _anybody(self: Distribution) -> Consumer | None:
    return next((consumer for consumer in self.consumers if consumer.has_room and not consumer.parked), None)


def _count_only(self: Account, size_bytes: int) -> None:
    self.message_count -= 1


def _everything(self: Consumer, message: Message) -> bool:
    return True


def _without_credit(self: Consumer, message_id: int) -> Entry:
    return self.held.pop(message_id)


def _late(self: Schedule[Any], now_ms: int) -> list[Any]:
    return _on_time(self, now_ms - 1)


_on_time = Schedule.pop_due


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    [
        (Ring, "excess", _all_over),
        (Redelivery, "is_exhausted", _one_more_attempt),
        (Redelivery, "delay_after", _no_delay),
        (LevelCursor, "revisit", _nothing),
        (RankCursor, "revisit", _nothing),
        (SortedOrder, "pop_least", SortedOrder.pop),
        (PriorityOrder, "pop_least", PriorityOrder.pop),
        (LastValues, "is_outdated", _never),
        (LastValues, "forget", _nothing),
        (Gate, "consumer_left", _nothing),
        (Exclusive, "pick", _anybody),
        (Distribution, "wake_all", _nothing),
        (Account, "credit", _count_only),
        (Consumer, "wants", _everything),
        (Consumer, "let_go", _without_credit),
        (Schedule, "pop_due", _late),
        (Transaction, "abort", _nothing),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", None),
)
def test_it_finds_what_is_broken(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, broken: Callable[..., Any]
) -> None:
    """A model that agrees with everything is worth nothing: each of these mistakes has to be seen."""
    monkeypatch.setattr(owner, name, broken)
    assert any(fails(plan, taken) for plan, taken in worlds(SEED, STEPS))
