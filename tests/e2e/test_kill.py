"""A broker under load is killed at random moments, again and again: no promise may be broken.

The first test kills a real process; ``python -m tests.e2e.soak_kill`` does it longer. The others show that the ledger,
which is the judge, sees each kind of broken promise.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.kill_ledger import Key, Ledger, Session
from tests.e2e.kill_log import problems_of_log
from tests.e2e.kill_rounds import KillRun, PairKillRun
from tests.kit.process import LONG

KILLS = 20
SOAK_KILLS = 200
PAIR_KILLS = 4
SOAK_PAIR_KILLS = 300
RETAINED_KILLS = 6


@pytest.mark.e2e
@pytest.mark.parametrize(
    "kills", [pytest.param(KILLS, marks=pytest.mark.timeout(180)), pytest.param(SOAK_KILLS, marks=LONG)]
)
def test_no_promise_is_broken(tmp_path: Path, seed: int, kills: int, capsys: pytest.CaptureFixture[str]) -> None:
    """And the run exercises what it is for."""
    run = KillRun(tmp_path, seed)
    run.run(kills)
    assert run.ledger.problems == [], run.summary()
    assert run.tally.restarts_that_recovered > kills // 2, run.summary()
    assert run.tally.rounds_with_pages > kills // 4, run.summary()
    assert run.unfinished.repeated_count > kills // 4, run.summary()
    assert run.tally.segments > 2 * run.tally.segments_left, f"nothing was compacted: {run.summary()}"
    with capsys.disabled():
        print(f"\nkill test: {run.summary()}")


@pytest.mark.e2e
@pytest.mark.timeout(120)
def test_the_retained_log_tells_the_same(tmp_path: Path, seed: int) -> None:
    run = KillRun(tmp_path, seed, retention=True)
    run.run(RETAINED_KILLS)
    assert run.ledger.problems == [], run.summary()
    assert any((tmp_path / "kept").iterdir()), "nothing was retained"
    assert all(len(seen.keys) > RETAINED_KILLS for seen in run.replays), run.summary()
    assert problems_of_log(tmp_path, run.ledger, run.replays) == []


@pytest.mark.e2e
@pytest.mark.parametrize(
    "kills", [pytest.param(PAIR_KILLS, marks=pytest.mark.timeout(120)), pytest.param(SOAK_PAIR_KILLS, marks=LONG)]
)
def test_no_promise_is_broken_by_a_pair(
    tmp_path: Path, seed: int, kills: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """And every takeover reads the journal."""
    run = PairKillRun(tmp_path, seed)
    run.run(kills)
    assert run.ledger.problems == [], run.summary()
    cut_short = run.tally.kills_while_starting
    assert run.tally.restarts_that_recovered >= kills - 1 - cut_short, run.summary()
    assert len(run.gaps) >= kills - 1 - 2 * cut_short, run.summary()  # neither is measured, nor what comes after it
    with capsys.disabled():
        print(f"\nkill test of a pair: {run.summary()}")


# ---- the judge -----------------------------------------------------------------------------------

ONE, TWO, THREE = (Key("q", "p", number) for number in (1, 2, 3))
LEFT, RIGHT = Key("left", "p", 1, 7), Key("right", "p", 1, 7)
COPY = Key("out", "p", 1, 8)


def ledger_with(*keys: Key, promised: bool = True) -> Ledger:
    """A ledger in which these were sent."""
    ledger = Ledger()
    ledger.sending(keys)
    if promised:
        ledger.sent(keys)
    return ledger


def read(ledger: Ledger, *keys: Key) -> Session:
    """New consumers, one for each queue, get these. Returns the last of them."""
    sessions = {key.queue: Session() for key in keys}
    for key in keys:
        ledger.delivered(sessions[key.queue], key)
    return sessions[keys[-1].queue]


def read_at_end(ledger: Ledger, *keys: Key) -> list[str]:
    """The last consumer gets these; returns the verdict."""
    ledger.is_end = True
    if keys:
        read(ledger, *keys)
    ledger.judge()
    return ledger.problems


def test_kept_promises_are_no_violations() -> None:
    ledger = ledger_with(ONE, TWO, THREE)
    session = read(ledger, ONE, TWO)
    ledger.acknowledging(session, [ONE, TWO])
    ledger.acknowledged([ONE])
    assert read_at_end(ledger, THREE) == []


def test_what_was_never_promised_may_vanish_or_come() -> None:
    assert read_at_end(ledger_with(ONE, TWO, promised=False), TWO) == []


def test_a_lost_message_is_seen() -> None:
    assert "is lost: its SEND was receipted" in read_at_end(ledger_with(ONE, TWO), TWO)[0]


def test_a_delivery_that_a_crash_undid_is_seen() -> None:
    ledger = ledger_with(ONE, promised=False)
    read(ledger, ONE)
    assert "is lost: it had been delivered" in read_at_end(ledger)[0]


def test_a_settled_message_that_comes_again_is_seen() -> None:
    ledger = ledger_with(ONE)
    ledger.acknowledging(read(ledger, ONE), [ONE])
    ledger.acknowledged([ONE])
    assert "its ACK was receipted" in read_at_end(ledger, ONE)[0]


def test_an_acknowledgement_that_did_not_count_does_not_excuse_a_loss() -> None:
    ledger = ledger_with(ONE)
    ledger.acknowledging(read(ledger, ONE), [ONE])
    read(ledger, ONE)
    assert "is lost" in read_at_end(ledger)[0]


def test_changed_order_and_copies_are_seen() -> None:
    assert "after number 2" in read_at_end(ledger_with(ONE, TWO), TWO, ONE)[0]
    assert "after number 1" in read_at_end(ledger_with(ONE), ONE, ONE)[0]


def test_what_nobody_sent_is_seen() -> None:
    assert "never sent" in read_at_end(ledger_with(ONE), ONE, TWO)[0]


def test_half_a_transaction_is_seen() -> None:
    ledger = Ledger()
    ledger.committing(7, [LEFT, RIGHT], [])
    assert "is torn: 1 of 2" in read_at_end(ledger, LEFT)[0]


def test_a_transaction_that_moved_and_did_not_take_is_seen() -> None:
    ledger = ledger_with(ONE)
    ledger.committing(8, [COPY], [ONE], read(ledger, ONE))
    assert "happened, but" in read_at_end(ledger, ONE, COPY)[0]


def test_a_transaction_that_took_and_did_not_move_is_seen() -> None:
    ledger = ledger_with(ONE)
    ledger.committing(8, [COPY], [ONE], read(ledger, ONE))
    assert "did not happen, but" in read_at_end(ledger)[0]


def test_a_transaction_that_did_not_happen_is_fine() -> None:
    ledger = ledger_with(ONE)
    ledger.committing(8, [COPY], [ONE], read(ledger, ONE))
    assert read_at_end(ledger, ONE) == []


def test_a_message_moved_twice_is_seen() -> None:
    ledger = ledger_with(ONE)
    ledger.committing(8, [COPY], [ONE], read(ledger, ONE))
    again = COPY._replace(group=9)
    ledger.committing(9, [again], [ONE], read(ledger, ONE))
    problems = read_at_end(ledger, COPY, again)
    assert any("was moved by several transactions: [8, 9]" in text for text in problems)
