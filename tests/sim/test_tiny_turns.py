"""Worlds with crashes in the middle of what takes more than one turn: nothing is lost, nothing comes back."""

from __future__ import annotations

import random

import pytest

from artemis_py.core.addresses.enqueue import Enqueuer
from tests.kit.crash.world import CrashWorld, Report
from tests.kit.selection import share_of
from tests.kit.tiny_turns import make_turns_tiny

WORLDS = share_of(60)


def test_worlds_of_tiny_turns(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    first = rng.getrandbits(32)
    reports: list[Report] = []
    for seed in range(first, first + WORLDS):
        with monkeypatch.context() as patches:
            make_turns_tiny(patches, seed)
            reports.append(CrashWorld(seed, steps=120).run())
    assert sum(report.promises for report in reports) > WORLDS


@pytest.mark.interpreted
def test_worlds_in_which_messages_are_on_some_of_their_queues(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between two queues of a message leaves it on both, or on neither. None comes to the second one before
    its record is written and a later slice begins.
    """
    first = rng.getrandbits(32)
    monkeypatch.setattr(Enqueuer, "_is_too_much", lambda _, shares: len(shares) > 1)
    reports: list[Report] = []
    for seed in range(first, first + WORLDS):
        with monkeypatch.context() as patches:
            make_turns_tiny(patches, seed)
            reports.append(CrashWorld(seed, steps=120).run())
    assert sum(report.promises for report in reports) > WORLDS


def test_a_page_that_was_dropped_before_the_one_in_front_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only transient messages were in it. The log's reader then looks farther back for the end of the other."""
    make_turns_tiny(monkeypatch, 27927667)
    CrashWorld(27927667, steps=120).run()


def test_a_journal_file_that_comes_back_where_no_extent_found_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one, deleted after it, did not come back, and seemed to be missing."""
    make_turns_tiny(monkeypatch, 1126586887)
    CrashWorld(1126586887, steps=120).run()


def test_a_page_that_is_written_again_on_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk had refused the journal's part of the batch, and written enough of it to count the page."""
    make_turns_tiny(monkeypatch, 2839565013)
    CrashWorld(2839565013, steps=120).run()
